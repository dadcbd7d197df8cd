"""Parts of several ranks as one state: united, refused where they are not of one checkpoint."""

import json
from itertools import islice

import pytest

from tests.properties.recipes import packed, rows, rows_of
from zephon.errors import CheckpointError
from zephon.exec.checkpoint import content_digest
from zephon.exec.lane_table import table_of, trees_of

R, LANES = 24, 4


def job(degree=1, group=0, *, microbatch=1, **options):
    settings = {"global_batch_size": R, "canonical_replicas": LANES, **options}
    return packed(
        max_length=29, microbatch=microbatch, dp_degree=degree, dp_group_id=group, **settings
    )


def turning(degree=1, group=0, **options):
    """Take turns: no global batch, four lanes."""
    return job(degree, group, global_batch_size=None, **options)


def cut(pipeline, batches):
    """Run so many batches; give the rows and the state after them."""
    items = iter(pipeline)
    found = [row for batch in islice(items, batches) for row in rows_of(batch)]
    state = pipeline.checkpoint(scope="local")
    items.close()
    return found, state


def parts_of(degree, batches, make=job):
    """Give each rank's state after as many batches as are said of it."""
    counts = [batches] * degree if isinstance(batches, int) else batches
    return [cut(make(degree, group), count)[1] for group, count in enumerate(counts)]


@pytest.fixture(scope="module")
def whole():
    return rows(job())


# Between steps


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 8, 24])
def test_parts_make_the_state_of_one_rank_byte_for_byte(degree):
    _, one = cut(job(), 2 * R)
    assert one["position"] == {"step": 2}
    found = parts_of(degree, 2 * R // degree)
    assert job().restore(found).checkpoint() == one
    assert json.dumps(job().restore(found[::-1]).checkpoint()) == json.dumps(one)
    mixed = [json.dumps(part) if i % 2 else None for i, part in enumerate(found)]
    forms = [json.loads(text) if text else part for text, part in zip(mixed, found, strict=True)]
    assert job().restore(tuple(forms)).checkpoint(as_bytes=True) == job().restore(one).checkpoint(
        as_bytes=True
    )


def test_parts_as_bytes(whole):
    pipelines = [job(3, group) for group in range(3)]
    found = []
    for pipeline in pipelines:
        items = iter(pipeline)
        list(islice(items, R // 3))
        found.append(pipeline.checkpoint(as_bytes=True, scope="local"))
        items.close()
    assert rows(job().restore(found)) == whole[R:]


def test_the_state_of_any_rank_at_an_edge_does_not_say_how_many_there_were():
    for degree in (1, 2, 3):
        for part in parts_of(degree, R // degree):
            assert part["position"] == {"step": 1}


def test_some_parts_are_enough_where_they_hold_every_lane(whole):
    """Ranks 0 and 1 of eight share lane 0; rank 5 needs one part that has its lane."""
    found = parts_of(8, R // 8)
    assert rows(job().restore(found[::2])) == whole[R:]
    assert rows(job(8, 5).restore([found[4]])) == rows(job(8, 5).restore(found))


@pytest.mark.parametrize("degree", [2, 4, 8])
def test_the_same_part_twice_does_no_harm(degree):
    """Ranks that read the same data save equal parts, as do ranks that share a lane."""
    for batches in (R // degree, R // degree + 1, [1] * (degree - 1) + [0]):
        found = parts_of(degree, batches)
        wanted = job().restore(found).checkpoint()
        twice = [*found, json.loads(json.dumps(found[0])), *found[::-1]]
        assert job().restore(twice).checkpoint() == wanted
    doubled = parts_of(2, 4, turning)
    wanted = turning().restore(doubled).checkpoint()
    assert turning().restore([*doubled, doubled[1]]).checkpoint() == wanted


def test_a_part_twice_stands_for_no_other_rank():
    """Within a step: whoever is missing is not one that has delivered nothing of it."""
    found = parts_of(8, R // 8 + 1)
    found[3] = parts_of(8, R // 8)[3]  # stands before the step, in lane 1 as rank 2 does
    state = job(8, 0).restore([found[0]] * 8).checkpoint()
    assert state["position"]["delivered"] == [1] + [None] * 7
    with pytest.raises(CheckpointError, match="does not say how much of it group 1 had handed ou"):
        iter(job(8, 1).restore([found[0]] * 8))
    missing = [*found[:2], *found[3:], found[4], found[5]]
    state = job(8, 0).restore(missing).checkpoint()
    assert state["position"]["delivered"] == [1, 1, None, None, 1, 1, 1, 1]
    state = job(8, 0).restore([*found, *found[::2]]).checkpoint()
    assert state["position"]["delivered"] == [1, 1, 1, 0, 1, 1, 1, 1]


def test_one_part_in_a_list_is_that_part():
    _, part = cut(job(2, 1), 5)
    assert job(2, 1).restore([part]).checkpoint() == part
    assert part["position"] == {"step": 0, "dp_degree": 2, "delivered": [None, 5]}


def test_states_that_were_given_are_left_as_they_were():
    found = parts_of(2, R // 2)
    before = json.dumps(found)
    pipeline = job().restore(found)
    pipeline.checkpoint()["lanes"].clear()
    next(iter(pipeline))
    assert json.dumps(found) == before


# What is refused


def test_lanes_that_no_part_holds_are_named():
    found = parts_of(4, R // 4)
    with pytest.raises(
        CheckpointError, match=r"lacks lanes 1, 3, which .* holds lanes 0, 2: pass the"
    ):
        iter(job().restore(found[::2]))
    with pytest.raises(
        CheckpointError, match=r"lacks lane 0, which this .* holds lane 3: pass the pa"
    ):
        iter(job(4, 0).restore(found[3]))


def test_many_lanes_are_not_all_listed():
    part = cut(job(24, 0, canonical_replicas=24), 1)[1]
    with pytest.raises(CheckpointError) as caught:
        iter(job(canonical_replicas=24).restore(part))
    assert "lacks lanes 1 to 23, which this rank" in str(caught.value)


def test_parts_of_different_steps_are_refused():
    first, second = parts_of(2, [R // 2, R])
    message = r"these parts are of different moments \(part 0 at step 1, part 1 at step 2\): pass"
    with pytest.raises(CheckpointError, match=message):
        job().restore([first, second])


def test_parts_of_different_runs_are_refused():
    first = cut(job(2, 0), R // 2)[1]
    other = cut(job(2, 1, canonical_replicas=12), R // 2)[1]
    with pytest.raises(CheckpointError, match="parts 0 and 1 differ in 'fingerprint'"):
        job().restore([first, other])


def test_lanes_that_are_not_where_another_part_says_are_refused():
    """A part of another moment that shares a lane: possible only without a global batch."""
    early = cut(turning(2, 0), 2)[1]
    late = cut(turning(1), 12)[1]
    late["position"]["dp_degree"] = 2  # as if a rank of another topology had written it
    late["digest"] = content_digest(late)
    message = r"parts 0 and 1 hold lane 0 at different rows \(1 and 3\); a part of another run"
    with pytest.raises(CheckpointError, match=message):
        turning().restore([early, late])


def test_lanes_that_differ_at_the_same_rows_are_refused():
    first, second = parts_of(8, R // 8)[:2]
    trees = trees_of(second["lanes"])
    trees[0]["last_draw"] += 1
    second["lanes"] = table_of(trees)
    second["digest"] = content_digest(second)
    with pytest.raises(CheckpointError, match=r"hold lane 0 in different states \(6 and 6\)"):
        job().restore([first, second])


def test_a_bad_part_is_named():
    good = cut(job(), 1)[1]
    with pytest.raises(CheckpointError, match="restore: part 1: the checkpoint is damaged"):
        job().restore([good, {**good, "lane_count": 5}])
    with pytest.raises(CheckpointError, match=r"restore: part 1: these bytes are no checkpoint"):
        job().restore([good, b"x"])
    with pytest.raises(TypeError, match="restore: part 0: expected a checkpoint dict or bytes, go"):
        job().restore([None])
    with pytest.raises(CheckpointError, match="no parts were given"):
        job().restore([])


def test_other_tokenizer_back_ends_are_told():
    first, second = parts_of(2, R // 2)
    second["tokenizer_backends"] = [{"backend": "other", "version": "1"}]
    second["digest"] = content_digest(second)
    with pytest.warns(RuntimeWarning, match="part 0 was taken with tokenizer back ends .* part 1"):
        job().restore([first, second])


# Within a step


def test_within_a_step_the_same_ranks_go_on(whole):
    counts = [3, 0, 8, 7]
    degree = 4
    found = parts_of(degree, [6 + min(count, 5) for count in counts])
    position = job(degree, 0).restore(found).checkpoint()["position"]
    assert position == {"step": 1, "dp_degree": 4, "delivered": [3, 0, 5, 5]}
    share = R // degree
    for group, done in enumerate(position["delivered"]):
        again = rows(job(degree, group).restore(found), share - done)
        begin = R + group * share
        assert again == whole[begin + done : begin + share]


def test_a_rank_that_has_not_begun_says_of_others_only_what_it_was_given(whole):
    """Its state is all that it waits to go on from, and one part of what ranks say together."""
    degree, share = 4, R // 4
    given = parts_of(degree, [9, 6, 11, 10])
    ranks = [job(degree, group).restore(given) for group in range(degree)]
    assert rows(ranks[0], 1) + rows(ranks[3], 1) == [whole[R + 3], whole[2 * R - 2]]
    parts = [rank.checkpoint(scope="local") for rank in ranks]
    position = job(degree, 0).restore(parts[::-1]).checkpoint()["position"]
    assert position == {"step": 1, "dp_degree": 4, "delivered": [4, 0, 5, 5]}
    for group, done in enumerate(position["delivered"]):
        again = rows(job(degree, group).restore(parts), share - done)
        assert again == whole[R + group * share + done : R + (group + 1) * share]
    assert rows(job(degree, 0).restore(parts[1]), 3) == whole[R + 3 : R + 6]  # all that waits
    with pytest.raises(CheckpointError, match="lacks lane 2, which this rank runs; it holds lanes"):
        iter(job(degree, 2).restore([parts[0], parts[1], parts[3]]))
    with pytest.raises(CheckpointError, match="says that group 0 has handed out 4 rows of step 1"):
        job(degree, 0).restore([cut(job(degree, 0), 11)[1], *parts])


def test_a_rank_that_has_not_begun_a_step_anew_is_one_of_those_that_do(whole):
    found = parts_of(4, [9, 6, 11, 7])
    ranks = [job(2, group).restore(found, allow="partial_step") for group in range(2)]
    assert rows(ranks[1], 2) == whole[R + 12 : R + 14]
    parts = [rank.checkpoint(scope="local") for rank in ranks]
    assert rows(job(2, 0).restore(parts), 12) == whole[R : R + 12]
    assert rows(job(2, 1).restore(parts), 10) == whole[R + 14 : 2 * R]


def test_within_a_step_other_ranks_are_refused_or_begin_it_anew(whole):
    found = parts_of(4, [9, 6, 11, 7])
    with pytest.raises(CheckpointError) as caught:
        iter(job(2, 0).restore(found))
    assert str(caught.value) == (
        "restore: the checkpoint was taken inside step 1 with dp_degree=4, options say 2; restore "
        "it with dp_degree=4, take checkpoints at the end of a step, or pass "
        "allow={'partial_step'}, which delivers step 1 again from its first row"
    )
    for degree in (1, 2, 3, 8):
        share = R // degree
        again = [
            rows(job(degree, group).restore(found, allow={"partial_step"}), share)
            for group in range(degree)
        ]
        assert [row for rank in again for row in rank] == whole[R : 2 * R]


def test_a_rank_alone_that_is_to_begin_a_step_anew_stands_before_it(whole):
    waits = job().restore(parts_of(4, [9, 6, 11, 7]), allow={"partial_step"}).checkpoint()
    assert waits == job().restore(cut(job(), R)[1]).checkpoint()
    assert rows(job().restore(waits), R) == whole[R : 2 * R]


def test_partial_step_changes_nothing_for_the_same_ranks(whole):
    _, state = cut(job(), R + 5)
    assert rows(job().restore(state, allow="partial_step")) == whole[R + 5 :]


def test_a_step_begun_anew_needs_no_fitting_microbatch(whole):
    _, state = cut(job(), R + 5)
    again = rows(job(2, 0, microbatch=12).restore(state, allow=["partial_step"]), 1)
    assert again == whole[R : R + 12]


def test_a_group_that_no_part_tells_of_is_refused():
    found = parts_of(8, [4, 5, 4, 4, 3, 3, 5, 4])
    message = r"inside step 1 and does not say how much of it group 7 had .* only groups 0, 1, 2, 3"
    with pytest.raises(CheckpointError, match=message):
        iter(job(8, 7).restore(found[:7]))
    assert next(iter(job(8, 6).restore(found[:7])))


def test_parts_that_contradict_each_other_within_a_step_are_refused():
    one, other = (cut(job(2, 0), count)[1] for count in (3, 4))
    with pytest.raises(CheckpointError, match="part 1 says that group 0 has handed out 4 rows of"):
        job(2, 0).restore([one, other])
    three = cut(job(3, 1), 4)[1]
    with pytest.raises(CheckpointError, match="part 1 was taken with dp_degree=3, part 0 with 2"):
        job(2, 0).restore([one, three])
    before, within = parts_of(2, 12), parts_of(2, 13)
    message = "part 0 stands before step 1, of which each rank that it can be of has handed out"
    for allow in ((), "partial_step"):
        with pytest.raises(CheckpointError, match=message):
            job(2, 0).restore(before + within, allow=allow)
        with pytest.raises(CheckpointError, match=message):
            job(2, 0).restore([before[0], within[0]], allow=allow)


# Without a global batch


def lanes_of(found):
    by_lane = {}
    for row in found:
        by_lane.setdefault(row[1], []).append(row)
    return by_lane


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.filterwarnings("ignore:restore. taken mid-window", "ignore:canonical_replicas=4")
def test_lanes_go_on_where_they_were_on_other_ranks(degree):
    wanted = lanes_of(rows(turning()))
    heads, states = zip(*(cut(turning(2, group), 3 + 2 * group) for group in range(2)), strict=True)
    tails = [rows(turning(degree, group).restore(states)) for group in range(degree)]
    found = lanes_of([row for head in heads for row in head])
    for lane, after in lanes_of([row for tail in tails for row in tail]).items():
        found[lane] = found.get(lane, []) + after
    assert found == wanted


@pytest.mark.filterwarnings("ignore:restore. taken mid-window")
def test_a_rank_that_has_not_begun_says_nothing_of_lanes_of_others():
    wanted = [rows(turning(2, group)) for group in range(2)]
    for degree in (1, 2):
        given = parts_of(degree, 4, turning)
        ranks = [turning(2, group).restore(given) for group in range(2)]
        head = rows(ranks[0], 5)
        parts = [rank.checkpoint(scope="local") for rank in ranks]
        tails = [rows(turning(2, group).restore(parts)) for group in range(2)]
        tails[0] = head + tails[0]
        for found, whole in zip(tails, wanted, strict=True):
            for lane, after in lanes_of(found).items():
                assert after == lanes_of(whole)[lane][-len(after) :]
            done = 4 if degree == 2 else 2
            assert len(found) == len(whole) - done


def test_turns_go_on_where_the_same_lanes_are_run(recwarn):
    """Whoever runs the same lanes takes the turns that the rank before would have taken."""
    for strategy in ("contiguous", "interleaved"):
        for group in range(2):
            straight = rows(turning(2, group, mapping_strategy=strategy))
            _, state = cut(turning(2, group, mapping_strategy=strategy), 3)
            both = [state, cut(turning(2, 1 - group, mapping_strategy=strategy), 5)[1]]
            for given in (state, both):
                again = turning(2, group, mapping_strategy=strategy).restore(given)
                assert rows(again) == straight[3:]
    assert not [w for w in recwarn if "mid-window" in str(w.message)]


def test_within_a_window_other_turns_are_told():
    _, state = cut(turning(), 6)
    assert state["position"] == {"turns": {"0": 2}, "dp_degree": 1, "mapping": "contiguous"}
    with pytest.warns(RuntimeWarning, match=r"restore: taken mid-window: lanes have handed out .*"):
        second = turning(2, 1).restore(state)
        assert [row[1] for row in rows(second, 4)] == [2, 3, 2, 3]
    with pytest.warns(RuntimeWarning, match="mid-window"):
        mixed = turning(2, 0, mapping_strategy="interleaved").restore(state)
        assert [row[1] for row in rows(mixed, 3)] == [2, 0, 2]


def test_at_the_end_of_a_window_nothing_is_told(recwarn):
    _, state = cut(turning(), 8)
    assert [row[1] for row in rows(turning(2, 1).restore(state), 4)] == [2, 3, 2, 3]
    assert not [w for w in recwarn if "mid-window" in str(w.message)]


def test_ranks_of_another_topology_are_refused():
    one, other = cut(turning(2, 0), 1)[1], cut(turning(4, 3), 1)[1]
    with pytest.raises(CheckpointError, match="part 1 was taken with dp_degree=4, part 0 with 2"):
        turning().restore([one, other])
    woven = cut(turning(2, 1, mapping_strategy="interleaved"), 1)[1]
    with pytest.raises(
        CheckpointError, match="part 1 was taken with mapping_strategy='interleaved"
    ):
        turning().restore([one, woven])


# By the names of torch's stateful loaders
