"""Calls that run functions on rows: before tokens, between steps, and behind packing."""

import pytest

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.errors import ExecutionError, PlanError

ROWS = [{"text": f"word {i}", "k": i} for i in range(40)]


def pipeline(rows=ROWS, **settings):
    dataset = Dataset.from_dict("a", {0: InMemoryShard(rows)})
    return Pipeline(
        StaticMixtureWorkSource(
            datasets=[dataset], mixture={"a": 1.0}, shuffle_shards=False, **settings
        )
    )


def payloads(pipe):
    return [record.payload for record in pipe]


def odd(row):
    return row if row["k"] % 2 else None


def longer(row):
    row["text"] += "!"
    return row


def test_a_function_replaces_rows_and_none_drops_them():
    pipe = pipeline().map_transform(odd).map_transform(longer)
    assert payloads(pipe) == [{"text": f"word {i}!", "k": i} for i in range(1, 40, 2)]
    assert pipe.accounting()["a"]["rows_dropped"] == 20
    assert "functions=[odd, longer]" in pipe.explain()


def test_none_lets_a_row_pass_as_it_was_where_that_is_asked_for():
    def spoil(row):
        row["text"] = "spoilt"

    assert payloads(pipeline().map_transform(spoil, drop_none=False)) == ROWS


def test_rows_are_the_functions_own():
    list(pipeline(ROWS).map_transform(longer))
    assert ROWS[0] == {"text": "word 0", "k": 0}


def test_a_function_makes_the_tokens_that_are_packed():
    def tokens(row):
        return {"input_ids": [row["k"]] * 3, "loss_mask": [0, 1, 1]}

    pipe = pipeline().map_transform(tokens).pack_flat(6, algorithm="wrap").batch(2)
    made = next(iter(pipe)).to_training(return_labels=True)
    assert made["input_ids"].tolist() == [[0, 0, 0, 1, 1], [2, 2, 2, 3, 3]]
    assert made["labels"].tolist() == [[0, 0, -100, 1, 1], [2, 2, -100, 3, 3]]


def test_a_function_sees_packed_rows():
    def count(row):
        return {**row, "ones": int((row["input_ids"] == 1).sum())}

    def tokens(row):
        return {"input_ids": [row["k"] % 3] * 3}

    pipe = (
        pipeline()
        .map_transform(tokens)
        .pack_flat(9, algorithm="wrap")
        .map_transform(lambda row: {**row, "ones": list(row["input_ids"]).count(1)})
    )
    first, second, *_ = payloads(pipe.take(2))
    assert list(first["input_ids"]) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert (first["ones"], second["ones"]) == (3, 3)


def test_packed_rows_stay_trainable_behind_a_function():
    def tokens(row):
        return {"input_ids": [1] * (1 + row["k"] % 3)}

    packed = (
        pipeline()
        .map_transform(tokens)
        .pack_flat(8, algorithm="first_fit", num_bins=2, pad_token_id=0)
    )
    plain = [b.to_training(return_labels=True, return_padding_mask=True) for b in packed.batch(2)]
    again = (
        pipeline()
        .map_transform(tokens)
        .pack_flat(8, algorithm="first_fit", num_bins=2, pad_token_id=0)
    )
    mapped = again.map_transform(lambda row: row).batch(2)
    for one, other in zip(plain, mapped, strict=True):
        made = other.to_training(return_labels=True, return_padding_mask=True)
        assert made["labels"].tolist() == one["labels"].tolist()
        assert made["padding_mask"].tolist() == one["padding_mask"].tolist()
        assert made["ids"] == one["ids"]


def test_a_function_of_batches_is_called_once_a_delivered_batch():
    seen = []

    def look(batch):
        seen.append(batch.ids[0][2])
        return None if len(seen) == 2 else batch

    found = list(pipeline().batch(10).map_batch(look))
    assert seen == [0, 10, 20, 30]
    assert [batch.ids[0][2] for batch in found] == [0, 20, 30]


def test_text_is_decoded():
    rows = [{"text": "Größe\r\nja".encode()}, {"text": 3}, {"other": 1}]
    assert payloads(pipeline(rows).decode_text(lowercase=True)) == [
        {"text": "größe\nja"}, {"text": "3"}, {"other": 1},
    ]  # fmt: skip


def test_a_conversation_becomes_a_row_of_each_answer():
    def said(role, text):
        return {"role": role, "content": text}

    chat = [said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d")]
    rows = [{"messages": chat}, {"messages": chat[:2]}, {"messages": chat[:1]}]
    records = list(pipeline(rows).expand_chat())
    assert [len(r.payload["messages"]) for r in records] == [2, 4, 2]
    assert [r.meta.lineage for r in records] == [(0,), (1,), ()]


def test_an_error_names_the_function_and_the_row():
    def broken(row):
        if row["k"] == 7:
            raise KeyError("missing")
        return row

    pipe = iter(pipeline().map_transform(broken))
    found = [next(pipe).payload["k"] for _ in range(7)]
    assert found == list(range(7))
    with pytest.raises(ExecutionError, match=r"broken.*KeyError: 'missing'.*row 7"):
        next(pipe)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda p: p.map_transform(3), TypeError, "map_transform: fn must be a function, got 3"),
        (lambda p: p.map_batch(len), ValueError, "map_batch: it must come after batch"),
        (lambda p: p.batch(2).map_transform(len), ValueError, "use map_batch"),
        (
            lambda p: p.map_transform(len, drop_none=1),
            ValueError,
            "drop_none must be True or False",
        ),
        (lambda p: p.map_transform(len, parallelism=0), ValueError, "parallelism must be"),
        (lambda p: p.map_transform(len, placement="remote"), ValueError, "not there yet"),
        (lambda p: p.decode_text(encoding="utf-9"), ValueError, "encoding must be one that Python"),
        (lambda p: p.decode_text(errors="strct"), ValueError, "did you mean 'strict'"),
        (lambda p: p.decode_text(fields=()), ValueError, "fields must be names"),
        (lambda p: p.expand_chat(field=""), ValueError, "field must be the name"),
        (lambda p: p.take(3).batch(2), ValueError, "batch: it cannot come after take"),
        (lambda p: p.take(0), ValueError, "take: n must be an integer of at least 1"),
    ],
)
def test_a_mistake_is_refused_where_it_is_made(call, kind, message):
    with pytest.raises(kind, match=message):
        call(pipeline())


def test_steps_behind_a_barrier_stay_there():
    pipe = pipeline().map_transform(odd).materialize().map_transform(longer)
    assert "fuse_maps" not in pipe.explain()
    assert payloads(pipe) == payloads(pipeline().map_transform(odd).map_transform(longer))


def test_a_checkpoint_knows_functions():
    def first(row):
        return row

    def second(row):
        return longer(row)

    state = pipeline().map_transform(first).batch(2).checkpoint()
    with pytest.raises(RuntimeError, match="another recipe"):
        list(pipeline().map_transform(second).batch(2).restore(state))
    named = pipeline().map_transform(first, fingerprint="v1").batch(2).checkpoint()
    assert list(pipeline().map_transform(second, fingerprint="v1").batch(2).restore(named))


def test_packing_looks_at_what_functions_give():
    with pytest.raises(PlanError, match="no token field"):
        pipeline().map_transform(longer).pack_flat(8, algorithm="wrap")
