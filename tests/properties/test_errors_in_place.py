"""A bad row raises in its place: the batches before it are the same on every way."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.recipes import rows_of
from tests.written import in_order, lines, texts_to_tokens
from zephon import Dataset, Pipeline
from zephon.errors import CheckpointError, DataError

COUNT = 24
WAYS = {
    "inline": {"runner": "inline"},
    "inline, little memory": {"runner": "inline", "memory_budget": "1kb"},
    "threads": {"runner": "threads"},
    "threads, no queue": {"runner": "threads", "prefetch_batches": 0},
    "threads, little memory": {"runner": "threads", "memory_budget": "200b"},
    "threads, one worker": {"runner": "threads", "max_workers": 1, "prefetch_batches": 1},
}
BAD = {
    "cut off": b'{"text": "the tr',
    "null": b'{"text": null}',
    "no field": b'{"body": "the tree"}',
    "a number": b'{"text": 3.5}',
    "half a pair": b'{"text": "a\\ud800"}',
    "no utf-8": b'{"text": "\xff"}',
    "no object": b'["the tree"]',
    "junk behind": b'{"text": "the tree"} zzz',
}


def good_lines():
    words = ["the tree and ", "ash", "", "größe wood ", "木"]
    return [f'{{"text": "{words[i % 5] * (1 + i % 4)}{i}"}}'.encode() for i in range(COUNT)]


def write(folder, bad, at):
    found = good_lines()
    for place in at:
        found[place] = BAD[bad]
    lines(folder, "a.jsonl", found[: COUNT // 2])
    lines(folder, "b.jsonl", found[COUNT // 2 :])
    return Dataset.from_path("prose", folder)


def job(prose, tokenizer_file, *, lanes=1, length=8, microbatch=2, **way):
    work = in_order(prose, chunk_size=2, lane_assignment="modulo")
    return (
        Pipeline(work)
        .tokenize(tokenizer_id=tokenizer_file, field="text")
        .pack_flat(length, algorithm="wrap")
        .batch(microbatch)
        .options(canonical_replicas=lanes, **way)
    )


def run(pipe):
    """Give the rows before the error, the error's text, and the state it left."""
    found, error = [], None
    try:
        for batch in pipe:
            found += rows_of(batch)
    except DataError as raised:
        error = str(raised)
    return found, error, pipe.checkpoint(scope="local")


@pytest.fixture(scope="module")
def lengths(tokenizer_file):
    import json

    encoded = texts_to_tokens(tokenizer_file)
    return [len(encoded(json.loads(line)["text"])) + 2 for line in good_lines()]


@pytest.mark.parametrize("place", range(COUNT))
def test_what_stands_before_it_is_delivered_and_no_more(tmp_path, tokenizer_file, lengths, place):
    prose = write(tmp_path, "cut off", [place])
    oracle, error, state = run(job(prose, tokenizer_file, **WAYS["inline"]))
    assert len(oracle) == sum(lengths[:place]) // 8 // 2 * 2
    shard, row = ("a.jsonl", place) if place < 12 else ("b.jsonl", place - 12)
    head = f"dataset 'prose', shard '{shard}', row {row} (line {row + 1}, byte "
    assert error.startswith(head)
    assert """the line begins '{"text": "the tr'; mend or remove the line""" in error
    for way in WAYS.values():
        assert run(job(prose, tokenizer_file, **way)) == (oracle, error, state)


@pytest.mark.parametrize("bad", BAD)
def test_every_kind_of_bad_row_raises_in_its_place(tmp_path, tokenizer_file, lengths, bad):
    prose = write(tmp_path, bad, [17])
    oracle, error, state = run(job(prose, tokenizer_file, **WAYS["inline"]))
    assert len(oracle) == sum(lengths[:17]) // 8 // 2 * 2
    start = len(b"".join(line + b"\n" for line in good_lines()[12:17]))
    assert re.match(rf"dataset 'prose', shard 'b\.jsonl', row 5 \(line 6, byte {start}\): ", error)
    for way in WAYS.values():
        assert run(job(prose, tokenizer_file, **way)) == (oracle, error, state)


@settings(max_examples=25, deadline=None)
@given(
    st.sets(st.integers(0, COUNT - 1), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 30),
    st.integers(1, 3),
    st.sampled_from(sorted(set(WAYS) - {"inline"})),
)
def test_lanes_rows_and_batches_of_any_size(
    tmp_path_factory, tokenizer_file, places, lanes, length, microbatch, way
):
    prose = write(tmp_path_factory.mktemp("prose"), "null", places)
    shape = {"lanes": lanes, "length": length, "microbatch": microbatch}
    oracle = run(job(prose, tokenizer_file, **shape, **WAYS["inline"]))
    assert run(job(prose, tokenizer_file, **shape, **WAYS[way])) == oracle
    assert oracle[1] is not None


def test_with_several_bad_rows_the_first_of_the_lane_is_named(tmp_path, tokenizer_file):
    prose = write(tmp_path, "null", [4, 9, 15, 16])
    for way in WAYS.values():
        assert "shard 'a.jsonl', row 4 (line 5," in run(job(prose, tokenizer_file, **way))[1]


def test_a_bad_row_that_was_read_ahead_waits_for_its_turn(tmp_path, tokenizer_file, lengths):
    prose = write(tmp_path, "cut off", [COUNT - 1])
    found = 0
    pipe = job(prose, tokenizer_file, runner="threads")
    for batch in pipe:
        found += len(batch)
        if found + 2 > sum(lengths[:-1]) // 8:
            break
    assert found > 8


@pytest.mark.parametrize("way", ["inline", "threads"])
def test_a_line_that_was_mended_is_other_data_however_long_it_is(tmp_path, tokenizer_file, way):
    """Rows of the line may be held, so only who says which may pass could go on from here."""
    broken = write(tmp_path / "broken", "cut off", [15])
    mended = BAD["cut off"].replace(b"the tr", b'a"}   ')
    assert len(mended) == len(BAD["cut off"])
    all_good = good_lines()
    all_good[15] = mended
    lines(tmp_path / "mended", "a.jsonl", all_good[:12])
    lines(tmp_path / "mended", "b.jsonl", all_good[12:])
    whole = Dataset.from_path("prose", tmp_path / "mended")
    _, error, state = run(job(broken, tokenizer_file, **WAYS[way]))
    with pytest.raises(CheckpointError, match=r"shard 'b\.jsonl': .*with other content"):
        iter(job(whole, tokenizer_file, **WAYS[way]).restore(state))
    assert run(job(broken, tokenizer_file, **WAYS[way]).restore(state)) == ([], error, state)


def test_iterating_again_raises_again(tmp_path, tokenizer_file):
    prose = write(tmp_path, "cut off", [9])
    pipe = job(prose, tokenizer_file, runner="threads")
    assert run(pipe) == run(pipe)


@pytest.mark.filterwarnings("ignore:rank .* ends where its own lanes end:RuntimeWarning")
@pytest.mark.parametrize("way", WAYS)
def test_with_steps_no_step_before_the_bad_row_is_lost(tmp_path, tokenizer_file, way):
    prose = write(tmp_path, "null", [20])
    shape = {"lanes": 2, "global_batch_size": 4}
    wanted = run(job(prose, tokenizer_file, **shape, **WAYS["inline"]))
    steps = len(wanted[0]) // 4
    assert steps >= 2
    assert run(job(prose, tokenizer_file, **shape, **WAYS[way])) == wanted
    errors = []
    for group in (0, 1):
        pipe = job(prose, tokenizer_file, **shape, dp_degree=2, dp_group_id=group, **WAYS[way])
        found, error, _ = run(pipe)
        share = [wanted[0][4 * t + 2 * group + i] for t in range(steps) for i in (0, 1)]
        assert found[: 2 * steps] == share
        errors.append(error)
    # The rank that runs the bad row's lane raises; the other one has lanes of its own.
    assert sorted(errors, key=str) == [None, wanted[1]]
