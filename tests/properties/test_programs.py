"""Whatever is called in whatever order: rows, states and counts are those of the place alone.

`--programs` adds seconds of longer programs of each kind (`make soak`).
"""

import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.programs import KINDS, Programs
from tests.properties.programs_of_ranks import ProgramsOfRanks

pytestmark = pytest.mark.filterwarnings("ignore:packing dropped", "ignore:the source of")

FEW = settings(
    stateful_step_count=25,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(FEW, max_examples=20, stateful_step_count=80)


@pytest.mark.parametrize("programs", [Programs, ProgramsOfRanks])
@pytest.mark.parametrize("kind", KINDS)
def test_programs(kind, programs, pytestconfig):
    machine = type(programs.__name__, (programs,), {"kind": kind})
    few = 12 if programs is Programs else 6  # with ranks, each example runs several pipelines
    run_state_machine_as_test(machine, settings=settings(FEW, max_examples=few))
    stop = time.monotonic() + pytestconfig.getoption("programs")
    while time.monotonic() < stop:
        run_state_machine_as_test(machine, settings=LONG)
