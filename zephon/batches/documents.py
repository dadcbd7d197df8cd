"""Where the documents of each row begin: the one source of bounds, document ids and masks.

What a packer placed is known by the spans of the engine's columns, by the list of documents in a
record of ``pack_sequences``, or by the tag that a packed record has. Rows that no packer placed,
or that were changed so that they no longer hold what it placed, are read by their positions: a
segment begins where these are 0. No rule here looks at a token.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zephon import collate
from zephon.batches.grid import Grid
from zephon.batches.placements import Pieces
from zephon.batches.training_rows import TrainingRows
from zephon.errors import DataError


def segment_starts(
    rows: TrainingRows, grid: Grid, tokens: str, asked: str
) -> NDArray[np.int64] | None:
    """Find where segments begin: documents or pieces of them, and the padding of each row.

    Args:
        rows: of the batch.
        grid: the matrix that they lie in.
        tokens: the token field.
        asked: the argument that wants to know, for messages.

    Returns:
        shape [segments], rising, counted over the rows of the matrix laid end to end. Of a row
        that holds anything, the first column is one. None: rows of a user that do not say.

    Raises:
        DataError: positions that do not begin at 0, or documents that do not make up the row.
    """
    content = _content(rows, grid)
    pieces = rows.placed(tokens)
    if pieces is None:
        pieces = rows.tagged(tokens, content)
        if pieces is None or not rows.all_packed or _misplaced(pieces, content) is not None:
            positions = rows.acting("positions")
            if positions is not None:
                return _by_positions(grid.positions(positions), asked)
    if pieces is None:
        return None
    _check(pieces, content)
    return collate.piece_starts(pieces.lengths, pieces.splits, grid.trailing)


def _by_positions(positions: NDArray[np.generic], asked: str) -> NDArray[np.int64] | None:
    late = positions[:, :1] != 0
    if late.any():
        i = int(late[:, 0].argmax())
        raise DataError(
            f"to_training: {asked} needs positions that start at 0, and those of row {i} start at "
            f"{positions[i, 0]}; number every row from 0"
        )
    return collate.zeros(positions)


def _misplaced(pieces: Pieces, content: NDArray[np.int64]) -> tuple[int, int] | None:
    """Find a row that its documents do not fill: its number, and their tokens."""
    ends = np.concatenate([[0], np.cumsum(pieces.lengths)])
    sums = ends[pieces.splits[1:]] - ends[pieces.splits[:-1]]
    differs = sums != content
    return (int(differs.argmax()), int(sums[differs.argmax()])) if differs.any() else None


def _check(pieces: Pieces, content: NDArray[np.int64]) -> None:
    misplaced = _misplaced(pieces, content)
    if misplaced is not None:
        i, tokens = misplaced
        raise DataError(
            f"to_training: row {i} was packed from documents of {tokens} tokens and holds "
            f"{content[i]}; give rows that were changed positions that are 0 where a document "
            "begins"
        )


def _content(rows: TrainingRows, grid: Grid) -> NDArray[np.int64]:
    return grid.lengths if rows.padding is None else grid.lengths - rows.padding
