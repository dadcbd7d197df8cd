"""What a stateless step promises: rows in, rows out, nothing remembered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from zephon.exec.morsel import Morsel


class Operator(ABC):
    """Rows in, rows out; any number of workers may call ``run`` at once.

    Row by row pure: the output for one reference does not depend on which others came with it.
    Output rows stand in the order of their input rows.
    """

    label: ClassVar[str]

    @abstractmethod
    def run(self, rows: Morsel) -> Morsel:
        """Return the rows that follow from ``rows``; ``rows`` is not changed."""
