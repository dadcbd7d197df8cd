"""Operators with memory, made again by replay or written down, go on whole on any ranks."""

import json
from itertools import cycle, islice

import pytest

from tests.properties.programs import STEP, Recipe, known, make, plain, whole_run

pytestmark = pytest.mark.filterwarnings("ignore:packing dropped", "ignore:the source of")

REPLAYED = ("state", "state, shuffle", "shuffle, state", "state that holds records",
            "two with memory", "memory behind packing")  # fmt: skip
OTHERS = ("state written down", "groups behind a shuffle", "accumulator", "counting accumulator")
DEGREES = (1, 2, 3, 4, 6, 12)


def ranks(recipe, degree, parts=None, **options):
    found = [
        make(recipe, dp_degree=degree, dp_group_id=group, **options) for group in range(degree)
    ]
    return found if parts is None else [each.restore(parts) for each in found]


def taken(pipeline, rows):
    items = iter(pipeline)
    found = [plain(record) for batch in islice(items, rows) for record in batch]
    state = json.loads(json.dumps(pipeline.checkpoint(scope="local")))
    items.close()
    return found, state


@pytest.mark.parametrize("name", REPLAYED + OTHERS)
def test_saved_on_some_ranks_and_restored_on_others(name):
    """At steps before, at and behind the barrier that lies 64 rows into each lane."""
    recipe = Recipe("functions", name, "steps")
    whole = whole_run(recipe)
    last = len(whole) // STEP
    assert last > 9
    changes = cycle([(1, 3), (2, 6), (3, 1), (4, 2), (6, 12), (12, 4)])
    for step in sorted({1, last // 2, 2 * last // 3, 3 * last // 4, last - 2}):
        degree, other = next(changes)
        rows = [taken(each, step * STEP // degree) for each in ranks(recipe, degree)]
        parts = [state for _, state in rows]
        one = make(recipe).restore(parts)
        state = json.dumps(one.checkpoint())
        assert known(recipe).setdefault(("state", step * STEP, False), state) == state
        share = STEP // other
        again = [taken(each, 2 * share)[0] for each in ranks(recipe, other, parts)]
        found = [
            row for t in range(2) for each in again for row in each[t * share : (t + 1) * share]
        ]
        assert found == whole[step * STEP : (step + 2) * STEP], (step, degree, other)


@pytest.mark.parametrize("name", REPLAYED)
def test_saved_within_a_step(name):
    recipe = Recipe("functions", name, "steps")
    whole = whole_run(recipe)
    for step in (0, 3, len(whole) // STEP - 2):
        had = (5, 2)
        parts = [
            taken(each, step * STEP // 2 + rows)[1]
            for each, rows in zip(ranks(recipe, 2), had, strict=True)
        ]
        for group, again in enumerate(ranks(recipe, 2, parts, runner="threads")):
            first = step * STEP + group * STEP // 2
            wanted = (
                whole[first + had[group] : first + STEP // 2] + whole[first + STEP :][: STEP // 2]
            )
            assert taken(again, len(wanted))[0] == wanted, (step, group)
