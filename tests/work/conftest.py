"""A stand-in for a dataset: a name and the rows of each shard are all that a source looks at."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest


@dataclass(frozen=True)
class ShapeOnly:
    name: str
    rows: tuple[int, ...]

    def counts(self) -> np.ndarray:
        counts = np.array(self.rows, dtype=np.int64)
        counts.flags.writeable = False
        return counts


@pytest.fixture(scope="session")
def shape() -> Callable[[str, Sequence[int]], ShapeOnly]:
    return lambda name, rows: ShapeOnly(name, tuple(rows))
