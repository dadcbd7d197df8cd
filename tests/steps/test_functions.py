"""Calls that run functions on rows: before tokens, between steps, and behind packing."""

from functools import partial

import pytest

from tests.threads_inside import counting
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


async def awaited(row):
    return row


class Yielding:
    def __call__(self, row):
        yield row


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda p: p.map_transform(3), TypeError, "map_transform: fn must be a function, got 3"),
        (lambda p: p.map_transform(awaited), TypeError, "with 'async def'; write it with 'def'"),
        (lambda p: p.map_transform(Yielding()), TypeError, "with 'yield'; write it with 'return'"),
        (lambda p: p.map_transform(partial(awaited)), TypeError, "with 'async def'"),
        (lambda p: p.batch(2).map_batch(awaited), TypeError, "map_batch: fn .*with 'async def'"),
        (lambda p: p.map_transform(len, fingerprint=3), TypeError, "fingerprint must be a string"),
        (lambda p: p.batch(2).map_batch(len, fingerprint=b"v"), TypeError, "got b'v'"),
        (
            lambda p: p.decode_text(max_batch=0),
            ValueError,
            "max_batch must be .* at least 1, got 0",
        ),
        (
            lambda p: p.pack_flat(8, algorithm="wrap", tokens_field="k").decode_text(),
            ValueError,
            "decode_text: it cannot come after pack_flat",
        ),
        (lambda p: p.map_batch(len), ValueError, "map_batch: it must come after batch"),
        (lambda p: p.batch(2).map_transform(len), ValueError, "use map_batch"),
        (
            lambda p: p.map_transform(len, drop_none=1),
            ValueError,
            "drop_none must be True or False",
        ),
        (lambda p: p.map_transform(len, parallelism=0), ValueError, "parallelism must be"),
        (
            lambda p: p.batch(2).map_batch(len, parallelism=0),
            ValueError,
            "map_batch: parallelism must be an integer of at least 1, got 0",
        ),
        (
            lambda p: p.materialize(parallelism="2"),
            ValueError,
            "materialize: parallelism must be an integer of at least 1, got '2'",
        ),
        (lambda p: p.map_transform(len, placement="remote"), ValueError, "not there yet"),
        (lambda p: p.decode_text(encoding="utf-9"), ValueError, "turns bytes into text"),
        (lambda p: p.decode_text(errors="strct"), ValueError, "did you mean 'strict'"),
        (lambda p: p.decode_text(encoding="undefined"), ValueError, "turns bytes into text"),
        (lambda p: p.decode_text(encoding="hex"), ValueError, "encoding must be one by which"),
        (lambda p: p.decode_text(encoding="rot13"), ValueError, "turns bytes into text, got 'rot1"),
        (lambda p: p.decode_text(encoding="base64"), ValueError, "use 'utf-8' or 'latin-1'"),
        (lambda p: p.decode_text(encoding="\0"), ValueError, "encoding must be one by which"),
        (lambda p: p.decode_text(encoding=8), ValueError, "turns bytes into text, got 8"),
        (lambda p: p.decode_text(fields=()), ValueError, "fields must be names"),
        (lambda p: p.decode_text(fields=5), ValueError, "fields must be names of fields, got 5"),
        (lambda p: p.decode_text(fields=[5]), ValueError, r"names of fields, got \[5\]; pass one"),
        (lambda p: p.decode_text(fields=None), ValueError, "names of fields, got None"),
        (lambda p: p.take(3).batch(2), ValueError, "batch: it cannot come after take"),
        (
            lambda p: p.take(3).prefetch(),
            ValueError,
            "^prefetch: it cannot come after take; call prefetch earlier",
        ),
        (
            lambda p: p.take(3).fetch_parallelism(2),
            ValueError,
            "^fetch_parallelism: it cannot come after take; call fetch_parallelism earlier",
        ),
        (lambda p: p.take(0), ValueError, "take: n must be an integer of at least 1"),
    ],
)
def test_a_mistake_is_refused_where_it_is_made(call, kind, message):
    with pytest.raises(kind, match=message):
        call(pipeline())


SHARED = {"tags": []}


def share(row):
    row["tags"] = SHARED["tags"]
    return row


def mark(row):
    row["tags"].append(row["k"])
    return row


@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_what_a_function_shares_between_rows_the_next_one_gets_for_itself(runner):
    for steps in (
        pipeline().map_transform(share).map_transform(mark),
        pipeline().shuffle(4).map_transform(share).map_transform(mark),
        pipeline().map_transform(share).materialize().map_transform(mark),
    ):
        made = payloads(steps.options(runner=runner))
        assert [row["tags"] for row in made] == [[row["k"]] for row in made]
    assert SHARED == {"tags": []}


def test_packed_rows_share_nothing_either():
    def tokens(row):
        return {"input_ids": [row["k"]] * 3}

    def share(row):
        return {**row, "tags": SHARED["tags"]}

    def mark(row):
        row["tags"].append(1)
        return row

    pipe = pipeline().map_transform(tokens).pack_flat(9, algorithm="wrap")
    made = payloads(pipe.map_transform(share).map_transform(mark))
    assert {tuple(row["tags"]) for row in made} == {(1,)}
    assert SHARED == {"tags": []}


def test_so_many_threads_are_inside_a_function_as_it_allows():
    count, most = counting(seconds=0.001)
    pipe = pipeline([{"k": i} for i in range(200)], chunk_size=10).map_transform(
        count, parallelism=1
    )
    list(pipe.options(runner="threads", canonical_replicas=2, max_workers=2))
    assert most() == 1


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


def test_head_and_collect_run_from_the_beginning_and_disturb_nothing():
    pipe = pipeline().batch(4)
    running = iter(pipe)
    next(running)
    assert pipe.head(6)["k"].to_pylist() == list(range(6))
    assert [batch.ids[0][2] for batch in pipe.collect(2)] == [0, 4]
    assert next(running).ids[0][2] == 4
    restored = pipeline().batch(4).restore(pipe.checkpoint())
    assert restored.head(1)["k"].to_pylist() == [0]
    assert restored.collect(1)[0].ids[0][2] == 0
    assert next(iter(restored)).ids[0][2] == 8
    assert pipeline().take(3).head(5).num_rows == 3
    with pytest.raises(PlanError, match="head: n must be an integer of at least 1"):
        pipe.head(0)
