"""A damaged state of a lane is refused in its words, or gives a lane; nothing else is raised."""

import copy
import json
import random

import numpy as np
import pytest

from tests.exec.lanes_written import lane_from_json
from tests.exec.parts_of_states import part_at, paths
from tests.exec.towers_by_hand import TOWERS, often, start, whole
from zephon.errors import CheckpointError
from zephon.exec.saved_values import pack, unpack

ODD = (
    None, True, False, 0, 1, -1, 3, 1 << 31, 1 << 62, 1 << 63, -(1 << 63) - 1, 10**400, 1.5,
    float("inf"), float("nan"), "", "x", "di8:", "di8:x", "vi4:AAAA", "di9:AAAA", "é", [],
    [1], ["x"], [[]], {}, {"x": 1},
)  # fmt: skip
NUMBERS = (0, 1, -1, -2, 1000, 1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63))


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    often(monkeypatch)


def packed(value):
    """Read integers, where there are some."""
    try:
        return unpack(value)
    except Exception:  # it is something else, or damaged already
        return None


def mutated(value, rng):
    """Give something like a part, or something else entirely."""
    numbers = packed(value)
    if numbers is not None and rng.random() < 0.7:
        match rng.randrange(6):
            case 0 if len(numbers):
                numbers[rng.randrange(len(numbers))] = rng.choice(NUMBERS)
            case 1:
                numbers = numbers[:-1]
            case 2:
                numbers = np.append(numbers, rng.choice(NUMBERS))
            case 3:
                numbers = np.full(len(numbers), rng.choice(NUMBERS))
            case 4:
                numbers = numbers[::-1]
            case _:
                at = rng.randrange(len(value))
                return value[:at] + rng.choice("Az0=:\x00é") + value[at + 1 :]
        return pack(numbers)
    if isinstance(value, list) and rng.random() < 0.5:
        return [*value, *value[:1]] if rng.random() < 0.5 else value[1:]
    if type(value) is int and rng.random() < 0.5:
        return value + rng.choice((-1, 1, -1000, 1000))
    return rng.choice(ODD)


def damaged(saved, rng):
    """Change, or leave out, some parts."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        saved = copy.deepcopy(saved)
        path = rng.choice([path for path in paths(saved) if path != ("lanes",)])
        place = part_at(saved, path[:-1])
        if rng.random() < 0.1:
            del place[path[-1]]
        else:
            place[path[-1]] = mutated(place[path[-1]], rng)
    return saved


def refused(name, saved):
    """Restore a lane; say how it was refused, if it was."""
    try:
        start(name, lane_from_json(saved))
    except CheckpointError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", TOWERS)
def test_whatever_is_damaged_is_refused_or_restored(name):
    rng = random.Random(name)
    states, _, _ = whole(name)
    found = 0
    for _ in range(150):
        saved = json.loads(rng.choice(states))
        try:
            said = refused(name, damaged(saved, rng))
        except Exception as exc:
            raise AssertionError("another error") from exc
        if said is not None:
            found += 1
            assert said.startswith(("restore: lane 0 ", "restore: the lanes of the checkpoint are"))
            assert "\n" not in said
    assert found > 75
