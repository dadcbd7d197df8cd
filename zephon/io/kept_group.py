"""The rows of one row group that pass a filter, and how to find rows among them.

A filter that raises on a row group is tried again on the rows that are asked for, each time they
are, until the row is found that it raises for: a run that meets such a row ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.expressions import RowFilter
from zephon.io.faults import NOTHING, Faults, Parts
from zephon.io.payload import RowSource


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A filter that raised for some row of a row group.

    frame: what it looks at, all rows. bad: rows of which some of that is unknown.
    """

    keep: RowFilter
    frame: pa.RecordBatch
    bad: Parts

    def find(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[int, str]]:
        """Find those of some rows that pass; also what is wrong with some, by place among these.

        What the filter raises for a row of which something is unknown is not told.
        """
        frame = self.frame.take(pa.array(rows))
        passes, good = np.ones(len(rows), np.bool_), np.ones(len(rows), np.bool_)
        for names, bad in self.bad:
            there = np.isin(rows, bad)
            passes[there], _ = passing(self.keep, frame.filter(pa.array(there)), names)
            good &= ~there
        left = np.flatnonzero(good)
        passes[left], raised = passing(self.keep, frame.take(pa.array(left)))
        found = np.flatnonzero(passes)
        places = np.searchsorted(found, left[sorted(raised)]).tolist()
        return found, dict(zip(places, [raised[row] for row in sorted(raised)], strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class KeptGroup:
    """The rows of one row group that pass a filter.

    rows: their positions in the row group, ascending, shape [kept], int64.
    columns: at least these rows, of a plan's columns and then its frame.
    places: where each of them is in ``columns``, shape [kept], int64.
    faults: bad rows among those in ``columns``.
    payload: the whole rows, if they were asked for, and where each is in there, shape [kept].
    bytes: memory that all of it holds.
    trial: more of these rows may not pass.
    """

    rows: NDArray[np.int64]
    columns: pa.RecordBatch
    places: NDArray[np.int64]
    faults: tuple[Faults, ...]
    payload: tuple[RowSource, NDArray[np.int64]] | None
    bytes: int
    trial: Trial | None = None

    def find(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[int, str]]:
        """Find some rows of the row group.

        Args:
            rows: positions in the row group, in any order, repeats allowed, shape [n].

        Returns:
            which of ``rows`` pass, ascending; the number of each among the kept rows; and, by place
            among those that pass, why the filter raised.
        """
        if self.trial is not None:
            found, raised = self.trial.find(rows)
            return found, rows[found], raised
        if not len(self.rows):
            return self.rows, self.rows, {}
        numbers = np.searchsorted(self.rows, rows)
        numbers[numbers == len(self.rows)] = 0
        found = np.flatnonzero(self.rows[numbers] == rows)
        return found, numbers[found], {}


def evaluated(keep: RowFilter, frame: pa.RecordBatch, bad: Parts = ()) -> NDArray[np.bool_] | None:
    """Say which rows pass a filter, shape [rows]; None if it raises for one of them.

    Args:
        keep: the filter.
        frame: what it looks at.
        bad: rows of which some of that is unknown.
    """
    try:
        if not bad:
            return np.array(keep.keeps(frame), np.bool_)
        passes, good = np.ones(frame.num_rows, np.bool_), np.ones(frame.num_rows, np.bool_)
        for names, rows in bad:
            passes[rows] = keep.keeps(frame.take(pa.array(rows)), names)
            good[rows] = False
        passes[good] = keep.keeps(frame.filter(pa.array(good)))
        return passes
    except Exception:  # the filter is the user's, and so is what it raises; it is said row by row
        return None


def passing(
    keep: RowFilter, frame: pa.RecordBatch, unknown: frozenset[str] = NOTHING
) -> tuple[NDArray[np.bool_], dict[int, str]]:
    """Say which rows pass a filter, shape [rows], and what it raises for some of these.

    They are found by halves, since Polars does not say which it was. One that another predicate
    drops is not among them.
    """
    try:
        return np.array(keep.keeps(frame, unknown), np.bool_), {}
    except Exception:  # as above
        if frame.num_rows <= 1:
            return _one(keep, frame, unknown)
    middle = frame.num_rows // 2
    left, wrong = passing(keep, frame.slice(0, middle), unknown)
    right, more = passing(keep, frame.slice(middle), unknown)
    return np.concatenate([left, right]), wrong | {middle + row: told for row, told in more.items()}


def _one(
    keep: RowFilter, frame: pa.RecordBatch, unknown: frozenset[str]
) -> tuple[NDArray[np.bool_], dict[int, str]]:
    """Ask each predicate by itself of one row."""
    problem = ""
    for predicate in keep.predicates:
        try:
            passes = RowFilter([predicate]).keeps(frame, unknown)
        except Exception as exc:  # as above
            problem = problem or " ".join(str(exc).split())
        else:
            if not passes.all():
                return passes, {}
    return np.ones(1, np.bool_), {0: problem}
