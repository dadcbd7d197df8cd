"""Counting rows that no lane drew: through the plan's segment, or by a function of the user's."""

import os

import numpy as np
import pytest

from tests import written
from zephon import Pipeline
from zephon.errors import ExecutionError, ShardError
from zephon.exec.counting import MeasureCount, SegmentCount
from zephon.exec.launch import tokenizers_of
from zephon.exec.priming import counting
from zephon.work import StaticMixtureWorkSource, TokenEstimation

WORDS = ["ash", "birch ash", "", "größe 木", "the tree and the wood " * 9, "d'oak"]


def texts(count=40):
    return [{"id": i, "text": WORDS[i % len(WORDS)] * (1 + i % 3)} for i in range(count)]


def estimated(*datasets, **estimation):
    return StaticMixtureWorkSource(
        datasets=list(datasets),
        mixture={each.name: 1.0 for each in datasets},
        token_estimation=TokenEstimation(**estimation),
    )


def tokenized(source, folder, **changes):
    settings = {"tokenizer_id": folder, "field": "text", "special_tokens": "none", **changes}
    return Pipeline(source).tokenize(**settings).options(runner="inline")


def count_of(pipeline):
    plan = pipeline._compiled()
    tokenizers = tokenizers_of(plan, pipeline._options)
    return counting(plan, pipeline._source, pipeline._options, tokenizers)


def all_rows(dataset):
    counts = dataset.counts()
    return np.repeat(np.arange(len(counts)), counts), np.concatenate([np.arange(n) for n in counts])


@pytest.mark.parametrize("kind", written.KINDS)
@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_the_plans_own_tokens_are_counted(kind, runner, tmp_path, tokenizer_file):
    data = written.dataset(kind, tmp_path, texts())
    encode = written.texts_to_tokens(tokenizer_file)
    wanted = [len(encode(row["text"])) for row in texts()]
    with count_of(tokenized(estimated(data), tokenizer_file).options(runner=runner)) as count:
        assert isinstance(count, SegmentCount)
        shards, rows = all_rows(data)
        assert count("words", shards, rows).tolist() == wanted
        backwards = count("words", shards[::-1], rows[::-1])
        assert backwards.tolist() == wanted[::-1]
        assert count("words", shards[:0], rows[:0]).tolist() == []


@pytest.mark.parametrize(
    ("changes", "of"),
    [
        ({"special_tokens": "bos_eos"}, lambda n: n + 2),
        ({"max_length": 4, "truncation": True}, lambda n: min(n, 4)),
        ({"max_length": 4, "split_long_samples": True}, lambda n: n),
        ({"max_length": 4, "truncation": True, "padding": "max_length"}, lambda n: 4),
        ({"preserve_upstream_payload": True}, lambda n: n),
    ],
)
def test_the_splits_of_a_row_add_up_and_all_that_the_step_does_counts(
    changes, of, tmp_path, tokenizer_file
):
    data = written.dataset("parquet", tmp_path, texts())
    encode = written.texts_to_tokens(tokenizer_file)
    with count_of(tokenized(estimated(data), tokenizer_file, **changes)) as count:
        found = count("words", *all_rows(data))
    assert found.tolist() == [of(len(encode(row["text"]))) for row in texts()]


def test_token_lists_are_as_long_as_they_are(tmp_path):
    rows = [{"input_ids": [7] * (i % 5)} for i in range(30)]
    data = written.dataset("jsonl", tmp_path, rows)
    with count_of(Pipeline(estimated(data)).pack_flat(8, algorithm="wrap")) as count:
        assert count("words", *all_rows(data)).tolist() == [i % 5 for i in range(30)]


@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_a_bad_row_hides_no_other(runner, tmp_path, tokenizer_file):
    rows = [{"text": "ash"} for _ in range(300)]
    bad = {0, 7, 8, 100, 299}
    lines = ["{broken" if i in bad else row for i, row in enumerate(rows)]
    data = written.dataset("jsonl", tmp_path, lines, shards=2)
    with count_of(tokenized(estimated(data), tokenizer_file).options(runner=runner)) as count:
        found = count("words", *all_rows(data))
    assert set(np.flatnonzero(found < 0)) == bad
    assert len(set(found[found >= 0])) == 1


def test_a_shard_that_cannot_be_read_is_no_bad_row(tmp_path, tokenizer_file):
    data = written.dataset("parquet", tmp_path, texts())
    os.truncate(tmp_path / "001.parquet", 40)
    with (
        count_of(tokenized(estimated(data), tokenizer_file)) as count,
        pytest.raises(ShardError, match=r"shard '001\.parquet'"),
    ):
        count("words", *all_rows(data))


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "in_memory"])
@pytest.mark.parametrize("runner", ["inline", "threads"])
def test_rows_are_chosen_by_the_sizes_of_the_columns_that_the_plan_reads(
    kind, runner, tmp_path, tokenizer_file
):
    data = written.dataset(kind, tmp_path, texts())
    seen = {}

    def choose(number, sizes):
        seen[number] = sizes.tolist()
        return np.array([1, 2])

    places = [(1, np.arange(3, 9)), (0, np.arange(0, 5))]
    encode = written.texts_to_tokens(tokenizer_file)
    with count_of(tokenized(estimated(data), tokenizer_file).options(runner=runner)) as count:
        found = count.count_chosen("words", places, choose)
    rows = [[texts()[20 * shard + int(row)]["text"] for row in some] for shard, some in places]
    assert [seen[0], seen[1]] == [[len(t.encode()) for t in some] for some in rows]
    assert [f.tolist() for f in found] == [[len(encode(t)) for t in some[1:3]] for some in rows]


def test_where_a_row_is_bad_no_sizes_are_known(tmp_path, tokenizer_file):
    data = written.dataset("jsonl", tmp_path, [{"text": "ash"}, "{broken", {"text": "ash"}])
    with count_of(tokenized(estimated(data), tokenizer_file)) as count:
        (found,) = count.count_chosen(
            "words",
            [(0, np.arange(2))],
            lambda number, sizes: np.array([0, 1]) if sizes is None else np.array([], np.int64),
        )
    assert found[0] > 0
    assert found[1] == -1


def test_two_datasets_are_told_apart(tmp_path, tokenizer_file):
    short = written.dataset("parquet", tmp_path / "s", [{"text": "ash"}] * 5, name="short")
    long = written.dataset("jsonl", tmp_path / "l", [{"text": "ash " * 50}] * 5, name="long")
    with count_of(tokenized(estimated(short, long), tokenizer_file)) as count:
        here, there = (count(each.name, *all_rows(each)) for each in (short, long))
    assert here.max() < there.min()


@pytest.mark.parametrize("kind", written.KINDS)
def test_a_function_of_the_users_sees_whole_rows(kind, tmp_path, tokenizer_file):
    data = written.dataset(kind, tmp_path, texts())
    seen = []

    def measure(row):
        seen.append(row["text"])
        return np.int64(row["id"] * 10)

    pipeline = tokenized(estimated(data, measure=measure), tokenizer_file)
    with count_of(pipeline) as count:
        assert isinstance(count, MeasureCount)
        found = count("words", *all_rows(data))
        assert found.tolist() == [i * 10 for i in range(40)]
        assert seen == [row["text"] for row in texts()]
        (chosen,) = count.count_chosen(
            "words", [(1, np.arange(20))], lambda number, sizes: np.flatnonzero(sizes > 99)
        )
    assert chosen.tolist() == [r["id"] * 10 for r in texts()[20:] if len(r["text"].encode()) > 99]


def test_a_function_needs_no_text_or_tokens_in_the_data(tmp_path):
    data = written.dataset("parquet", tmp_path, [{"n": i} for i in range(9)])
    with count_of(Pipeline(estimated(data, measure=lambda row: int(row["n"])))) as count:
        (found,) = count.count_chosen(
            "words",
            [(0, np.arange(5))],
            lambda number, sizes: np.arange(5)[:: 1 if sizes is None else 9],
        )
    assert found.tolist() == [0, 1, 2, 3, 4]


def test_rows_that_a_function_cannot_be_given_count_as_unread(tmp_path):
    data = written.dataset("jsonl", tmp_path, [{"n": 1}, "{broken", {"n": 3}], shards=1)
    with count_of(Pipeline(estimated(data, measure=lambda row: row["n"]))) as count:
        assert count("words", *all_rows(data)).tolist() == [1, -1, 3]


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda row: row["nothing"], r"measure failed on .*: KeyError\('nothing'\)"),
        (lambda row: True, r"must return a whole number of tokens, from 0 to 2\^40, got True"),
        (lambda row: -1, r"from 0 to 2\^40, got -1"),
        (lambda row: 2.5, r"from 0 to 2\^40, got 2.5"),
        (lambda row: None, r"from 0 to 2\^40, got None"),
        (lambda row: 2**40 + 1, r"from 0 to 2\^40, got 1099511627777"),
        (lambda row: np.uint64(2**63), r"from 0 to 2\^40, got .*9223372036854775808"),
        (lambda row: 10**30, r"from 0 to 2\^40, got 10{30} "),
        (lambda row: 10**5000, r"from 0 to 2\^40, got one of 16,610 bits"),
    ],
)
def test_a_wrong_measure_names_the_row(measure, message, tmp_path):
    data = written.dataset("parquet", tmp_path, texts())
    with (
        count_of(Pipeline(estimated(data, measure=measure))) as count,
        pytest.raises(ExecutionError, match=message) as raised,
    ):
        count("words", np.array([1]), np.array([3]))
    assert "dataset 'words', shard '001.parquet', row 3" in str(raised.value)


def test_the_largest_count_is_taken_as_it_is(tmp_path):
    data = written.dataset("parquet", tmp_path, texts())
    source = estimated(data, measure=lambda row: 2**40)
    Pipeline(source).batch(2).fingerprint()
    assert source.token_costs == {"words": 2.0**40}


def test_nothing_counts_where_there_are_no_tokens(tmp_path):
    data = written.dataset("parquet", tmp_path, texts())
    with count_of(Pipeline(estimated(data)).batch(2)) as count:
        assert count is None
