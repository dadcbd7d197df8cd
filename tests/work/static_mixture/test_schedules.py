"""A static mixture whose weights change: by schedules, and when datasets end."""

import numpy as np
import pytest

from tests.work.static_mixture.draws import MIXTURE, drawn
from zephon.errors import ExecutionError, PlanError
from zephon.work import StaticMixtureWorkSource
from zephon.work.schedule import MixtureSchedule, StepSize


def test_a_schedule_changes_shares_at_its_points(shape) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6]), shape("c", [10**6])]
    points = {1000: {"a": 0, "b": 0.5, "c": 0.5}, 3000: {"a": 0.2, "b": 0, "c": 0.8}}
    source = StaticMixtureWorkSource(
        datasets, {"a": 0.9, "b": 0.1, "c": 0}, schedule=MixtureSchedule(points)
    )
    assert [c.read for c in source.components] == [True] * 3
    component = source.lane_stream(0, 1).draw(0, 6000).component
    cuts = (slice(0, 1000), slice(1000, 3000), slice(3000, 6000))
    shares = [np.bincount(component[cut], minlength=3) for cut in cuts]
    wanted = [[900, 100, 0], [0, 1000, 1000], [600, 0, 2400]]
    assert np.abs(np.array(shares) - wanted).max() <= 4


@pytest.mark.parametrize("lanes", [1, 8])
def test_lanes_get_to_a_point_together(shape, lanes) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6])]
    schedule = MixtureSchedule({4000: {"a": 0, "b": 1}})
    source = StaticMixtureWorkSource(datasets, {"a": 1, "b": 0}, schedule=schedule)
    for lane in range(lanes):
        component = source.lane_stream(lane, lanes).draw(0, 8000 // lanes).component
        assert np.flatnonzero(component == 1)[0] == 4000 // lanes
        assert source.lane_stream(lane, lanes).weights_at(4000 // lanes - 1).tolist() == [1, 0]
        assert source.lane_stream(lane, lanes).weights_at(4000 // lanes).tolist() == [0, 1]


def test_linear_weights_follow_a_line(shape) -> None:
    datasets = [shape("a", [10**7]), shape("b", [10**7])]
    schedule = MixtureSchedule({8000: {"a": 0, "b": 1}}, interpolation="linear")
    source = StaticMixtureWorkSource(datasets, {"a": 1, "b": 0}, schedule=schedule)
    stream = source.lane_stream(0, 1)
    drawn_b = np.cumsum(stream.draw(0, 10_000).component == 1)
    at = np.array([1, 10, 500, 4000, 7999])
    assert np.abs(drawn_b[at - 1] - at**2 / 16000).max() <= 3
    assert drawn_b[9999] - drawn_b[7999] == 2000
    assert stream.weights_at(4000) == pytest.approx([0.5, 0.5], abs=1e-3)


def test_a_schedule_in_steps_needs_to_know_a_step(shape) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6])]
    schedule = MixtureSchedule({10: {"a": 0, "b": 1}}, unit="steps")
    source = StaticMixtureWorkSource(datasets, {"a": 1, "b": 0}, schedule=schedule)
    stream = source.lane_stream(1, 4, step=StepSize(48, "samples"))
    assert np.flatnonzero(stream.draw(0, 500).component == 1)[0] == 120
    with pytest.raises(ExecutionError, match="unit='steps', and no global_batch_size says"):
        source.lane_stream(1, 4)
    with pytest.raises(PlanError, match="a step of this plan is 98,352 tokens, and the mixture co"):
        source.lane_stream(1, 4, step=StepSize(98352, "tokens"))


def test_the_default_end_waits_for_no_weight_that_is_gone(two) -> None:
    schedule = MixtureSchedule({100: {"prose": 1, "code": 0}})
    source = StaticMixtureWorkSource(two, MIXTURE, schedule=schedule)
    component = drawn(source)[0]
    assert component.count(1) in (29, 30, 31)
    assert component.count(0) == 115
    ends_first = MixtureSchedule({3: {"prose": 1, "code": 0}, 10: {"prose": 0, "code": 1}})
    later = drawn(StaticMixtureWorkSource(two, MIXTURE, schedule=ends_first))[0]
    assert later.count(1) == 60


def test_weights_that_stay_are_the_same_array(shape) -> None:
    datasets = [shape("a", [10**6]), shape("b", [10**6]), shape("never", [5])]
    schedule = MixtureSchedule({3000: {"a": 0, "b": 1, "never": 0}})
    source = StaticMixtureWorkSource(
        datasets, {"a": 1, "b": 1, "never": 0}, schedule=schedule, budget={"b": 5000}
    )
    stream = source.lane_stream(0, 1)
    first = stream.weights_at(0)
    assert stream.weights_at(2999) is stream.weights_at(1500) is first
    assert not first.flags.writeable
    assert first.tolist() == [0.5, 0.5, 0.0]
    assert stream.weights_at(3000).tolist() == [0.0, 1.0, 0.0]
    line = StaticMixtureWorkSource(
        datasets,
        {"a": 1, "b": 1, "never": 0},
        schedule=MixtureSchedule({5000: {"a": 1, "b": 0, "never": 0}}, interpolation="linear"),
    ).lane_stream(3, 7)
    walked = [line.weights_at(ordinal)[0] for ordinal in range(0, 714, 7)]
    assert walked == sorted(walked)
    for ordinal, weight in zip(range(0, 714, 7), walked, strict=True):
        assert abs(weight - (0.5 + 0.5 * ordinal * 7 / 5000)) < 0.003


def test_weights_in_force_after_an_end(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE, exhausted_policy="redistribute")
    stream = source.lane_stream(0, 1)
    assert stream.weights_at(0).tolist() == [0.7, 0.3]
    assert stream.weights_at(174).tolist() == [0.0, 1.0]
