"""Several rows made of one: how they are numbered within their draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zephon.work.refs import Refs


def split_refs(refs: Refs, parent: NDArray[np.int64]) -> Refs:
    """Refer to the parts of rows; the children of each draw are numbered 0, 1, 2, ... anew.

    Args:
        refs: before the split, the rows of each draw side by side, the last of them marked.
        parent: which row each part is of, every row at least once, rising, shape [parts], int64.
    """
    if len(parent) == len(refs):
        return refs
    begins = np.concatenate([[True], refs.last_child[:-1]])
    draw = (np.cumsum(begins) - 1)[parent]
    first = np.concatenate([[True], draw[1:] != draw[:-1]])
    starts = np.flatnonzero(first)
    child = np.arange(len(parent)) - np.repeat(starts, np.diff(starts, append=len(parent)))
    return replace(
        refs.take(parent),
        child=child.astype(np.int32),
        last_child=np.concatenate([first[1:], [True]]),
    )
