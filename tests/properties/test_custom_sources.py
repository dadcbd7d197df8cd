"""Work sources of one's own keep every promise that ours keep."""

import json
import threading
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.custom_sources import Dealt, Stateful, all_samples, numbered, walked
from tests.properties.recipes import rows, rows_of
from zephon import Pipeline
from zephon.errors import CheckpointError, ExecutionError, PlanError
from zephon.work import WorkChunk

DATASETS = {3: numbered("prose", 1700, (0, 1, 5), length=1), 8: numbered("code", 900, (2,), 1)}
SAMPLES = all_samples(DATASETS)
ONE_COMPONENT = all_samples(DATASETS, {3: "text", 8: "text"})
FEW = {0: numbered("prose", 60, (0, 4)), 1: numbered("code", 31, (7,))}

KINDS = {
    "says its state": (Stateful, {}),
    "draws again": (Dealt, {}),
    "lanes end apart": (Stateful, {"short": {0: 7, 2: 33}}),
    "without end": (Stateful, {"rounds": None}),
    "without end, draws again": (Dealt, {"rounds": None}),
    "datasets in one component": (Stateful, {"samples": ONE_COMPONENT}),
}


def source(name="says its state", sizes=(7, 1, 0, 300), **changes):
    kind, arguments = KINDS[name]
    arguments = {"samples": SAMPLES, "sizes": sizes, **arguments, **changes}
    return kind(DATASETS, arguments.pop("samples"), **arguments)


def packed(found, *, max_length=29, microbatch=4, drop_last=True, **options):
    return (
        Pipeline(found)
        .pack_flat(max_length=max_length, algorithm="wrap")
        .batch(microbatch_size=microbatch, drop_last=drop_last)
        .options(
            **{
                "runner": "inline",
                "canonical_replicas": 3,
                # without an end, tasks of some hundred draws and not of 65,536
                "memory_budget": None if found.rounds else "64kb",
                **options,
            }
        )
    )


def samples_of(found, most=None, **options):
    """Run without packing: each lane's (component, sample id), in order."""
    pipeline = Pipeline(found).options(**{"runner": "inline", **options})
    names = {number: name for name, number in found.component_ids().items()}
    by_lane = {}
    for record in islice(iter(pipeline), most):
        ((component, count),) = record.meta.component_sample_counts.items()
        assert count == 1
        by_lane.setdefault(record.meta.lane_id, []).append(
            (names[component], record.meta.sample_id)
        )
    return by_lane


# Every sample exactly once, in the order of the chunks


@settings(max_examples=30)
@given(
    st.sampled_from([Dealt, Stateful]),
    st.lists(st.integers(0, 40), min_size=1, max_size=5).filter(any),
    st.integers(1, 5),
    st.integers(1, 3),
    st.booleans(),
)
def test_every_sample_comes_exactly_once_in_the_order_of_the_chunks(
    kind, sizes, lanes, rounds, together
):
    listed = all_samples(FEW, {0: "text", 1: "text"} if together else None)
    found = kind(FEW, listed, sizes=sizes, rounds=rounds)
    by_lane = samples_of(found, canonical_replicas=lanes)
    assert by_lane == {lane: walked(found, lane, lanes) for lane in range(lanes)}
    assert sorted(sample for lane in by_lane.values() for sample in lane) == sorted(listed * rounds)


def test_a_component_is_told_by_its_own_id_whatever_dataset_it_is_in():
    names = {"late": 900, "text": 7}
    listed = [*all_samples(FEW, {0: "text", 1: "text"}), ("late", (0, 4, 0)), ("late", (1, 7, 1))]
    found = Dealt(FEW, listed, names=names, sizes=(9,))
    assert samples_of(found)[0] == walked(found)
    pipeline = packed(found, max_length=5, canonical_replicas=1, drop_last=False)
    counts, tokens = {}, {}
    for batch in pipeline:
        for record in batch:
            for number, count in record.meta.component_sample_counts.items():
                counts[number] = counts.get(number, 0) + count
            for number, count in record.meta.component_token_counts.items():
                tokens[number] = tokens.get(number, 0) + count
    told = pipeline.accounting()
    assert list(told) == ["text", "late"]
    assert {n: told[n]["rows_drawn"] for n in told} == {"text": 91, "late": 2}
    for name, number in names.items():
        assert told[name]["tokens_delivered"] == tokens[number]
        assert told[name]["tokens_made"] == tokens[number] + sum(
            told[name]["tokens_dropped"].values()
        )
    assert counts[7] + counts[900] >= 91


# The same bytes, whoever reads


@pytest.mark.parametrize("name", KINDS)
def test_threads_and_memory_change_nothing(name):
    expected = rows(packed(source(name)), 60)
    assert len(expected) > 200
    for options in (
        {"runner": "threads", "prefetch_batches": 20},
        {"runner": "threads", "memory_budget": "8kb"},
        {"runner": "threads", "memory_budget": "8kb", "max_workers": 1, "prefetch_batches": 0},
    ):
        assert rows(packed(source(name), **options), 60) == expected


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore:rank . of")
def test_any_number_of_ranks_delivers_the_same_steps(name):
    steps, size = 3, 24

    def run(degree, lanes):
        per_rank = []
        for group in range(degree):
            pipeline = packed(
                source(name),
                max_length=13,
                microbatch=1,
                canonical_replicas=lanes,
                global_batch_size=size,
                dp_degree=degree,
                dp_group_id=group,
            )
            per_rank.append(rows(pipeline, steps * size // degree))
        share = size // degree
        return [
            [row for found in per_rank for row in found[t * share : (t + 1) * share]]
            for t in range(steps)
        ]

    for lanes in (4, 24):
        oracle = run(1, lanes)
        assert [len(step) for step in oracle] == [size] * steps
        for degree in (3, 8):
            assert run(degree, lanes) == oracle


def test_ranks_without_steps_own_lanes_and_lose_none():
    whole = samples_of(source("lanes end apart"), canonical_replicas=6)
    found = {}
    for group in range(3):
        found |= samples_of(
            source("lanes end apart"), canonical_replicas=6, dp_degree=3, dp_group_id=group
        )
    assert found == whole


def test_the_run_ends_with_the_lane_that_ends_first():
    found = source("lanes end apart")
    lengths = [len(walked(found, lane, 3)) for lane in range(3)]
    assert lengths == [860, 867, 833]
    pipeline = (
        Pipeline(found).batch(6).options(global_batch_size=6, canonical_replicas=3, runner="inline")
    )
    assert len(list(pipeline)) == 833 // 2
    with pytest.raises(PlanError, match=r"lanes needs 850 rows of each, lane 2 has 833"):
        list(
            Pipeline(found)
            .batch(6)
            .options(global_batch_size=2550, canonical_replicas=3, runner="inline")
        )


# Cut anywhere and go on


def cut(make, batches):
    pipeline = make()
    items = iter(pipeline)
    found = [row for batch in islice(items, batches) for row in rows_of(batch)]
    state = pipeline.checkpoint()
    items.close()
    return found, state


def go_on(pipeline, state, batches=None):
    """Restore from a state that went through a file, and run."""
    return rows(pipeline.restore(json.loads(json.dumps(state, allow_nan=False))), batches)


MODES = {
    "turns on threads": {"runner": "threads"},
    "steps": {"global_batch_size": 12, "canonical_replicas": 2, "microbatch": 4},
    "one lane": {"canonical_replicas": 1},
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_cut_and_resumed_is_the_uninterrupted_run(name, mode):
    """Lanes of 870 to 2,600 draws: cuts lie before and behind ticks and the edges of chunks."""

    def make():
        return packed(source(name), **MODES[mode])

    most = None if source(name).rounds else 60
    whole = rows(make(), most)
    ended = len(whole) // 4
    for batches in {1, ended // 3, 2 * ended // 3, ended - 1, ended}:
        head, state = cut(make, batches)
        assert head == whole[: len(head)]
        left = None if most is None else most - batches
        if left == 0:
            continue
        assert go_on(make(), state, left) == whole[len(head) :], batches
        assert make().restore(state).checkpoint() == state


@settings(max_examples=10)
@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(st.sampled_from([0, 1, 3, 50, 1000, 1500]), min_size=1, max_size=4).filter(any),
    st.integers(1, 3),
    st.integers(0, 50),
)
def test_cut_of_any_source(name, sizes, lanes, batches):
    def make(**options):
        return packed(source(name, sizes), canonical_replicas=lanes, **options)

    whole = rows(make(), 60)
    head, state = cut(make, batches)
    left = 60 - batches
    expected = rows(make(), batches + left)[len(head) :]
    assert head == whole[: len(head)]
    assert go_on(make(), state, left) == expected
    assert go_on(make(runner="threads"), state, left) == expected


@pytest.mark.filterwarnings("ignore:rank . of")
@pytest.mark.parametrize("name", ["says its state", "draws again"])
def test_a_state_of_one_rank_goes_on_on_several(name):
    def make(degree=1, group=0):
        return packed(
            source(name),
            microbatch=2,
            global_batch_size=12,
            canonical_replicas=2,
            dp_degree=degree,
            dp_group_id=group,
        )

    whole, steps = rows(make()), 14
    head, state = cut(make, 6 * steps)
    for degree in (2, 3):
        share = 12 // degree
        ranks = [rows(make(degree, group).restore(state)) for group in range(degree)]
        rest = [
            row
            for t in range((len(whole) - len(head)) // 12)
            for found in ranks
            for row in found[t * share : (t + 1) * share]
        ]
        assert head + rest == whole


def test_many_rounds_of_a_few_batches_each():
    for name in ("says its state", "draws again"):
        whole = rows(packed(source(name)))
        found, more, state = [], [None], None
        while more:
            pipeline = packed(source(name))
            if state is not None:
                pipeline.restore(state)
            items = iter(pipeline)
            more = [row for batch in islice(items, 9) for row in rows_of(batch)]
            found += more
            state = pipeline.checkpoint(as_bytes=True)
            items.close()
        assert found == whole


def test_a_state_tells_position_alone():
    """However far ahead a run has read, and after any restore, the bytes are the same."""
    for name in KINDS:
        states = []
        for options in ({}, {"runner": "threads", "prefetch_batches": 50}):
            _, state = cut(lambda o=options: packed(source(name), **o), 45)  # noqa: B023
            states.append(json.dumps(state))
        _, early = cut(lambda: packed(source(name)), 20)  # noqa: B023
        pipeline = packed(source(name)).restore(early)
        items = iter(pipeline)
        for _ in islice(items, 25):
            pass
        states.append(json.dumps(pipeline.checkpoint()))
        items.close()
        assert len(set(states)) == 1


def test_the_numbers_of_a_resumed_run_are_those_of_the_whole():
    whole = packed(source("datasets in one component"))
    list(whole)
    for batches in (0, 20, 40):
        pipeline = packed(source("datasets in one component"))
        items = iter(pipeline)
        list(islice(items, batches))
        told = pipeline.accounting()
        assert list(told) == ["text"]
        state = pipeline.checkpoint()
        items.close()
        again = packed(source("datasets in one component")).restore(state)
        assert again.accounting() == told
        list(again)
        assert again.accounting() == whole.accounting()


def test_numbers_in_the_middle_of_a_run_draw_no_chunk_again():
    asked = []

    class Counting(Dealt):
        def next_chunk(self):
            asked.append((self.lane_id, self.chunks))
            return super().next_chunk()

    # so far that a lane made anew would have to begin at a kept edge
    pipeline = packed(Counting(DATASETS, SAMPLES, sizes=(50,)), canonical_replicas=1)
    items = iter(pipeline)
    list(islice(items, 45))
    before = len(asked)
    assert pipeline.accounting()["prose"]["rows_drawn"] > 600
    assert pipeline.checkpoint()
    assert len(asked) == before == len(set(asked))
    items.close()


# What the source itself sees


def test_the_source_itself_is_never_asked_for_a_chunk_and_runs_again_alike():
    found = source()
    pipeline = packed(found)
    first = rows(pipeline)
    assert (found.dealt, found.chunks, found.lane_id) == (0, 0, None)
    assert rows(pipeline) == first


def test_a_source_that_asks_for_it_is_primed_where_the_run_is_started():
    log = []

    class Primed(Dealt):
        primed = False

        @property
        def requires_token_priming(self):
            return not self.primed

        def prime(self, io_options=None, counting_spec=None, pre_tokenize_replay=None,
                  mp_context=None):  # fmt: skip
            log.append(("prime", threading.current_thread() is threading.main_thread()))
            self.primed = True

        def next_chunk(self):
            assert self.primed
            log.append(("chunk", self.lane_id))
            return super().next_chunk()

    class Asked(Primed):
        def requires_token_priming(self):
            return not self.primed

    for kind in (Primed, Asked):
        for begin in (lambda p: next(iter(p)), lambda p: p.checkpoint()):
            log.clear()
            pipeline = packed(kind(FEW, all_samples(FEW)), runner="threads")
            pipeline.explain()
            assert log == []
            begin(pipeline)
            assert log[0] == ("prime", True)
            assert [what for what, _ in log].count("prime") == 1
            pipeline._close()


def test_each_batch_says_what_its_chunk_aims_at():
    class Aiming(Dealt):
        def next_chunk(self):
            chunk = super().next_chunk()
            if chunk is None or self.chunks > 4:
                return chunk
            return WorkChunk(chunk.components, target_mixture={"code": 3, "prose": self.chunks})

    found = Aiming(DATASETS, SAMPLES, sizes=(100,))
    pipeline = Pipeline(found).batch(50).options(runner="inline")
    seen = [batch._rows.target_mixture for batch in islice(iter(pipeline), 12)]
    for number in range(8):
        chunk = 1 + number // 2
        assert seen[number] == {"code": 3 / (3 + chunk), "prose": chunk / (3 + chunk)}
    assert seen[8] == {"code": 0.5, "prose": 0.5}


# What a checkpoint knows of it


def test_a_checkpoint_belongs_to_its_source():
    _, state = cut(lambda: packed(source()), 5)

    class Other(Stateful):
        pass

    class Marked(Stateful):
        fingerprint = "v2"

    for found, said in (
        (source(sizes=(7, 1)), r"source\.recipe\.sizes"),
        (Other(DATASETS, SAMPLES, sizes=(7, 1, 0, 300)), r"source\.source: was .*Stateful"),
        (Marked(DATASETS, SAMPLES, sizes=(7, 1, 0, 300)), r"source\.fingerprint: was not there"),
        (source(names={"prose": 1, "code": 0}), r"source\.components"),
        (
            Stateful({4: DATASETS[3], 8: DATASETS[8]}, SAMPLES, sizes=(7, 1, 0, 300)),
            r"source\.datasets",
        ),
        (
            Stateful({**DATASETS, 9: numbered("more", 3)}, SAMPLES, sizes=(7, 1, 0, 300)),
            r"data of 'more': was not there",
        ),
    ):
        with pytest.raises(CheckpointError, match=f"(?s)belongs to another recipe\n.*{said}"):
            rows(packed(found).restore(state))
    assert packed(source()).fingerprint() == state["fingerprint"]


# What goes wrong, goes wrong in its place


class Failing(Stateful):
    """Its lane 1 fails at the fifth chunk."""

    def __init__(self, fault):
        super().__init__(DATASETS, SAMPLES, sizes=(40,))
        self.fault = fault

    def next_chunk(self):
        chunk = super().next_chunk()
        return self.fault(chunk) if (self.lane_id, self.chunks) == (1, 5) else chunk


def raising(chunk):
    raise OSError("the plan of the day is gone")


def unknown(chunk):
    return WorkChunk({**chunk.components, "prose": [(3, 0, 10**6)]})


def dropping(chunk):
    return WorkChunk({"verse": []})


FAULTS = {
    raising: (ExecutionError, r"next_chunk\(\) failed: OSError: the plan of the day is gone"),
    unknown: (PlanError, r"sample \(3, 0, 1000000\) of component 'prose' names no row"),
    dropping: (PlanError, r"component 'verse' is not in component_ids\(\)"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("microbatch", [1, 3])
def test_all_batches_before_a_failure_come_and_none_after(fault, microbatch):
    kind, said = FAULTS[fault]
    found = []
    for options in (
        {},
        {"runner": "threads", "prefetch_batches": 40},
        {"runner": "threads", "memory_budget": "8kb"},
    ):
        seen = []
        with pytest.raises(kind, match=rf"Failing, lane 1, chunk 4: {said}"):
            for batch in packed(Failing(fault), microbatch=microbatch, **options):
                seen += rows_of(batch)
        found.append(seen)
    good = [r for b in packed(source(sizes=(40,)), microbatch=microbatch) for r in rows_of(b)]
    assert found[0] == found[1] == found[2] == good[: len(found[0])]
    # all full batches of the 160 draws before it in the lane
    in_lane = [row for row in found[0] if row[1] == 1]
    tokens = sum(1 + d % 4 for _, (_, _, d) in walked(Failing(fault).lane_before(), 1, 3, 160))
    assert len(in_lane) == tokens // 29 // microbatch * microbatch


def lane_before(self):
    return Stateful(DATASETS, SAMPLES, sizes=(40,))


Failing.lane_before = lane_before


def test_a_run_that_met_a_failure_can_be_restored_before_it():
    pipeline = packed(Failing(raising))
    items = iter(pipeline)
    head = [row for batch in islice(items, 5) for row in rows_of(batch)]
    state = pipeline.checkpoint()
    with pytest.raises(ExecutionError, match="the plan of the day"):
        list(items)
    mended = Failing(lambda chunk: chunk)
    assert head + rows(packed(mended).restore(state)) == rows(packed(source(sizes=(40,))))


class Drifting(Dealt):
    """Says that it is the source of the checkpoint, and deals otherwise."""

    __module__, __qualname__ = Dealt.__module__, Dealt.__qualname__

    def next_chunk(self):
        self.sizes = (8, 1, 0, 300)
        chunk = super().next_chunk()
        return chunk and WorkChunk(dict(reversed(chunk.components.items())))


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        (60, "must repeat its chunks, but 16 chunks hold 1236 samples now and 16 held 1232"),
        (5, "draws other rows than when the checkpoint was taken"),
    ],
)
def test_a_source_that_does_not_repeat_itself_is_found_out(batches, said):
    options = {"canonical_replicas": 1}
    _, state = cut(lambda: packed(source("draws again"), **options), batches)
    drifting = Drifting(DATASETS, SAMPLES, sizes=(7, 1, 0, 300))
    with pytest.raises(CheckpointError, match=said):
        rows(packed(drifting, **options).restore(state))
