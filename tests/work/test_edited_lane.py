"""Lanes of an edited run: the draws since the edit, and those before when they are looked up."""

import numpy as np
import pytest

from zephon.work import MixtureSchedule, StaticMixtureWorkSource
from zephon.work.edited_lane import EditedLane, PartlyGone
from zephon.work.ends import Base
from zephon.work.former import former_plan
from zephon.work.lanes import Lanes
from zephon.work.schedule import StepSize


def test_a_recipe_gives_the_lanes_back(shape) -> None:
    """Scaled weights are not scaled once more: that would round."""
    names = [f"d{number}" for number in range(7)]
    rng = np.random.default_rng(5)
    weights = [dict(zip(names, rng.random(7).tolist(), strict=True)) for _ in range(3)]
    datasets = [shape(name, [40 + 3 * place, 0, 11]) for place, name in enumerate(names)]
    source = StaticMixtureWorkSource(
        datasets,
        weights[0],
        chunk_size=4,
        seed=3,
        shuffle_within_shard=True,
        shuffle_block_size="auto",
        exhausted_policy={name: "redistribute" if name > "d3" else "repeat" for name in names},
        budget={"d1": 30},
        schedule=MixtureSchedule({10: weights[1], 25: weights[2]}, unit="steps"),
    )
    step = StepSize(12, "samples")
    counts = {dataset.name: dataset.counts() for dataset in datasets}
    numbers = {name: number for number, name in enumerate(names)}
    plan = former_plan(source.recipe(), numbers, counts)
    assert plan.recipe(None) == source.recipe()
    for lane in range(3):
        was, found = source.lane_stream(lane, 3, step=step), Lanes(plan, 3, step, None).stream(lane)
        assert found.length == was.length
        for name in ("component", "shard", "row", "pass_index"):
            ours, theirs = (getattr(each.draw(0, 900), name) for each in (found, was))
            assert np.array_equal(ours, theirs)


def test_parts_before_are_made_when_they_are_asked_for(shape) -> None:
    source = StaticMixtureWorkSource([shape("a", [50])], {"a": 1.0})
    made = []

    def before():
        made.append(source.lane_stream(0, 1))
        return made[-1]

    base = Base(20, 20.0, np.array([20]))
    lane = EditedLane(source.lane_stream(0, 1, state=base), 20, [(0, before)])
    assert lane.length == 50
    assert lane.draw(20, 5).row.tolist() == source.lane_stream(0, 1).draw(20, 5).row.tolist()
    assert lane.part(20)[0] == 20
    assert not made
    assert lane.part(19) == (0, made[0])
    assert lane.part(3) == (0, made[0])
    with pytest.raises(ValueError, match="start must be at least 20, where this lane goes on"):
        lane.draw(19, 1)
    assert lane.weights_at(3).tolist() == [1.0]


def test_rows_of_what_is_gone_are_left_out_and_the_others_keep_their_numbers(shape) -> None:
    source = StaticMixtureWorkSource([shape("a", [50]), shape("b", [30])], {"a": 0.5, "b": 0.5})
    stream = source.lane_stream(0, 1)
    lane, whole = PartlyGone(stream, [0]), stream.draw(0, 20)
    assert lane.length == stream.length
    assert set(whole.component) == {0, 1}
    assert lane.draw(0, 20).ordinal.tolist() == whole.ordinal[whole.component == 1].tolist()
