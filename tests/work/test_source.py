import copy
import json
from dataclasses import dataclass

import numpy as np
import pytest

from tests.custom_sources import Dealt, Stateful, all_samples, numbered
from zephon.errors import (
    CheckpointError,
    ExecutionError,
    PlanError,
    RepeatedCallError,
    UnboundSourceError,
)
from zephon.work import StaticMixtureWorkSource, WorkSource
from zephon.work.chunks.source_description import recipe_of_source

DATASETS = {2: numbered("prose", 20, (0, 1)), 5: numbered("code", 9)}


def source(kind=Dealt, **changes):
    return kind(DATASETS, all_samples(DATASETS), **changes)


class Least(WorkSource):
    """Only what must be there."""

    datasets_by_id = DATASETS

    def next_chunk(self):
        return None


def test_what_must_be_there_and_what_comes_by_itself():
    for missing in ("next_chunk", "datasets_by_id"):
        members = {name: vars(Least)[name] for name in ("next_chunk", "datasets_by_id")}
        del members[missing]
        with pytest.raises(TypeError, match=f"abstract.* '?{missing}"):
            type("Lacking", (WorkSource,), members)()
    found = Least()
    assert found.component_ids() == {"prose": 2, "code": 5}
    assert found.continues_after_exhaustion() == frozenset()
    assert found.chunk_size_hint() is None
    assert found.requires_token_priming is False
    assert found.prime(io_options=None, counting_spec=None) is None
    assert found.supports_indexing() is False
    assert found.recipe() == {}
    assert (found.lane_id, found.canonical_replicas) == (None, None)
    assert bool(found)
    for ask in (lambda: len(found), lambda: found.sample_id_at(0)):
        with pytest.raises(NotImplementedError, match=r"Least: .* override"):
            ask()


def test_a_lane_gets_a_copy_of_its_own():
    found = source()
    one, other = found.clone_for_lane(0, 2), found.clone_for_lane(1, 2)
    one.next_chunk()
    assert (one.dealt, other.dealt, found.dealt) == (5, 0, 0)
    assert (one.lane_id, one.canonical_replicas) == (0, 2)
    assert (found.lane_id, found.canonical_replicas) == (None, None)
    assert one.datasets_by_id[2] is DATASETS[2]
    with pytest.raises(RuntimeError, match="copy for lane 0 of 2"):
        one.clone_for_lane(0, 2)
    for lane, lanes in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(PlanError, match=rf"lane_id from 0 to .* got {lane} of {lanes}"):
            found.clone_for_lane(lane, lanes)


def test_what_cannot_be_copied_is_named():
    found = source()
    found.lines = (line for line in "ab")
    with pytest.raises(PlanError, match=r"Dealt: clone_for_lane\(\) .* cannot pickle 'generator'"):
        found.clone_for_lane(0, 1)


def test_a_frozen_dataclass_is_a_source_too():
    @dataclass(frozen=True)
    class Frozen(Least):
        start: int = 3

    own = Frozen().clone_for_lane(1, 4)
    assert (own.start, own.lane_id, own.canonical_replicas) == (3, 1, 4)


def test_the_base_knows_only_whose_copy_it_is():
    own = source().clone_for_lane(1, 3)
    state = own.state_dict()
    assert state == {"lane_id": 1, "canonical_replicas": 3, "chunk_size_hint": None}
    own.load_state_dict(state)
    for changed, said in (
        ({"lane_id": 0}, "lane_id=1, got one of lane_id=0"),
        ({"canonical_replicas": 4}, "canonical_replicas=3, got one of canonical_replicas=4"),
    ):
        with pytest.raises(RuntimeError, match=said):
            own.load_state_dict({**state, **changed})
    with pytest.raises(CheckpointError, match="got one of lane_id=None"):
        own.load_state_dict({})


def test_overriding_half_of_a_state_is_a_mistake():
    class Says(Dealt):
        def state_dict(self):
            return super().state_dict()

    class Loads(Dealt):
        def load_state_dict(self, state):
            super().load_state_dict(state)

    for kind, said in (
        (Says, r"Says: state_dict\(\) is overridden, and load_state_dict\(\) is not"),
        (Loads, r"Loads: load_state_dict\(\) is overridden, and state_dict\(\) is not"),
    ):
        with pytest.raises(PlanError, match=said):
            source(kind).lane_stream(0, 1)


def words(**members):
    return type("Said", (Least,), members)()


def method(value):
    return lambda self: value


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"component_ids": method([1])}, r"component_ids\(\) must be a non-empty mapping .* \[1\]"),
        ({"component_ids": method({})}, r"component_ids\(\) must be a non-empty mapping"),
        ({"component_ids": method({"a": -1})}, r"component_ids\(\)\['a'\] must be a whole .* -1"),
        ({"component_ids": method({"a": 2**31})}, r"\['a'\] must be a whole number from 0 to"),
        ({"component_ids": method({"a": 1.0})}, r"\['a'\] must be a whole number .* 1.0"),
        ({"component_ids": method({"a": True})}, r"\['a'\] must be a whole number .* True"),
        ({"component_ids": method({"a": 4, "b": 4})}, "unique, 'a' and 'b' both have 4"),
        ({"component_ids": method({7: 4})}, "component names must be non-empty strings, got 7"),
        ({"continues_after_exhaustion": method({"prose"})}, r"must be a frozenset .* {'prose'}"),
        (
            {"continues_after_exhaustion": method(frozenset({"pros"}))},
            "names 'pros', which is no component; did you mean 'prose'",
        ),
        ({"chunk_size_hint": method(0)}, "chunk_size_hint.. must be a whole number .* 0"),
        ({"chunk_size_hint": method(2.5)}, "chunk_size_hint.. must be a whole number .* 2.5"),
        ({"datasets_by_id": {}}, "datasets_by_id must be a non-empty mapping"),
        ({"datasets_by_id": [DATASETS[2]]}, "datasets_by_id must be a non-empty mapping"),
        ({"datasets_by_id": {-2: DATASETS[2]}}, "the id -2 must be a whole number from 0"),
        ({"datasets_by_id": {0: "prose"}}, r"datasets_by_id\[0\] must be a Dataset, got 'prose'"),
        (
            {"datasets_by_id": {0: DATASETS[2], 1: numbered("prose", 3)}},
            "two datasets have the name 'prose'",
        ),
    ],
)
def test_words_that_are_not_as_documented_are_refused(members, said):
    for ask in (lambda s: s.components, lambda s: s.lane_stream(0, 1), recipe_of_source):
        with pytest.raises(PlanError, match=f"^Said.*{said}"):
            ask(words(**members))


def test_the_engine_counts_pairs_in_the_order_of_ids():
    found = words(component_ids=method({"z": np.int64(9), "a": 11, "k": 3}))
    pairs = [(c.name, c.dataset_id, c.dataset.name, c.read) for c in found.components]
    assert pairs == [
        (name, number, DATASETS[number].name, True) for name in "kza" for number in (2, 5)
    ]
    assert sum(c.weight for c in found.components) == pytest.approx(1)
    same = words(datasets_by_id={5: DATASETS[2], 1: DATASETS[2]})
    assert [c.dataset_id for c in same.components] == [1, 5]


def test_what_a_checkpoint_knows_of_a_source():
    found = source(sizes=(3,))
    recipe = recipe_of_source(found)
    assert json.loads(json.dumps(recipe)) == recipe
    assert recipe == {
        "source": "tests.custom_sources.Dealt",
        "components": [["prose", 0], ["code", 1]],
        "datasets": [[2, "prose"], [5, "code"]],
        "continues_after_exhaustion": [],
        "chunk_size_hint": None,
        "recipe": {"samples": 29, "sizes": [3], "rounds": 1},
    }
    plain = recipe_of_source(Least())
    assert "recipe" not in plain
    assert "fingerprint" not in plain
    for members in ({"fingerprint": "v2"}, {"fingerprint": method("v2")}):
        assert recipe_of_source(words(**members))["fingerprint"] == "v2"
    with pytest.raises(PlanError, match=r"Said.recipe must be JSON values, .* set"):
        recipe_of_source(words(recipe=method({"seen": {1}})))


def test_what_explain_says_of_a_source():
    assert source().describe(4) == (
        "order, weights and ends are decided by Dealt, in chunks of any number samples",
        "components: prose, code",
        "a restored lane draws all chunks before it again: the source has no state_dict and "
        "load_state_dict of its own",
    )
    many = words(
        component_ids=method({f"c{i}": i for i in range(40)}), chunk_size_hint=method(2048)
    )
    first, second, _ = many.describe(1)
    assert "about 2,048 samples" in first
    assert second.endswith("c10, c11, and 28 more")
    assert source(Stateful).describe(1)[2].startswith("a checkpoint holds the source's own state")


# The same protocol on our own source


def mixture(**changes):
    return StaticMixtureWorkSource(
        [DATASETS[2], DATASETS[5]],
        {"prose": 0.7, "code": 0.3},
        **{"chunk_size": 6, "shuffle_within_shard": True, **changes},
    )


def chunks_of(own):
    return list(iter(own.next_chunk, None))


@pytest.mark.parametrize("lanes", [1, 3, 64])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"exhausted_policy": "stop"},
        {"exhausted_policy": "redistribute"},
        {"exhausted_policy": {"prose": "redistribute", "code": "repeat"}, "max_repeats": 3},
        {"budget": {"code": 4}, "exhausted_policy": "redistribute"},
        {"stop_after_passes": 3, "chunk_size": 1},
    ],
    ids=str,
)
def test_our_own_chunks_are_the_draws_of_the_lane(lanes, settings):
    found = mixture(**settings)
    for lane in range(lanes):
        refs = found.lane_stream(lane, lanes).draw(0, 10_000)
        chunks = chunks_of(found.clone_for_lane(lane, lanes))
        samples = [pair for chunk in chunks for pair in chunk]
        assert [name for _, name in samples] == [
            found.components[c].name for c in refs.component.tolist()
        ]
        assert [sample for sample, _ in samples] == [
            (c, int(found.components[c].dataset.ids()[shard]), row)
            for c, shard, row in zip(
                refs.component.tolist(), refs.shard.tolist(), refs.row.tolist(), strict=True
            )
        ]
        assert [len(chunk) for chunk in chunks[:-1]] == [found.chunk_size] * (len(chunks) - 1)
        _check_announcements(found, chunks)


def _check_announcements(found, chunks):
    """A name stands from the chunk of the lane's last sample of it on, never before."""
    last = dict.fromkeys(found.component_ids(), -1)
    for number, chunk in enumerate(chunks):
        last.update(dict.fromkeys(chunk.mixture, number))
    for number, chunk in enumerate(chunks):
        assert set(chunk.source_exhausted) == {n for n, at in last.items() if at <= number}


def test_a_lane_without_end_announces_only_what_will_not_come_again():
    found = mixture(exhausted_policy={"prose": "redistribute", "code": "repeat"})
    own = found.clone_for_lane(0, 1)
    chunks = [own.next_chunk() for _ in range(12)]
    assert [chunk.source_exhausted for chunk in chunks] == [()] * 4 + [("prose",)] * 8
    assert chunks[4].mixture.keys() == {"prose", "code"}
    assert chunks[0].target_mixture == {"prose": 0.7, "code": 0.3}
    assert chunks[5].target_mixture == {"code": 1.0}
    assert found.continues_after_exhaustion() == {"prose"}
    assert mixture().continues_after_exhaustion() == frozenset()


def test_our_own_source_goes_on_from_its_state():
    found = mixture()
    whole = chunks_of(found.clone_for_lane(1, 2))
    for cut in range(len(whole) + 1):
        own = found.clone_for_lane(1, 2)
        for _ in range(cut):
            own.next_chunk()
        state = json.loads(json.dumps(own.state_dict()))
        again = found.clone_for_lane(1, 2)
        again.load_state_dict(state)
        assert chunks_of(again) == whole[cut:]
    with pytest.raises(RuntimeError, match="lane_id=0, got one of lane_id=1"):
        found.clone_for_lane(0, 2).load_state_dict(state)
    with pytest.raises(RuntimeError, match="a chunk of 7 draws, got chunk 4 of 6"):
        mixture(chunk_size=7).clone_for_lane(1, 2).load_state_dict({**state, "chunk": 4})


def test_our_own_source_must_be_bound_once_before_it_gives_chunks():
    found = mixture()
    for kind in (AssertionError, UnboundSourceError, PlanError):
        with pytest.raises(kind, match=r"call clone_for_lane\(lane_id, canonical_replicas\) first"):
            found.next_chunk()
    with pytest.raises(RepeatedCallError, match="its copy for lane 0"):
        found.clone_for_lane(0, 1).clone_for_lane(0, 1)
    own = found.clone_for_lane(0, 1)
    own.next_chunk()
    assert copy.deepcopy(own).next_chunk() == own.next_chunk()
    assert found.component_ids() == {"prose": 0, "code": 1}
    assert found.chunk_size_hint() == 6
    assert recipe_of_source(found) == found.recipe()


def test_our_own_source_gives_no_chunks_where_tokens_decide():
    with pytest.raises(PlanError, match="orders draws by tokens"):
        mixture(mixture_unit="tokens").clone_for_lane(0, 1).next_chunk()
    from zephon.work import TokenEstimation

    with pytest.raises(ExecutionError, match="must be estimated before the first draw"):
        mixture(token_estimation=TokenEstimation()).clone_for_lane(0, 1).next_chunk()


def test_a_source_that_wraps_ours_draws_what_ours_draws():
    class Wrapped(WorkSource):
        def __init__(self):
            self.inner = mixture()

        @property
        def datasets_by_id(self):
            return self.inner.datasets_by_id

        def clone_for_lane(self, lane_id, canonical_replicas):
            own = super().clone_for_lane(lane_id, canonical_replicas)
            own.inner = self.inner.clone_for_lane(lane_id, canonical_replicas)
            return own

        def next_chunk(self):
            return self.inner.next_chunk()

    ours = mixture().lane_stream(1, 2).draw(0, 100)
    stream = Wrapped().lane_stream(1, 2)
    theirs = stream.draw(0, 100)
    assert stream.failure is None
    assert theirs.row.tolist() == ours.row.tolist()
    assert theirs.shard.tolist() == ours.shard.tolist()
    # components are pairs there: prose with 0, with 1, code with 0, with 1
    assert theirs.component.tolist() == (ours.component * 3).tolist()
