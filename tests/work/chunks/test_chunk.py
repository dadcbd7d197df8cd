import copy
import json
import pickle

import numpy as np
import pytest

from zephon.errors import CheckpointError, PlanError
from zephon.work.chunks.chunk import WorkChunk
from zephon.work.chunks.read_config import ComponentOrder, MixtureReadConfig, MixtureReadMode
from zephon.work.chunks.samples import Samples
from zephon.work.mixture import MixtureSpec

A = [(0, 0, row) for row in range(6)]
B = [(1, 7, row) for row in range(3)]


def chunk(**changes):
    return WorkChunk({"a": A, "b": B, "none": []}, **changes)


def test_components_take_turns_by_the_counts_of_the_chunk():
    assert [name for _, name in chunk()] == ["a", "b", "a", "a", "b", "a", "a", "b", "a"]
    assert [i for i, name in chunk() if name == "a"] == A
    assert [i for i, name in chunk() if name == "b"] == B
    assert list(chunk()) == chunk().materialize_order(MixtureReadConfig())


def test_what_a_chunk_tells():
    found = chunk(seed=3, target_mixture={"a": 1, "b": 3}, source_exhausted=["b"])
    assert len(found) == 9
    assert found.components == {"a": A, "b": B, "none": []}
    assert found.mixture == {"a": 6 / 9, "b": 3 / 9}
    assert (found.seed, found.source_exhausted) == (3, ("b",))
    assert found.target_mixture == {"a": 1.0, "b": 3.0}
    assert repr(found) == "WorkChunk(9 samples, a: 6, b: 3, none: 0; exhausted: b)"
    assert chunk().target_mixture is None


def test_an_empty_chunk_is_one():
    for empty in (WorkChunk({}), WorkChunk({"a": []}, source_exhausted=("a",))):
        assert (len(empty), list(empty), empty.mixture) == (0, [], {})
        assert empty.order(MixtureReadConfig("weighted_random")).tolist() == []


@pytest.mark.parametrize("mode", MixtureReadMode)
@pytest.mark.parametrize("within", ComponentOrder)
def test_the_ways_to_read_a_chunk_agree(mode, within):
    config = MixtureReadConfig(mode, within_component=within)
    listed = chunk(seed=9).materialize_order(config)
    assert sorted(listed) == sorted([(i, "a") for i in A] + [(i, "b") for i in B])
    assert list(chunk(seed=9).iter_samples(config)) == listed
    assert [chunk(seed=9).sample_at(i, config) for i in range(9)] == listed
    alone = MixtureReadConfig(mode, seed=9, within_component=within)
    assert chunk().materialize_order(alone) == listed


def test_reading_two_ways_in_turn_mixes_nothing_up():
    one, other = MixtureReadConfig("weighted_random", seed=1), MixtureReadConfig()
    found = chunk()
    orders = [found.materialize_order(c) for c in (one, other, one, None)]
    assert orders[0] == orders[2] != orders[1] == orders[3]


@pytest.mark.parametrize("i", [-1, 9, 10**9])
def test_there_is_no_sample_beyond_the_last(i):
    with pytest.raises(IndexError, match=r"sample_at\(-?\d+\) of 9 samples"):
        chunk().sample_at(i)


def test_a_config_of_another_kind_is_refused():
    for ask in (chunk().iter_samples, chunk().materialize_order, chunk().order):
        with pytest.raises(PlanError, match="config must be a MixtureReadConfig or None"):
            ask({"seed": 1})


def test_samples_may_be_arrays_lists_and_anything_that_holds_three_numbers():
    as_tuples = WorkChunk({"a": A})
    for given in (
        np.array(A),
        np.array(A, np.uint16),
        [list(i) for i in A],
        [tuple(np.int32(n) for n in i) for i in A],
        iter(A),
        [[0, 0, 0], *A[1:]],
    ):
        assert WorkChunk({"a": given}) == as_tuples
    own = np.array(A)
    kept = WorkChunk({"a": own})
    own[:] = 99
    assert kept == as_tuples


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ([("a", A)], "components must map names to lists of sample ids, got list"),
        ({3: A}, "component names must be non-empty strings, got 3"),
        ({"": A}, "component names must be non-empty strings, got ''"),
        ({"a": 5}, "samples of component 'a' must be a list .* got int"),
        ({"a": "rows"}, "samples of component 'a' must be a list .* got str"),
        ({"a": [*A, (0, 1)]}, r"sample 6 of component 'a' must be three .* got \(0, 1\)"),
        ({"a": [(0, 1)]}, r"sample 0 of component 'a' must be three whole numbers"),
        ({"a": [(0, 0, 1.0)]}, r"sample 0 .* got \(0, 0, 1.0\)"),
        ({"a": [(0, 0, "1")]}, r"sample 0 .* got \(0, 0, '1'\)"),
        ({"a": [(0, 0, 2**63)]}, "sample 0 .* got"),
        ({"a": [(0, 0, True), (0, 1)]}, r"sample 0 .* got \(0, 0, True\)"),
        ({"a": [None]}, "sample 0 .* got None"),
        ({"a": np.zeros((3, 2), int)}, r"whole numbers of shape \[samples, 3\], got int64"),
        ({"a": np.zeros((3, 3))}, r"whole numbers of shape \[samples, 3\], got float64"),
    ],
)
def test_samples_of_another_kind_are_refused_and_named(components, said):
    with pytest.raises(PlanError, match=said):
        WorkChunk(components)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": "1"}, "WorkChunk: seed must be a whole number or None"),
        ({"source_exhausted": "b"}, "source_exhausted must be a sequence of component names"),
        ({"source_exhausted": None}, "source_exhausted must be a sequence of component names"),
        ({"source_exhausted": ["b", "b"]}, "source_exhausted names 'b' twice"),
        ({"source_exhausted": [""]}, "must hold non-empty names, got ''"),
        ({"source_exhausted": [1]}, "must hold non-empty names, got 1"),
        ({"target_mixture": [1]}, "target_mixture must map names to weights, got list"),
        ({"target_mixture": {"a": -1}}, r"target_mixture\['a'\] must be a finite number"),
        ({"target_mixture": {"a": float("nan")}}, r"target_mixture\['a'\]"),
        ({"target_mixture": {"a": "1"}}, r"target_mixture\['a'\]"),
        ({"target_mixture": {"a": True}}, r"target_mixture\['a'\]"),
        ({"target_mixture": {"a": b"1"}}, r"target_mixture\['a'\] must be a finite .* got b'1'"),
        ({"target_mixture": {"a": 0}}, "must have a weight above 0"),
        ({"target_mixture": {}}, "must have a weight above 0"),
    ],
)
def test_other_arguments_of_another_kind_are_refused(change, said):
    with pytest.raises(PlanError, match=said):
        chunk(**change)


def test_a_mixture_spec_is_a_target_and_a_set_of_names_has_one_order():
    found = chunk(target_mixture=MixtureSpec({"a": 2, "b": 1}), source_exhausted={"z", "b", "k"})
    assert found.target_mixture == {"a": 2.0, "b": 1.0}
    assert found.source_exhausted == ("b", "k", "z")


def cut():
    component = np.array([1, 0, 1, 1, 0, 1, 0, 1, 1])
    ids = np.array([B[0], A[0], B[1], *A[1:6], B[2]])
    return WorkChunk.of_samples(
        Samples.in_order(("x", "y", "z"), component, ids), source_exhausted=["q"]
    )


def test_a_chunk_that_was_cut_from_a_stream_keeps_its_order():
    samples = [B[0], A[0], B[1], *A[1:6], B[2]]
    assert list(cut()) == list(zip(samples, "yxyyxyxyy", strict=True))
    assert list(cut().components) == ["x", "y"]
    in_turn = cut().materialize_order(MixtureReadConfig())
    assert in_turn != list(cut())
    assert sorted(in_turn) == sorted(cut())


@pytest.mark.parametrize(
    "make",
    [chunk, cut, lambda: WorkChunk({}), lambda: chunk(seed=-4, target_mixture={"b": 1.5})],
    ids=["counts", "cut", "empty", "settings"],
)
def test_a_chunk_is_a_value(make):
    found = make()
    state = json.loads(json.dumps(found.state_dict()))
    assert state["version"] == 3
    for other in (WorkChunk.from_state(state), pickle.loads(pickle.dumps(found)), make()):
        assert other == found
        assert list(other) == list(found)
        assert other.state_dict() == found.state_dict()
    assert copy.deepcopy(found) is found


def test_chunks_that_differ_anywhere_are_not_equal():
    different = [
        chunk(),
        chunk(seed=1),
        chunk(source_exhausted=("b",)),
        chunk(target_mixture={"a": 1}),
        WorkChunk({"a": A, "b": B}),
        WorkChunk({"a": A[:5], "b": [*B, A[5]], "none": []}),
        WorkChunk({"a": A[::-1], "b": B, "none": []}),
        cut(),
        WorkChunk(cut().components, source_exhausted=["q"]),
    ]
    for i, one in enumerate(different):
        assert [one == other for other in different] == [i == j for j in range(len(different))]
    assert chunk() != "chunk"
    with pytest.raises(TypeError, match="unhashable"):
        hash(chunk())


def damaged(**changes):
    state = cut().state_dict()
    return {key: value for key, value in {**state, **changes}.items() if value != "gone"}


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (None, "must be of version 3, got None"),
        (damaged(version=4), "must be of version 3, got 4; .* upgrade zephon"),
        (damaged(version=2), "must be of version 3, got 2"),
        (damaged(components="gone"), "damaged: KeyError 'components'"),
        (damaged(components={"a": [[1, 2]]}), "damaged: PlanError"),
        (damaged(order=[0, 0, 1]), "damaged: ValueError the order must name each of 9"),
        (damaged(order="x"), "damaged: ValueError"),
        (damaged(source_exhausted=5), "damaged: PlanError"),
    ],
)
def test_a_state_that_is_none_of_ours_is_refused(state, said):
    with pytest.raises(CheckpointError, match=said):
        WorkChunk.from_state(state)


def test_a_large_chunk_holds_no_tuples():
    ids = np.stack([np.zeros(16_384, int), np.arange(16_384) % 7, np.arange(16_384)], axis=1)
    found = WorkChunk({"a": ids[:10_000], "b": ids[10_000:]})
    first = next(iter(found))
    assert first == ((0, 0, 0), "a")
    assert found.sample_at(16_383)[1] in "ab"
    assert found.samples.ids.nbytes == 3 * 8 * 16_384
