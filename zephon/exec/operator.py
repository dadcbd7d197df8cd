"""What a stateless step promises: rows in, rows out, nothing remembered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from zephon.errors import DataError
from zephon.exec.morsel import Morsel


class RowError(Exception):
    """One row is bad; whoever knows where rows lie makes a located error of it.

    row: position among the rows that the operator was given.
    problem: what is wrong, to be followed by the place of the row.
    way_out: what to do, the end of the message.
    step: how the message calls the step; None: as the operator is called.
    kind: which error to make of it, where it has no cause.
    """

    def __init__(
        self,
        row: int,
        problem: str,
        way_out: str,
        *,
        step: str | None = None,
        kind: type[DataError] = DataError,
    ) -> None:
        super().__init__(row, problem, way_out)
        self.row = row
        self.problem = problem
        self.way_out = way_out
        self.step = step
        self.kind = kind


class Operator(ABC):
    """Rows in, rows out; any number of workers may call ``run`` at once.

    Row by row pure: the output for one reference does not depend on which others came with it.
    Output rows stand in the order of their input rows.
    """

    label: str  # how messages call the step
    sees_groups: ClassVar[bool] = False  # what it makes of a row depends on others
    settles: bool = False  # no filter may drop the bad rows that it leaves any more

    def close(self) -> None:  # noqa: B027 - most operators build nothing
        """Let go of what was built for running; the next run builds it anew."""

    @abstractmethod
    def run(self, rows: Morsel) -> Morsel:
        """Return the rows that follow from ``rows``; ``rows`` is not changed.

        Raises:
            RowError: a row is bad; with the cause, where code of the user raised something.
        """
