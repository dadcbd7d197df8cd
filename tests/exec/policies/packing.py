"""Documents for packers, and what every packer promises whatever it decides."""

from hypothesis import strategies as st

from tests.exec.policies.feeding import feed, held_after, plain, units_of
from tests.exec.policies.known import Known
from zephon.exec.policies.policy import AT_END

PAGE = [5, 3, 9, 2, 12, 4, 6, 1, 8, 7]
"""The documents of the behaviour page's example, for rows of 10."""


def lengths_of(rows):
    """List the lengths in each row."""
    return [tuple(length for _, _, length in row) for row in rows]


def packed(policy, lengths, **known):
    """Pack documents; return rows as lists of pieces, without triggers, and the state."""
    known = Known(lengths, **known)
    out, state = feed(policy, known.units(), known, [len(lengths)])
    return [row for row, _ in out], state


@st.composite
def documents(draw, longest=24, most=70, components=3):
    """Draw documents with a measure of their own, as the units a packer gets."""
    count = draw(st.integers(0, most))
    numbers = draw(st.randoms(use_true_random=False))
    small = numbers.choice([3, longest // 2, longest])
    lengths = [
        numbers.randint(0, small if numbers.random() < 0.8 else longest) for _ in range(count)
    ]
    known = Known(
        lengths,
        components=[numbers.randrange(components) for _ in range(count)],
        length=[numbers.randint(0, longest) for _ in range(count)],
    )
    # Several units may be let go by one arrival, and some by the end of the lane.
    triggers = sorted(numbers.randrange(count) for _ in range(count))
    ended = draw(st.sampled_from([0, 0, count // 3]))
    triggers[count - ended :] = [AT_END] * ended
    return known, units_of([[(seq, 0, size)] for seq, size in enumerate(lengths)], triggers)


def agrees(policy, stream, groups, data, wanted, wanted_end):
    """Check rows, triggers and canonical state against the obvious way.

    Args:
        wanted: rows that pushes let go, as [(row, place of the unit that let it go)].
        wanted_end: rows that the end of the lane lets go.
    """
    known, units = stream
    at = data.draw(st.integers(0, len(units)))
    triggers = units.trigger.tolist()
    rows = [(row, triggers[place]) for row, place in wanted]
    rows += [(row, AT_END) for row in wanted_end]
    out, state = feed(policy, units, known, groups, resume_at=at)
    assert out == rows
    assert held_after(policy, units, known, groups, at) == held_after(policy, units, known, [1], at)
    assert not len(policy.held(state).units)
    assert plain(policy.finish(state, known)) == []
    return state
