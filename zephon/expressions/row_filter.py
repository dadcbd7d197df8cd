"""Which rows pass filters: row by row, or none of some rows by what their file says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.column_steps import Expression, Statistics
from zephon.expressions.arrow_types import series
from zephon.expressions.bounds import Test
from zephon.expressions.running import passing
from zephon.expressions.taking_apart import cannot_raise, test_of
from zephon.expressions.told import Told
from zephon.forks import polars_needed


class RowFilter:
    """All predicates of some filters; a row is kept where each is true, so not where one is null.

    Two are equal if their predicates are. Any number of threads may ask.
    """

    def __init__(self, predicates: Sequence[Expression]) -> None:
        polars_needed()
        self.predicates = tuple(predicates)
        self.reads: tuple[str, ...] = tuple(
            dict.fromkeys(name for each in self.predicates for name in each.reads)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowFilter) and self.predicates == other.predicates

    def __hash__(self) -> int:
        return hash(self.predicates)

    def __repr__(self) -> str:
        return f"RowFilter({self})"

    def __str__(self) -> str:
        return " and ".join(str(each) for each in self.predicates)

    def __reduce__(self) -> tuple[object, ...]:
        return RowFilter, (self.predicates,)

    def keeps(
        self, frame: pa.RecordBatch, unknown: frozenset[str] = frozenset()
    ) -> NDArray[np.bool_]:
        """Say which rows are kept.

        A predicate sees only rows for which those before it are true.

        Args:
            frame: has the columns that predicates read.
            unknown: columns whose values nobody knows; predicates that read them are not asked.

        Returns:
            A mask of its own, shape [rows].

        Raises:
            ExecutionError: Polars raised for some value; names the expression, with the cause.
        """
        found = {name: series(frame.column(name)).alias(name) for name in self.reads}
        asked = [each for each in self.predicates if unknown.isdisjoint(each.reads)]
        return passing(asked, frame.num_rows, found.__getitem__)

    def may_keep(self, groups: Sequence[Mapping[str, Statistics]]) -> NDArray[np.bool_]:
        """Say of which row groups any row may be kept; True unless it is proved that none is.

        A predicate that might raise proves nothing. What it raises for rows that another drops does
        not count, so which rows are bad does not depend on how rows are grouped.

        Args:
            groups: of each, statistics of columns by name; one that is left out may hold anything.

        Returns:
            A mask of its own, shape [groups].
        """
        told, found = Told(groups), np.ones(len(groups), np.bool_)
        for test in self._tests:
            found &= test.may_pass(told)
        return found

    @cached_property
    def _tests(self) -> tuple[Test, ...]:
        return tuple(test_of(each) for each in filter(cannot_raise, self.predicates))
