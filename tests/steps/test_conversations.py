"""Calls on conversations: whatever format they come in, rows of messages leave."""

import pytest

from tests.written import dataset
from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.errors import CheckpointError, DataError, ExecutionError, PlanError, WrongKindError
from zephon.recipe import load_recipe

TURNS = [
    {"from": "system", "value": "be brief"},
    {"from": "human", "value": "a"},
    {"from": "gpt", "value": "b", "loss_weight": 0.5},
    {"from": "human", "value": "c"},
    {"from": "gpt", "value": "d", "loss_weight": 1.0},
]
MESSAGES = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b", "loss_weight": 0.5},
    {"role": "user", "content": "c"},
    {"role": "assistant", "content": "d", "loss_weight": 1.0},
]


def pipeline(*rows):
    made = Dataset.from_dict("a", {0: InMemoryShard(list(rows))})
    return Pipeline(StaticMixtureWorkSource(datasets=[made], mixture={"a": 1.0}))


def payloads(pipe):
    return [record.payload for record in pipe]


def upper(block):
    return {"type": "text", "text": block["kind"].upper()}


def lower(block):
    return {"type": "text", "text": block["kind"].lower()}


def test_conversations_become_messages_and_these_become_rows():
    pipe = pipeline({"id": 1, "conversations": TURNS}).normalize_chat(format="sharegpt")
    assert payloads(pipe) == [{"id": 1, "messages": MESSAGES}]
    assert payloads(pipe.expand_chat()) == [
        {"id": 1, "messages": MESSAGES[:3]},
        {"id": 1, "messages": MESSAGES},
    ]
    pipe.map_transform(lambda row: row if len(row["messages"]) > 3 else None)
    assert payloads(pipe) == [{"id": 1, "messages": MESSAGES}]


def test_rows_of_many_formats_may_stand_in_one_dataset(tmp_path):
    """In Parquet each has the fields of all others, as null."""
    told = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    rows = [
        {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
        {"instruction": "a", "output": "b"},
        {"prompt": "a", "completion": "b"},
        {"messages": told},
    ]
    for kind in ("jsonl", "parquet", "in_memory"):
        names = {name for row in rows for name in row} if kind == "parquet" else ()
        whole = [{**dict.fromkeys(sorted(names)), **row} for row in rows]
        made = dataset(kind, tmp_path / kind, whole, shards=1)
        source = StaticMixtureWorkSource(
            datasets=[made], mixture={"words": 1.0}, shuffle_shards=False
        )
        found = payloads(Pipeline(source).normalize_chat(format="auto"))
        assert [row["messages"] for row in found] == [told] * 4
        assert all(value is None for row in found for n, value in row.items() if n != "messages")


def test_blocks_go_through_the_function():
    content = [{"type": "text", "text": "x"}, {"type": "image", "kind": "Png"}]
    pipe = pipeline({"messages": [{"role": "user", "content": content}]})
    (row,) = payloads(pipe.normalize_chat(format="messages", on_block=upper))
    assert row["messages"][0]["content"] == [content[0], {"type": "text", "text": "PNG"}]


def test_the_plan_shows_the_call():
    told = pipeline({"a": 1}).normalize_chat(
        format="sharegpt", roles={"bot": "assistant"}, on_block=upper
    )
    assert (
        "NormalizeChat(format='sharegpt', roles=(('bot', 'assistant'),), on_block=upper)"
        in told.explain()
    )


def chat(**settings):
    return pipeline({"conversations": TURNS}).normalize_chat(**{"format": "sharegpt", **settings})


def test_a_checkpoint_knows_what_decides_the_rows():
    usual = chat().fingerprint()
    assert chat(parallelism=2).fingerprint() == usual
    others = [
        chat(format="auto"), chat(field="conversations"), chat(field_out="x"),
        chat(roles={"bot": "user"}), chat(keep_source=True), chat(on_block=upper),
        chat(on_block=lower), chat(on_block=upper, fingerprint="v1"),
        chat(on_block=upper, fingerprint="v1", keep_source=True),
    ]  # fmt: skip
    found = [each.fingerprint() for each in others]
    assert len({usual, *found}) == len(others) + 1
    assert chat(on_block=lower, fingerprint="v1").fingerprint() == found[-2]
    one, other = ({"a": "user", "b": "tool"}, {"b": "tool", "a": "user"})
    assert chat(roles=one).fingerprint() == chat(roles=other).fingerprint()


def test_another_function_is_a_change_of_functions():
    rows = [{"conversations": TURNS, "k": k} for k in range(6)]
    pipe = pipeline(*rows).normalize_chat(format="sharegpt", on_block=upper)
    items = iter(pipe)
    first = [next(items).payload["k"] for _ in range(2)]
    state = pipe.checkpoint()
    changed = pipeline(*rows).normalize_chat(format="sharegpt", on_block=lower)
    with pytest.raises(
        CheckpointError, match=r"(?s)allow=\{'functions'\}.*normalize_chat, on_block"
    ):
        next(iter(changed.restore(state)))
    left = [row["k"] for row in payloads(changed.restore(state, allow={"functions"}))]
    assert sorted(first + left) == list(range(6))
    same = pipeline(*rows).normalize_chat(format="sharegpt", on_block=upper)
    same.restore(state)
    left = [row["k"] for row in payloads(same)]
    assert sorted(first + left) == list(range(6))


def test_a_recipe_in_toml_says_it(tmp_path):
    dataset("jsonl", tmp_path / "a", [{"chat": [{"from": "bot", "value": "x"}]}], name="a")
    (tmp_path / "job.toml").write_text(
        f"""
        [[datasets]]
        name = "a"
        path = "{tmp_path / "a"}"

        [source]
        mixture = {{ a = 1.0 }}

        [[steps]]
        call = "normalize_chat"
        format = "sharegpt"
        field = "chat"
        roles = {{ bot = "assistant" }}
        """,
        encoding="utf-8",
    )
    pipe = load_recipe(tmp_path / "job.toml")()
    assert payloads(pipe) == [{"messages": [{"role": "assistant", "content": "x"}]}]


def test_an_error_names_the_row_and_what_to_do(tmp_path):
    rows = [{"conversations": TURNS}, {"conversations": [{"from": "humann", "value": ""}]}]
    made = dataset("jsonl", tmp_path, rows, name="a")
    source = StaticMixtureWorkSource(datasets=[made], mixture={"a": 1.0}, shuffle_shards=False)
    with pytest.raises(DataError) as told:
        payloads(Pipeline(source).normalize_chat(format="sharegpt"))
    assert str(told.value) == (
        "normalize_chat: message 0 of field 'conversations' must have a known word for its role, "
        "got 'humann' on dataset 'a', shard '001.jsonl', row 0; write one that is known (did you "
        "mean 'human'?), or add it, as in roles={'bot': 'assistant'}, or pass on_error='skip' or "
        "'quarantine' to its dataset"
    )
    with pytest.raises(ExecutionError, match=r"^normalize_chat: the function 'upper' raised KeyEr"):
        payloads(
            pipeline({"messages": [{"role": "user", "content": [{}]}]}).normalize_chat(
                format="auto", on_block=upper
            )
        )


@pytest.mark.filterwarnings("ignore:expand_chat")
def test_a_conversation_becomes_a_row_of_each_answer():
    def said(role, text):
        return {"role": role, "content": text}

    chat = [said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d")]
    rows = [{"messages": chat}, {"messages": chat[:2]}, {"messages": chat[:1]}]
    records = list(pipeline(*rows).expand_chat())
    assert [len(r.payload["messages"]) for r in records] == [2, 4, 2]
    assert [r.meta.lineage for r in records] == [(0,), (1,), ()]


async def awaited(block):
    return block


@pytest.mark.parametrize(
    ("given", "kind", "problem"),
    [
        ({"format": "sharegtp"}, PlanError, "format='sharegtp' is unknown; did you mean 'sharegp"),
        ({"format": None}, PlanError, "format=None is unknown; known are: alpaca, auto"),
        ({"format": "alpaca", "field": "x"}, PlanError, "format='alpaca' has no one field of mes"),
        ({"field": ""}, PlanError, "field must be the name of a field, got ''"),
        ({"field": 3}, PlanError, "field must be the name of a field, got 3"),
        ({"field_out": None}, PlanError, "field_out must be the name of a field, got None"),
        ({"roles": ["bot"]}, WrongKindError, "roles must be a dict of words and their roles, got"),
        ({"roles": {1: "user"}}, PlanError, "roles must have words as keys, got 1"),
        ({"roles": {"bot": "asistant"}}, PlanError, "a role='asistant' is unknown; did you mean"),
        ({"roles": {"bot": 3}}, PlanError, "a role=3 is unknown; known are"),
        ({"on_block": "upper"}, WrongKindError, "on_block must be a function, got 'upper'"),
        ({"on_block": awaited}, WrongKindError, "on_block must return what it makes, got"),
        ({"fingerprint": "v1"}, PlanError, "fingerprint is of on_block; pass both, or neither"),
        ({"on_block": upper, "fingerprint": 1}, WrongKindError, "fingerprint must be a string"),
        ({"keep_source": 1}, PlanError, "keep_source must be True or False, got 1"),
        ({"parallelism": 0}, PlanError, "parallelism must be an integer of at least 1"),
        ({"placement": "far"}, PlanError, "placement='far' is unknown"),
        ({"fmt": "auto"}, WrongKindError, "there is no argument 'fmt'"),
    ],
)
def test_a_mistake_is_refused_where_it_is_made(given, kind, problem):
    with pytest.raises(kind, match=problem) as told:
        chat(**given)
    assert str(told.value).startswith("normalize_chat: ")


def test_it_cannot_come_after_packing_or_batches():
    with pytest.raises(PlanError, match="normalize_chat: it cannot come after batch"):
        pipeline({"a": 1}).batch(1).normalize_chat(format="auto")
    packed = pipeline({"input_ids": [1, 2]}).pack_flat(4, algorithm="wrap")
    with pytest.raises(PlanError, match="normalize_chat: it cannot come after pack_flat"):
        packed.normalize_chat(format="auto")


def test_worker_processes_have_the_function_too():
    content = [{"type": "image", "kind": "Png"}]
    rows = [{"messages": [{"role": "human", "content": content}], "k": k} for k in range(20)]
    calls = {"format": "messages", "on_block": upper, "roles": {"human": "user"}}
    made = payloads(pipeline(*rows).normalize_chat(**calls))
    assert made[0]["messages"] == [{"role": "user", "content": [{"type": "text", "text": "PNG"}]}]
    there = pipeline(*rows).normalize_chat(**calls).options(runner="process", max_workers=1)
    assert payloads(there) == made


def test_a_field_of_messages_has_a_name():
    with pytest.raises(PlanError, match=r"^expand_chat: field must be the name"):
        pipeline({"a": 1}).expand_chat(field="")
