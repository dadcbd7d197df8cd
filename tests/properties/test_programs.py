"""Whatever is called in whatever order: rows, states and counts are those of the place alone.

`--programs` adds seconds of longer programs for each kind of chains (`make soak`).
"""

import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.programs import KINDS, Programs

pytestmark = pytest.mark.filterwarnings("ignore:packing dropped", "ignore:the source of")

FEW = settings(max_examples=30, stateful_step_count=30, database=None, deadline=None)
LONG = settings(
    max_examples=100,
    stateful_step_count=80,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("kind", KINDS)
def test_programs(kind, pytestconfig):
    machine = type("Programs", (Programs,), {"kind": kind})
    run_state_machine_as_test(machine, settings=FEW)
    stop = time.monotonic() + pytestconfig.getoption("programs")
    while time.monotonic() < stop:
        run_state_machine_as_test(machine, settings=LONG)
