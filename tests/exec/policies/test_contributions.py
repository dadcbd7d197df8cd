"""What units hold of each group, against a sum over pieces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import streams, units_of
from tests.exec.policies.known import Known, pieces_of
from zephon.exec.policies.contributions import NONE, SEVERAL, contributions


def obvious(row, known, groups, weight_by):
    """Sum the weights of a unit's pieces by group, leaving out what weighs nothing."""
    shares = {}
    for seq, start, length in row:
        ends = start + length == known.of_lengths[seq] and known.of_last_parts[seq]
        weight = {"tokens": length, "samples": ends, "weight": known.of_measures["weight"][seq]}
        group = groups[known.of_components[seq]]
        if weight[weight_by]:
            shares[group] = shares.get(group, 0.0) + float(weight[weight_by])
    return dict(sorted(shares.items()))


def listed(parts):
    """List what each unit holds."""
    out = []
    for place, (group, weight) in enumerate(zip(parts.group, parts.weight, strict=True)):
        if group == SEVERAL:
            out.append(dict(zip(*parts.shares[place], strict=True)))
            assert weight == pytest.approx(sum(out[-1].values()))
        else:
            out.append({} if group == NONE else {group: weight})
    return out


@settings(deadline=None, max_examples=60)
@given(
    streams(groups=5),
    st.lists(st.integers(0, 2), min_size=5, max_size=5),
    st.sampled_from(["tokens", "samples", "weight"]),
)
def test_units_hold_what_their_pieces_do(stream, groups, weight_by):
    known, units = stream
    parts = contributions(units, known, np.array(groups), 3, weight_by)
    wanted = [obvious(row, known, groups, weight_by) for row in pieces_of(units)]
    assert listed(parts) == wanted


def test_a_sample_counts_where_the_last_part_of_its_row_ends():
    known = Known([4, 6, 3], components=[0, 1, 1], last_parts=[True, False, True])
    # A document over two rows; a row of the source in two documents, its last one cut again.
    rows = [[(0, 0, 2)], [(0, 2, 2), (1, 0, 6), (2, 0, 1)], [(2, 1, 2)]]
    parts = contributions(units_of(rows, [0, 2, 2]), known, np.arange(2), 2, "samples")
    assert listed(parts) == [{}, {0: 1.0}, {1: 1.0}]
