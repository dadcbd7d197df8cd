import pytest

from zephon.work import StaticMixtureWorkSource
from zephon.work.budget import tokens
from zephon.work.schedule import MixtureSchedule, StepSize
from zephon.work.token_estimation import TokenEstimation


@pytest.fixture
def two(shape):
    return [shape("prose", [70, 5, 40]), shape("code", [30, 30])]


MIXTURE = {"prose": 0.7, "code": 0.3}


def told(two, lanes=1, step=None, **how) -> list[str]:
    return list(StaticMixtureWorkSource(two, MIXTURE, **how).describe(lanes, step))


def test_the_default(two) -> None:
    assert told(two) == [
        "weights count samples",
        "prose, code: repeats until each has made a pass",
        "order: shards in random order; seed 0",
        "draws: 199",
    ]


def test_lanes_are_counted_one_by_one(two) -> None:
    source = StaticMixtureWorkSource(two, MIXTURE)
    lengths = [source.lane_stream(lane, 4).length for lane in range(4)]
    wanted = f"draws: {sum(lengths)} in 4 lanes, {min(lengths)} to {max(lengths)} in each"
    assert told(two, 4)[-1] == wanted
    assert told(two, 5000)[-1] == "draws: not worked out for more than 1,024 lanes"


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({"stop_after_passes": 3}, "prose, code: repeats until each has made 3 passes"),
        (
            {"exhausted_policy": {"prose": "redistribute"}},
            "prose: one pass, then its weight goes to the others",
        ),
        (
            {"exhausted_policy": "stop"},
            "prose, code: one pass; the source stops where a row of it is missing",
        ),
        ({"exhausted_policy": "repeat"}, "prose, code: repeats without end"),
        (
            {"exhausted_policy": "repeat", "max_repeats": 1},
            "prose, code: at most 2 passes; the source stops where a row of it is missing",
        ),
        ({"exhausted_policy": "repeat"}, "draws: without end"),
        ({"budget": {"code": 10}}, "budget of code: 10 samples"),
        ({"mixture_unit": "tokens", "budget": {"code": tokens(6e10)}},
         "budget of code: 60,000,000,000 tokens"),
        ({"mixture_unit": "tokens"}, "draws: known once the data are read, since tokens decide"),
        ({"token_estimation": TokenEstimation()}, "weights count estimated tokens"),
        (
            {"reshuffle_on_repeat": {"code": False}, "seed": 9},
            "order: shards in random order, the same in every pass of code; seed 9",
        ),
        (
            {"token_estimation": TokenEstimation()},
            "draws: known once the run begins, when the tokens of a mean row are estimated",
        ),
        (
            {"shuffle_shards": False, "shuffle_within_shard": True},
            "order: shards in order, rows of each shard in random order; seed 0",
        ),
        (
            {"shuffle_block_size": 7},
            "order: shards in random order, then rows in random order within blocks of 7; seed 0",
        ),
        (
            {"shuffle_block_size": "global"},
            "order: all rows of each dataset in random order; seed 0",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_was_asked_for(two, how, line) -> None:
    assert line in told(two, **how)


def test_a_schedule_shows_the_weights_in_force(two) -> None:
    schedule = MixtureSchedule({1000: {"prose": 0, "code": 1}}, unit="steps")
    lines = told(two, 4, StepSize(8, "samples"), schedule=schedule)
    at = lines.index("weights change in jumps; at the beginning prose 0.7, code 0.3")
    assert lines[at + 1 : at + 3] == [
        "  from 1,000 steps: prose 0, code 1",
        "  no weight in the end: prose; nothing waits for rows not drawn by then",
    ]
    unknown = told(two, 4, schedule=schedule)[-1]
    assert unknown == "draws: known with options(global_batch_size=...), which says what a step is"


def test_long_lists_are_cut(shape) -> None:
    names = [f"d{number:03}" for number in range(60)]
    source = StaticMixtureWorkSource(
        [shape(name, [5]) for name in names],
        dict.fromkeys(names, 1),
        schedule=MixtureSchedule({at: dict.fromkeys(names, 1) for at in range(1, 30)}),
        budget=dict.fromkeys(names, 3),
    )
    lines = source.describe(1)
    assert len(lines) < 40
    assert all(len(line) < 400 for line in lines)
    assert "  and 17 more points" in lines
    assert "and 48 more budgets" in lines
    first = ", ".join(names[:12])
    assert f"{first}, and 48 more: repeats until each has made a pass" in lines
