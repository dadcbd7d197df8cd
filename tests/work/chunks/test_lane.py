import json
import threading
import tracemalloc
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.custom_sources import Dealt, Stateful, all_samples, numbered, walked
from zephon.errors import CheckpointError, ExecutionError, PlanError
from zephon.io import Dataset, InMemoryShard
from zephon.io.shards import Shards
from zephon.work import StaticMixtureWorkSource, WorkChunk
from zephon.work.chunks.lane import SPACING
from zephon.work.chunks.vocabulary import Rows

DATASETS = {3: numbered("prose", 700, (0, 1, 5)), 8: numbered("code", 300, (2,))}
SAMPLES = all_samples(DATASETS)
SIZES = (7, 1, 0, 40, 3)


def source(kind=Dealt, **changes):
    return kind(DATASETS, SAMPLES, **{"sizes": SIZES, **changes})


def peak_memory(ask):
    """Give what a call returns, and the most bytes that it held beyond what was there before."""
    tracemalloc.start()
    try:
        return ask(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def dataset_of(shards):
    """A dataset of which only the shape is there: two rows in each shard."""
    two = np.full(shards, 2)
    names = pa.array(np.arange(shards)).cast(pa.large_string())
    starts = np.arange(shards + 1)
    columns = {
        **dict.fromkeys(("rows", "bytes", "decoded_bytes", "group_rows"), two),
        "names": names,
        "group_starts": starts,
    }
    return Dataset("many", "parquet", "/nowhere", Shards(directory="/nowhere", **columns))


def drawn(found, stream, start, count):
    """Give draws as (component name, sample id), from references."""
    refs = stream.draw(start, count)
    components = found.components
    samples = []
    for number, shard, row in zip(
        refs.component.tolist(), refs.shard.tolist(), refs.row.tolist(), strict=True
    ):
        component = components[number]
        shard_id = int(component.dataset.ids()[shard])
        samples.append((component.name, (component.dataset_id, shard_id, row)))
    assert refs.ordinal.tolist() == list(range(start, start + len(refs)))
    assert refs.pass_index.tolist() == [0] * len(refs)
    return samples


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("kind", [Dealt, Stateful])
def test_draws_are_those_of_the_chunks_one_after_another(kind, lanes):
    found = source(kind)
    every = []
    for lane in range(lanes):
        stream = found.lane_stream(lane, lanes)
        assert stream.length is None
        expected = walked(found, lane, lanes)
        assert drawn(found, stream, 0, 10_000) == expected
        assert stream.length == len(expected)
        assert stream.draw(0, 1).lane.tolist() == [lane]
        every += expected
    assert sorted(every) == sorted(SAMPLES)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 1100), st.integers(0, 300)), max_size=8))
def test_any_part_may_be_asked_for_in_any_order(parts):
    found = source()
    expected, stream = walked(found), found.lane_stream(0, 1)
    for start, count in parts:
        assert drawn(found, stream, start, count) == expected[start : start + count]
    assert stream.failure is None


def test_a_lane_that_ends_gives_fewer_and_then_none():
    stream = source().lane_stream(0, 1)
    assert len(stream.draw(0, 990)) == 990
    assert stream.length is None
    assert len(stream.draw(990, 100)) == 10
    assert stream.length == 1000
    assert len(stream.draw(1000, 5)) == len(stream.draw(5000, 5)) == 0
    with pytest.raises(ValueError, match="start and count must be at least 0"):
        stream.draw(-1, 5)


def test_a_lane_without_end_cuts_no_further_than_asked():
    found = source(rounds=None)
    stream = found.lane_stream(1, 2)
    far = drawn(found, stream, 2600, 9)
    assert far == walked(found, 1, 2, 2700)[2600:2609]
    assert stream.length is None
    assert stream._end < 2609 + max(SIZES)


def test_many_threads_get_what_one_gets():
    found = source(sizes=(11,), rounds=4)
    expected, stream = walked(found), found.lane_stream(0, 1)
    parts = [(start, 37) for start in range(0, len(expected), 37)]
    got, begin = {}, threading.Barrier(4)

    def work(mine):
        begin.wait()
        for start, count in mine:
            got[start] = drawn(found, stream, start, count)

    # each thread takes the later parts first, so they come out of order
    threads = [threading.Thread(target=work, args=(parts[i::4][::-1],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sample for start, _ in parts for sample in got[start]] == expected


def test_a_draw_copies_no_more_than_it_gives():
    """A source may cut a chunk of a million samples, and draws are a few thousand."""
    stream = source(sizes=(400,), rounds=500).lane_stream(0, 1)
    stream.draw(0, 1)
    (rows,) = stream._rows
    many = Rows(*(np.resize(part, 10**6) for part in (rows.component, rows.shard, rows.row)), {})
    stream._rows, stream._end = [many], 10**6
    refs, peak = peak_memory(lambda: stream.draw(999_000, 1000))
    assert refs.row.tolist() == many.row[999_000:].tolist()
    assert peak < 1e6


def test_a_million_shards_are_shared_by_all_lanes():
    """Each lane asks what the shards of a dataset are; where ids are positions, nothing is made."""
    shards = 10**6
    data = dataset_of(shards)
    found = Dealt({3: data}, [(data.name, (3, shards - 1 - at, at % 2)) for at in range(50)])
    refs, peak = peak_memory(lambda: found.lane_stream(0, 1).draw(0, 50))
    assert refs.shard.tolist() == list(range(shards - 1, shards - 51, -1))
    assert peak < 1e6
    ours = StaticMixtureWorkSource([data], {"many": 1}, chunk_size=16).clone_for_lane(0, 1)
    ours.next_chunk()  # the order of a million shards is made here
    chunk, peak = peak_memory(ours.next_chunk)
    assert len({shard for (_, shard, _), _ in chunk}) == 8
    assert peak < 1e6
    for wrong in (-1, shards):
        found = Dealt({3: data}, [(data.name, (3, wrong, 0))])
        stream = found.lane_stream(0, 1)
        stream.draw(0, 1)
        assert f"has no shard {wrong}, it has 0, 1, 2, 3, 4, 5, 6, 7, ..." in str(stream.failure)


def test_what_is_forgotten_is_gone_and_the_rest_stays():
    found = source(rounds=9)
    expected, stream = walked(found), found.lane_stream(0, 1)
    stream.draw(0, 5000)
    kept = len(stream._rows)
    stream.forget_before(4000)
    assert drawn(found, stream, 4000, 1000) == expected[4000:5000]
    assert len(stream._rows) < kept / 4
    assert stream._firsts[0] <= 4000 < stream._firsts[1]
    with pytest.raises(ExecutionError, match="lane 0: draw 100 was forgotten; the first that is"):
        stream.draw(100, 1)
    with pytest.raises(ExecutionError, match="the state at draw 100 was forgotten"):
        stream.state_at(100)
    stream.forget_before(10**9)
    assert drawn(found, stream, 5000, 7) == expected[5000:5007]


def test_the_edge_that_a_state_needs_is_not_forgotten():
    found = source(Stateful, rounds=9, sizes=(512,))
    stream = found.lane_stream(0, 1)
    stream.draw(0, 5000)
    for edge in range(SPACING, 5000, SPACING):
        states = [stream.state_at(edge - 1), stream.state_at(edge)]
        stream.forget_before(edge - 1)
        assert [stream.state_at(edge - 1), stream.state_at(edge)] == states
        stream.forget_before(edge)
        assert stream.state_at(edge) == states[1]
        assert states[1]["ordinal"] == edge


def resumed(found, stream, ordinal, lane=0, lanes=1):
    state = json.loads(json.dumps(stream.state_at(ordinal), allow_nan=False))
    return state, found.lane_stream(lane, lanes, state=state)


@cache
def whole_lane(kind, sizes):
    return walked(source(kind, rounds=4, sizes=sizes))


@settings(max_examples=30)
@given(
    st.sampled_from([Dealt, Stateful]),
    st.integers(0, 4000),
    st.sampled_from([(30, 1, 0, 90, 3), (29, 1), (2000, 1), (1024,)]),
    st.integers(0, 2000),
)
def test_resuming_anywhere_goes_on_as_if_nothing_had_been(kind, ordinal, sizes, ahead):
    found = source(kind, rounds=4, sizes=sizes)
    expected, stream = whole_lane(kind, sizes), found.lane_stream(0, 1)
    stream.draw(0, ordinal + ahead)
    state, again = resumed(found, stream, ordinal)
    assert drawn(found, again, ordinal, 1600) == expected[ordinal : ordinal + 1600]
    last = max(ordinal, len(expected) - 5)  # what lies before is another run's
    assert drawn(found, again, last, 10) == expected[last:]
    assert again.state_at(ordinal) == state
    for later in (ordinal + 1, ordinal + 1500):
        stream.draw(0, later)
        assert again.state_at(later) == stream.state_at(later)
    # a state says nothing of how far the lane ran ahead, nor of what it forgot
    other = found.lane_stream(0, 1)
    other.draw(0, ordinal + 1)
    other.forget_before(ordinal)
    assert other.state_at(ordinal) == state


def test_a_state_is_what_the_source_says_or_how_many_chunks_to_draw_again():
    for kind in (Dealt, Stateful):
        stream = source(kind, rounds=4, sizes=(100,)).lane_stream(0, 1)
        stream.draw(0, 3000)
        assert stream.state_at(0) is stream.state_at(SPACING) is None
        state = stream.state_at(2500)
        assert {key: state[key] for key in ("ordinal", "chunks", "exhausted")} == {
            "ordinal": 2100,
            "chunks": 21,
            "exhausted": [],
        }
        said = {
            "lane_id": 0,
            "canonical_replicas": 1,
            "chunk_size_hint": None,
            "at": {"$tuple": [2100, 21]},
        }
        assert state.get("state") == (said if kind is Stateful else None)


def test_a_state_is_the_callers_to_change():
    stream = source(Stateful, rounds=4).lane_stream(0, 1)
    stream.draw(0, 3000)
    state = stream.state_at(2500)
    state["state"]["at"]["$tuple"][0] = -1
    state["exhausted"].append("x")
    assert stream.state_at(2500) != state


def test_draws_that_are_there_wait_for_no_chunk():
    entered, go = threading.Event(), threading.Event()

    class Slow(Dealt):
        def next_chunk(self):
            if self.chunks == 5:
                entered.set()
                assert go.wait(10)
            return super().next_chunk()

    found = source(Slow, sizes=(10,))
    stream = found.lane_stream(0, 1)
    stream.draw(0, 50)
    thread = threading.Thread(target=stream.draw, args=(50, 5))
    thread.start()
    assert entered.wait(10)
    try:
        assert drawn(found, stream, 20, 30) == walked(found, most=50)[20:50]
        assert stream.state_at(40) is None
    finally:
        go.set()
        thread.join()


def test_only_a_source_without_state_draws_chunks_again():
    asked = []

    def counting(kind):
        class Counting(kind):
            def next_chunk(self):
                asked.append(self.chunks)
                return super().next_chunk()

        return source(Counting, rounds=9, sizes=(500,))

    for kind, first in ((Dealt, 0), (Stateful, 7)):
        found = counting(kind)
        stream = found.lane_stream(0, 1)
        stream.draw(0, 4200)
        _, again = resumed(found, stream, 4200)
        asked.clear()
        again.draw(4200, 10)
        assert asked == list(range(first, 9))


def test_a_source_that_lost_its_state_methods_draws_again():
    stream = source(Stateful, rounds=4).lane_stream(0, 1)
    stream.draw(0, 3000)
    plain = source(Dealt, rounds=4)
    _, again = resumed(plain, stream, 2500)
    assert drawn(plain, again, 2500, 50) == walked(plain)[2500:2550]


class Faulty(Dealt):
    """Gives chunk number ``at`` as ``fault`` says."""

    def __init__(self, fault, at=2, **changes):
        super().__init__(DATASETS, SAMPLES, **{"sizes": (10,), **changes})
        self.fault, self.at = fault, at

    def next_chunk(self):
        chunk = super().next_chunk()
        return self.fault(chunk) if self.chunks == self.at + 1 else chunk


def raising(error):
    def fault(chunk):
        raise error

    return fault


def of(components, **settings):
    return lambda chunk: WorkChunk(components, **settings)


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (raising(KeyError("step")), ExecutionError, r"next_chunk\(\) failed: KeyError: 'step'"),
        (raising(PlanError("odd")), PlanError, r"next_chunk\(\) failed: odd"),
        (lambda chunk: [1], PlanError, r"must return a WorkChunk or None, got list"),
        (
            of({"verse": [(3, 0, 0)]}),
            PlanError,
            r"component 'verse' is not in component_ids\(\); did you mean 'prose'",
        ),
        (
            of({"prse": []}),
            PlanError,
            r"component 'prse' is not in component_ids\(\); did you mean 'prose'",
        ),
        (
            of({"prose": []}, source_exhausted=["x"]),
            PlanError,
            "source_exhausted: component 'x' is not in",
        ),
        (
            of({"prose": []}, target_mixture={"y": 1}),
            PlanError,
            "target_mixture: component 'y' is not in",
        ),
        (
            of({"prose": [(3, 0, 0), (4, 0, 0)]}),
            PlanError,
            r"sample \(4, 0, 0\) of component 'prose' names no row: there is no dataset 4, "
            "datasets_by_id has 3, 8",
        ),
        (
            of({"code": [(8, 2, 0)], "prose": [(3, 4, 0)]}),
            PlanError,
            r"sample \(3, 4, 0\) .* dataset 'prose' has no shard 4, it has 0, 1, 5",
        ),
        (
            of({"prose": [(3, 9, 0)]}),
            PlanError,
            r"sample \(3, 9, 0\) .* has no shard 9",
        ),
        (
            of({"prose": [(3, 0, 233)], "code": [(8, 2, 300)]}),
            PlanError,
            r"sample \(8, 2, 300\) .* shard 2 of dataset 'code' has rows 0 to 299",
        ),
        (of({"prose": [(3, 0, -1)]}), PlanError, r"sample \(3, 0, -1\) .* has rows 0 to 233"),
    ],
)
def test_what_a_source_does_wrong_is_named_with_lane_and_chunk(fault, kind, said):
    found = Faulty(fault)
    stream = found.lane_stream(1, 2)
    assert drawn(found, stream, 0, 50) == walked(found, 1, 2, 20)
    assert stream.length == 20
    assert type(stream.failure) is kind
    with pytest.raises(kind, match=rf"Faulty, lane 1, chunk 2: .*{said}"):
        raise stream.failure
    assert len(stream.draw(20, 10)) == 0
    assert (
        stream.draw(0, 20).row.tolist()
        == source(sizes=(10,)).lane_stream(1, 2).draw(0, 20).row.tolist()
    )


def test_the_error_of_a_source_is_the_cause():
    error = OSError("gone")
    stream = Faulty(raising(error)).lane_stream(0, 1)
    stream.draw(0, 50)
    assert stream.failure.__cause__ is error


class Announcing(Dealt):
    """Ends each chunk with the names given for it."""

    def __init__(self, names, **changes):
        super().__init__(DATASETS, SAMPLES, **{"sizes": (700,), **changes})
        self.announced = names

    def next_chunk(self):
        chunk = super().next_chunk()
        if chunk is None:
            return None
        names = self.announced[self.chunks - 1]
        return WorkChunk(chunk.components, source_exhausted=names)


def test_announcements_stand_from_the_chunk_of_the_last_sample_on():
    found = Announcing([("code",), ("code", "prose")])  # code's last row is in the first chunk
    stream = found.lane_stream(0, 1)
    assert drawn(found, stream, 0, 2000) == walked(found)
    assert stream.failure is None


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([("code",), ("prose",)], "must keep the names of earlier chunks, 'code' is gone"),
        (
            [("prose",), ("prose",)],
            r"component 'prose' was exhausted in an earlier chunk, .* got \(3, \d, \d+\)",
        ),
    ],
)
def test_announcements_that_are_not_kept_are_refused(names, said):
    stream = Announcing(names).lane_stream(0, 1)
    assert len(stream.draw(0, 2000)) == 700
    with pytest.raises(PlanError, match=f"Announcing, lane 0, chunk 1: .*{said}"):
        raise stream.failure


def test_announcements_are_remembered_across_a_restore():
    for second in ((), ("code",)):
        found = Announcing([("code",), ("code",), second], sizes=(600, 150, 250), rounds=1)
        stream = found.lane_stream(0, 1)
        stream.draw(0, 2000)
        # as an engine would: at an edge that is kept
        state = {"ordinal": 750, "chunks": 2, "exhausted": ["code"]}
        again = found.lane_stream(0, 1, state=state)
        again.draw(750, 500)
        assert (stream.failure is None) == (again.failure is None) == bool(second)


def test_chunks_without_samples_for_ever_are_refused():
    stream = source(sizes=(0,)).lane_stream(0, 1)
    assert len(stream.draw(0, 5)) == 0
    with pytest.raises(ExecutionError, match="got 10000 empty ones one after another"):
        raise stream.failure


def test_a_source_that_does_not_repeat_itself_cannot_be_drawn_again():
    stream = source(rounds=4, sizes=(300,)).lane_stream(0, 1)
    stream.draw(0, 4000)
    for changed in ({"sizes": (301,)}, {"sizes": (300,), "rounds": 1}):
        other = source(**{"rounds": 4, **changed})
        _, again = resumed(other, stream, 2000)
        assert len(again.draw(2000, 10)) == 0
        with pytest.raises(CheckpointError, match=r"must repeat its chunks, but .* define state_"):
            raise again.failure


def test_a_state_that_cannot_be_written_is_refused_at_once_with_its_key():
    class Open(Stateful):
        def state_dict(self):
            return {**super().state_dict(), "files": {"log": self}}

    stream = source(Open, sizes=(1100,), rounds=3).lane_stream(0, 1)
    assert len(stream.draw(0, 10)) == 0
    with pytest.raises(PlanError, match=r"state_dict\(\)\['files'\]\['log'\] must be made of"):
        raise stream.failure


def test_a_source_that_cannot_say_or_load_its_state_is_named():
    class Mute(Stateful):
        def state_dict(self):
            raise OSError("disk")

    class Deaf(Stateful):
        def load_state_dict(self, state):
            raise KeyError("at")

    stream = source(Mute, sizes=(1100,), rounds=3).lane_stream(0, 1)
    stream.draw(0, 10)
    with pytest.raises(ExecutionError, match=r"Mute, lane 0, chunk 1: state_dict\(\) failed: OSEr"):
        raise stream.failure
    good = source(Stateful, rounds=4).lane_stream(0, 1)
    good.draw(0, 2000)
    _, again = resumed(source(Deaf, rounds=4), good, 2000)
    again.draw(2000, 1)
    with pytest.raises(ExecutionError, match=r"load_state_dict\(\) failed: KeyError: 'at'"):
        raise again.failure


def test_a_state_of_another_lane_is_refused():
    found = source(Stateful, rounds=9)
    stream = found.lane_stream(0, 2)
    stream.draw(0, 3000)
    _, again = resumed(found, stream, 2500, 1, 2)
    again.draw(2500, 1)
    with pytest.raises(CheckpointError, match="a state of lane_id=1, got one of lane_id=0"):
        raise again.failure


@pytest.mark.parametrize("state", [{}, {"ordinal": 5}, [], "x", {"ordinal": 1, "chunks": None}])
def test_a_damaged_state_is_refused(state):
    with pytest.raises(CheckpointError, match="the state of a work source is damaged"):
        source().lane_stream(0, 1, state=state)


def test_a_component_of_several_datasets_is_one_by_name():
    component_of = {3: "text", 8: "text"}
    samples = all_samples(DATASETS, component_of) + [("extra", (3, 0, row)) for row in range(50)]
    found = Dealt(DATASETS, samples, sizes=(33,), names={"extra": 7, "text": 2})
    stream = found.lane_stream(0, 1)
    assert drawn(found, stream, 0, 5000) == walked(found)
    pairs = [(c.name, c.dataset_id) for c in found.components]
    assert pairs == [("text", 3), ("text", 8), ("extra", 3), ("extra", 8)]
    assert set(np.unique(stream.draw(0, 5000).component)) == {0, 1, 2}


class Stops(BaseException):
    """What is no Exception, such as the panic of a compiled library."""


class Stopped(Dealt):
    """Its third chunk never comes."""

    def next_chunk(self):
        if self.chunks == 2:
            self.chunks += 1
            raise Stops("out of order")
        return super().next_chunk()


def test_whatever_stops_a_source_no_chunk_is_cut_in_its_place():
    data = Dataset.from_dict("many", {0: InMemoryShard([{"n": n} for n in range(30)])})
    samples = [("many", (0, 0, row)) for row in range(30)]
    stream = Stopped({0: data}, samples, sizes=(5,)).lane_stream(0, 1)
    with pytest.raises(Stops):
        stream.draw(8, 5)
    assert stream.draw(8, 5).row.tolist() == [8, 9]
    assert stream.length == 10
    assert "next_chunk() was stopped by Stops: out of order" in str(stream.failure)


class Selfish(Dealt):
    """It hands itself to every lane."""

    def clone_for_lane(self, lane_id, canonical_replicas):
        return self


def test_a_source_that_is_no_copy_is_refused():
    data = Dataset.from_dict("many", {0: InMemoryShard([{"n": 1}])})
    stream = Selfish({0: data}, [("many", (0, 0, 0))]).lane_stream(0, 2)
    stream.draw(0, 1)
    assert "clone_for_lane() must return a copy, got the source itself" in str(stream.failure)
