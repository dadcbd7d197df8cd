"""Shuffles and mixtures around a packer: one lane's chain, however pushed, wherever resumed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, Renumbered, plain, renumbered
from tests.exec.policies.known import Known
from zephon.exec.policies import (
    Apart,
    BlockShuffle,
    Chain,
    EnsureMixture,
    Held,
    Reservoir,
    Together,
    Windows,
    Wrap,
)

SPLITS = [True, False, True, False, False, True]  # rows of one, two and three documents


def mixture(**options):
    return EnsureMixture(
        groups=[0, 1], names="ab", target=np.array([1.0, 1.0]), max_buffer_size=20,
        **options,
    )  # fmt: skip


CHAINS = {
    "rows, then packed": lambda: [
        Together(), Reservoir(buffer_size=40, seed=1, stage=1), Apart(), Wrap(max_length=16),
        BlockShuffle(buffer_size=9, seed=1, stage=4, warmup_growth=1.5),
        mixture(weight_by="samples"),
    ],
    "mixed, then packed": lambda: [
        mixture(), Windows(order="length", seed=1, stage=1, size=16), Wrap(max_length=16),
        Reservoir(buffer_size=12, seed=1, stage=3),
    ],
    "shuffled twice": lambda: [
        Reservoir(buffer_size=16, seed=1, stage=0), Reservoir(buffer_size=16, seed=1, stage=1),
    ],
}  # fmt: skip


def documents(count):
    numbers = np.random.default_rng(count)
    return Known(
        numbers.integers(0, 30, count),
        components=numbers.integers(0, 2, count),
        last_parts=(SPLITS * count)[:count],
    )


def run(chain, known, groups, resume_at=None):
    """Push documents in groups that end with a source row, as a lane does; then finish."""
    states, out, at, shift = chain.make_state(0), [], 0, 0
    count = len(known.of_lengths)
    for size in [*groups, count]:
        stop = min(at + size * len(SPLITS), count)
        if resume_at is not None and at < resume_at < stop:
            out += plain(renumbered(push(chain, states, known, at, resume_at, shift), -shift))
            at = resume_at
        if at == resume_at:
            held = [Held(renumbered(h.units, 500), h.numbers) for h in chain.held(states)]
            shift, resume_at = 500, None
            states = chain.resume(0, held, Renumbered(known, shift))
        out += plain(renumbered(push(chain, states, known, at, stop, shift), -shift))
        at = stop
    return out + plain(renumbered(chain.finish(states, Renumbered(known, shift)), -shift))


def push(chain, states, known, at, stop, shift):
    return chain.push(states, renumbered(known.units(at, stop), shift), Renumbered(known, shift))


@pytest.mark.parametrize("name", CHAINS)
@settings(deadline=None, max_examples=15)
@given(groups=GROUPINGS, rows=st.integers(0, 40), data=st.data())
def test_rows_are_the_same_however_pushed_and_wherever_resumed(name, groups, rows, data):
    known, chain = documents(rows * len(SPLITS)), Chain(CHAINS[name]())
    at = data.draw(st.integers(0, rows)) * len(SPLITS)
    assert run(chain, known, groups, at) == run(chain, known, [1] * rows)


@pytest.mark.parametrize("name", CHAINS)
def test_no_token_is_there_twice_and_none_is_lost_but_the_unfinished_row(name):
    known = documents(600)
    out = run(Chain(CHAINS[name]()), known, [17])
    seen = [np.zeros(length, int) for length in known.of_lengths]
    for row, _ in out:
        for seq, start, length in row:
            seen[seq][start : start + length] += 1
    counts = np.concatenate(seen)
    assert counts.max() == 1
    assert (counts == 0).sum() < 16
    triggers = [trigger for _, trigger in out]
    ended = triggers.index(-1) if -1 in triggers else len(triggers)
    assert triggers[:ended] == sorted(triggers[:ended])
    assert set(triggers[ended:]) <= {-1}


def test_splits_of_one_row_stay_together_through_a_shuffle():
    known = documents(300)
    chain = Chain([Together(), Reservoir(buffer_size=30, seed=0, stage=1), Apart()])
    order = [row[0][0] for row, _ in run(chain, known, [5])]
    assert order != sorted(order)
    for place, seq in enumerate(order):
        if not known.of_last_parts[seq]:
            assert order[place + 1] == seq + 1


def test_two_shuffles_of_one_seed_are_not_one_shuffle_twice():
    known = documents(300)
    orders = [
        [
            row[0][0]
            for row, _ in run(Chain([Reservoir(buffer_size=30, seed=0, stage=s)]), known, [5])
        ]
        for s in (0, 1)
    ]
    assert orders[0] != orders[1]
