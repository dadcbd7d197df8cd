"""The call that tokenizes conversations: what it refuses, what it tells, and what it goes with."""

import json
import pickle
import warnings

import numpy as np
import polars as pl
import pytest

from tests.chats import (
    CHATML,
    TAGGED,
    byte_tokenizer,
    delivered,
    learned,
    on,
    pipeline_of,
    said,
    write_tokenizer,
)
from zephon import InMemoryShard, MixtureSpec, Pipeline, StaticMixtureWorkSource
from zephon.errors import CheckpointError, PlanError, TokenizerError, WrongKindError
from zephon.io import Dataset
from zephon.toml_recipe import TomlRecipe

CHATS = [said("hi", "yes"), said("how?", "so", "thanks", "welcome"), said("system: s", "a", "b")]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"), TAGGED)


def chats(tokenizer, **named):
    return pipeline_of(CHATS, tokenizer_id=tokenizer, **named)


@pytest.mark.parametrize(
    ("named", "kind", "said_of_it"),
    [
        ({"span_source": "prefix"}, PlanError, "span_source='prefix'.*prefix_diff"),
        ({"loss_scope": "all"}, PlanError, "loss_scope='all'.*all_assistant"),
        ({"special_tokens": "both"}, PlanError, "special_tokens='both'"),
        ({"null_fields": "ignore"}, PlanError, "null_fields"),
        ({"max_length": 1}, PlanError, "max_length must be an integer of at least 2"),
        ({"max_length": "8"}, PlanError, "max_length"),
        ({"field": ""}, PlanError, "field must be the name of a field, got ''; pass one"),
        ({"tools_field": 3}, WrongKindError, "tools_field must be the name of a field, got 3"),
        ({"mask_field_out": "input_ids"}, PlanError, "another name"),
        ({"mask_field_out": "positions"}, PlanError, "another name"),
        ({"chat_template_kwargs": {"tools": []}}, PlanError, "cannot set 'tools'"),
        ({"chat_template_kwargs": {"max_length": 3}}, PlanError, "cannot set 'max_length'"),
        ({"chat_template_kwargs": {"a": {1}}}, PlanError, "JSON values"),
        ({"chat_template_kwargs": {1: 2}}, WrongKindError, "names as its keys, got 1"),
        ({"chat_template_kwargs": "a"}, WrongKindError, "must be a dict"),
        ({"apply_chat_template": False, "chat_template": CHATML}, PlanError, "means nothing"),
        ({"apply_chat_template": False, "span_source": "prefix_diff"}, PlanError, "but one way"),
        ({"apply_chat_template": 1}, PlanError, "True or False"),
        ({"chat_template": "{% if %}"}, PlanError, "line 1"),
        ({"chat_template": "nowhere"}, PlanError, "no name of a template"),
        ({"chat_template": CHATML, "span_source": "generation_tags"}, PlanError, "has none"),
        ({"supervise_header": True, "span_source": "generation_tags"}, PlanError, "template says"),
        ({"supervise_header": 1}, PlanError, "supervise_header must be True or False"),
        ({"special_tokens": "none", "eos_token_id": 3}, PlanError, "has no place"),
        ({"eos_token": "<|eos|>", "eos_token_id": 3}, PlanError, "name the same token"),
        ({"loss_scope": "last_span", "loss_on_last_turn_only": True}, PlanError, "say the same"),
        ({"parallelism": 0}, PlanError, "parallelism"),
        ({"placement": "remote"}, NotImplementedError, "not there yet"),
        ({"fields": "messages"}, TypeError, "there is no argument 'fields'"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_called(tokenizer, named, kind, said_of_it):
    with pytest.raises(kind, match=said_of_it):
        chats(tokenizer, **named)


def test_a_tokenizer_must_be_named(tokenizer):
    with pytest.raises(PlanError, match="pass tokenizer_id or tokenizer"):
        pipeline_of(CHATS)
    with pytest.raises(PlanError, match="tokenizer_id must be a path, got int"):
        pipeline_of(CHATS, tokenizer_id=3)
    with pytest.raises(PlanError, match="eos_token works with tokenizer_id only"):
        pipeline_of(CHATS, tokenizer=byte_tokenizer(), chat_template=TAGGED, eos_token="<|eos|>")
    with pytest.raises(TokenizerError, match="expected a chat template"):
        pipeline_of(CHATS, tokenizer=byte_tokenizer())


def test_a_tokenizer_object_and_its_folder_give_the_same(tokenizer):
    given = pipeline_of(CHATS, tokenizer=byte_tokenizer(), chat_template=TAGGED, eos_token_id=257)
    for one, other in zip(delivered(given), delivered(chats(tokenizer)), strict=True):
        np.testing.assert_array_equal(one["input_ids"], other["input_ids"])


def test_the_old_word_for_the_last_span(tokenizer):
    with pytest.warns(FutureWarning, match="loss_scope='last_span'"):
        old = chats(tokenizer, loss_on_last_turn_only=True)
    new = chats(tokenizer, loss_scope="last_span")
    assert list(map(learned, delivered(old))) == list(map(learned, delivered(new)))


def test_a_template_without_tags_is_warned_of_once_and_chosen_ways_are_not(tokenizer):
    with pytest.warns(UserWarning, match="marks nothing with"):
        chats(tokenizer, chat_template=CHATML)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chats(tokenizer, chat_template=CHATML, span_source="prefix_diff")
        chats(tokenizer)


def test_it_stands_once_and_before_packing(tokenizer):
    with pytest.raises(PlanError, match="it was called before"):
        chats(tokenizer).tokenize_chat(tokenizer_id=tokenizer)
    with pytest.raises(PlanError, match="cannot come after pack_flat"):
        chats(tokenizer).pack_flat(64, algorithm="wrap").tokenize_chat(tokenizer_id=tokenizer)
    with pytest.raises(PlanError, match="cannot come after tokenize_chat"):
        chats(tokenizer).tokenize(tokenizer_id=tokenizer, field="text")


def test_templates_are_chosen_by_name_and_by_tools(tmp_path):
    named = [
        {"name": "default", "template": TAGGED},
        {"name": "tool_use", "template": "tools:" + TAGGED},
        {"name": "short", "template": "short:" + TAGGED},
    ]
    folder = write_tokenizer(tmp_path, named)
    rows = [{"messages": CHATS[0], "tools": tools} for tools in (None, [], [{"name": "f"}])]
    made = [learned(payload) for payload in delivered(pipeline_of(rows, tokenizer_id=folder))]
    assert [text.partition("<")[0] for text in made] == ["", "tools:", "tools:"]
    short = delivered(pipeline_of(rows, tokenizer_id=folder, chat_template="short"))
    assert all(learned(payload).startswith("short:") for payload in short)


@pytest.mark.parametrize("weighted", [False, True])
def test_masks_go_through_packing_to_training(tokenizer, weighted):
    rows = [list(map(dict, messages)) for messages in CHATS]
    if weighted:
        rows[0][1]["loss_weight"] = 0.25
    named = {"tokenizer_id": tokenizer, "special_tokens": "none", "loss_weights": weighted}
    apart = delivered(pipeline_of(rows, **named))
    packed = pipeline_of(rows, **named).pack_flat(
        400, algorithm="best_fit", num_bins=2, pad_token_id=0
    )
    (batch,) = packed.batch(1)
    (payload,) = [record.payload for record in batch.records]
    mask = np.concatenate([each["loss_mask"] for each in apart])
    tokens = np.concatenate([each["input_ids"] for each in apart])
    np.testing.assert_array_equal(np.array(payload["loss_mask"])[: len(mask)], mask)
    made = batch.to_training(return_labels=True, return_loss_weights=True, dtype=np.int64)
    labels, counts = made["labels"][0], made["loss_weights"][0]
    where = np.zeros(len(labels), bool)
    where[: len(mask) - 1] = mask[1:] > 0
    np.testing.assert_array_equal(labels[where], tokens[1:][mask[1:] > 0])
    assert (labels[~where] == -100).all()
    np.testing.assert_array_equal(counts[: len(mask) - 1], mask[1:].astype(np.float32))
    assert counts.dtype == np.float32
    assert (0.25 in counts) == weighted


def test_filters_and_functions_go_before_and_functions_after(tokenizer, tmp_path):
    rows = [{"messages": m, "turns": len(m)} for m in CHATS]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = Dataset.from_path("chats", tmp_path, schema={"turns": "int64"})
    source = StaticMixtureWorkSource([data], MixtureSpec({"chats": 1.0}), seed=1)
    pipeline = (
        Pipeline(source)
        .filter(pl.col("turns") > 2)
        .expand_chat()
        .tokenize_chat(tokenizer_id=tokenizer)
        .map_transform(lambda row: {**row, "learned": int(row["loss_mask"].sum())})
    )
    payloads = delivered(pipeline)
    assert len(payloads) == 3  # two turns of one, one of the other
    for payload in payloads:
        assert payload["learned"] == int(np.array(payload["loss_mask"]).sum()) > 0
    kept = on(data, tokenizer_id=tokenizer, preserve_upstream_payload=True)
    assert [p["turns"] for p in delivered(kept.filter(pl.col("turns") > 2))] == [4, 3]


def test_rows_that_are_dropped_are_in_the_accounting(tokenizer):
    rows = [*CHATS, said("nobody answers")]
    pipeline = pipeline_of(rows, tokenizer_id=tokenizer).pack_flat(400, algorithm="wrap").batch(1)
    with pytest.warns(UserWarning, match="no token is learned"):
        list(pipeline)
    assert "dropped" in repr(pipeline.accounting())


def test_a_checkpoint_knows_its_template(tokenizer, tmp_path):
    before = chats(tokenizer).batch(1)
    stream = iter(before)
    next(stream)
    state = before.checkpoint()
    moved = tmp_path / "moved.jinja"
    moved.write_text(TAGGED)
    for same in (chats(tokenizer), chats(tokenizer, chat_template=str(moved))):
        pipeline = same.batch(1)
        pipeline.restore(state)
        assert len(list(pipeline)) == 2
    for named in ({"chat_template": TAGGED + " "}, {"loss_scope": "last_span"}):
        with pytest.raises(CheckpointError):
            pipeline = chats(tokenizer, **named).batch(1)
            pipeline.restore(state)
            next(iter(pipeline))


def test_a_pipeline_travels_and_runs_in_processes(tokenizer, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"messages": m}) for m in CHATS))
    here = on(Dataset.from_path("chats", tmp_path), tokenizer_id=tokenizer)
    wanted = [learned(payload) for payload in delivered(here)]
    sent = pickle.loads(pickle.dumps(on(Dataset.from_path("chats", tmp_path),
                                        tokenizer_id=tokenizer)))  # fmt: skip
    assert [learned(payload) for payload in delivered(sent)] == wanted
    apart = on(Dataset.from_path("chats", tmp_path), tokenizer_id=tokenizer)
    apart.options(runner="process", max_workers=2)
    assert [learned(payload) for payload in delivered(apart)] == wanted


def test_a_toml_recipe_can_say_it(tokenizer, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"messages": m}) for m in CHATS))
    tables = {
        "datasets": [{"name": "chats", "path": str(tmp_path)}],
        "source": {"mixture": {"chats": 1.0}, "seed": 1},
        "steps": [
            {
                "call": "tokenize_chat",
                "tokenizer_id": tokenizer,
                "chat_template_kwargs": {"add": True},
            },
            {"batch": 1},
        ],
    }
    payloads = [record.payload for batch in TomlRecipe("r", tables)() for record in batch.records]
    assert len(payloads) == 3


def test_the_plan_says_what_is_done_with_nulls(tokenizer):
    text = chats(tokenizer, null_fields="keep").batch(1).explain()
    assert "keeps keys that are null in Parquet datasets" in text
    assert "{% for" not in text
    text = chats(tokenizer).batch(1).explain()
    assert "renders by template 'default' (SHA-256 " in text
    assert "leaves out keys that are null" in text


def test_the_last_turn_that_is_left_uses_its_conversation_up(tokenizer):
    def all_but_the_last(row):
        return None if len(row["messages"]) == 6 else row

    rows = [{"messages": said("a", "b", "c", "d", "e", "f")}, {"messages": said("x", "y")}]
    shard = InMemoryShard(rows)
    source = StaticMixtureWorkSource(
        [Dataset.from_dict("chats", {0: shard})], MixtureSpec({"chats": 1.0}), seed=1
    )
    by_function = Pipeline(source).expand_chat().map_transform(all_but_the_last)
    silent = "{% for m in messages %}{% generation %}{{ m.content if messages|length < 6 else '' }}"
    silent = "-" + silent + "{% endgeneration %}{% endfor %}"
    by_mask = (
        Pipeline(source)
        .expand_chat()
        .tokenize_chat(tokenizer_id=tokenizer, chat_template=silent, special_tokens="none")
    )
    for pipeline in (by_function, by_mask):
        metas = [record.meta for batch in pipeline.batch(1) for record in batch.records]
        parts = [(meta.lineage, *meta.component_sample_counts.values()) for meta in metas]
        assert sorted(parts) == [((), 1), ((0,), 0), ((1,), 1)]
        refs = [ref for meta in metas for ref in meta.contribution_refs()]
        assert sum(ref.is_last_child for ref in refs) == 2
