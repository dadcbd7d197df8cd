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
from zephon.io.formats.format import Faults
from zephon.io.payload import RowSource


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A filter that raised for some row of a row group.

    frame: what it looks at, all rows. bad: rows whose values there are bad, ascending, int64.
    """

    keep: RowFilter
    frame: pa.RecordBatch
    bad: NDArray[np.int64]

    def find(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[int, str]]:
        """Find those of some rows that pass; also what is wrong with some, by place among these."""
        passes, raised = passing(self.keep, self.frame.take(pa.array(rows)))
        found = np.flatnonzero(passes | np.isin(rows, self.bad))
        places = np.searchsorted(found, sorted(raised)).tolist()
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


def evaluated(keep: RowFilter, frame: pa.RecordBatch) -> NDArray[np.bool_] | None:
    """Say which rows pass a filter, shape [rows]; None if it raises for one of them."""
    try:
        return np.array(keep.keeps(frame), np.bool_)
    except Exception:  # the filter is the user's, and so is what it raises; it is said row by row
        return None


def passing(keep: RowFilter, frame: pa.RecordBatch) -> tuple[NDArray[np.bool_], dict[int, str]]:
    """Say which rows pass a filter, shape [rows], and what is wrong with those it raises for.

    These pass. They are found by halves, since Polars does not say which it was.
    """
    try:
        return np.array(keep.keeps(frame), np.bool_), {}
    except Exception as exc:  # as above
        if frame.num_rows <= 1:
            problem = " ".join(str(exc).split())
            told = f": filter: {problem}; mend or remove the row, or filter what comes before"
            return np.ones(frame.num_rows, np.bool_), dict.fromkeys(range(frame.num_rows), told)
    middle = frame.num_rows // 2
    left, wrong = passing(keep, frame.slice(0, middle))
    right, more = passing(keep, frame.slice(middle))
    return np.concatenate([left, right]), wrong | {middle + row: told for row, told in more.items()}
