"""Decoded bytes of each row group of a shard, where its format knows them without reading rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from zephon.io.dataset import Dataset
from zephon.io.formats.line_blocks import LineBlocks


def group_bytes(dataset: Dataset, shard: int) -> NDArray[np.int64] | None:
    """Give the decoded bytes of a shard's row groups, shape [groups]; None if they are unknown."""
    about = dataset.shards[shard]
    found = None
    if dataset.kind == "parquet":
        try:
            footer = pq.read_metadata(about.path)
        except (pa.ArrowException, OSError):
            return None  # whoever reads the shard says what is wrong with it
        groups = range(footer.num_row_groups)
        found = np.array([footer.row_group(group).total_byte_size for group in groups], np.int64)
    elif isinstance(about.layout, LineBlocks):
        found = np.diff(about.layout.offsets)
    return found if found is not None and len(found) == len(about.group_rows) else None
