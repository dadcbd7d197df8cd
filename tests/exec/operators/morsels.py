"""Morsels put together by hand, and metas as an engine gives them."""

import numpy as np
import pyarrow as pa

from zephon.exec.morsel import Morsel
from zephon.expressions import no_columns
from zephon.io.fields import TOKENS
from zephon.io.formats.memory import ObjectRows
from zephon.io.made_rows import MadeRecords
from zephon.io.payload import Payload
from zephon.types import SampleMeta
from zephon.work.refs import Refs


def refs(count):
    """Refer to rows 0, 1, 2, ... of one shard, drawn in this order."""
    rows = np.arange(count)
    narrow = np.zeros(count, np.int32)
    return Refs.of(narrow, rows * 0, rows, narrow, rows)


def payload_of(source, count):
    """List all rows of one source."""
    return Payload((source,), np.zeros(count, np.int32), np.arange(count))


def morsel(rows, metas=None, measures=None, **columns):
    """Make a morsel of whole rows, that may say who they are, and columns of tokens."""
    count = len(rows)
    arrays = [pa.array(values, TOKENS) for values in columns.values()]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(columns)) if columns else None
    source = ObjectRows(rows) if metas is None else MadeRecords(rows, metas)
    return Morsel(
        refs(count),
        no_columns(count) if batch is None else batch,
        payload_of(source, count),
        {name: np.array(values) for name, values in (measures or {}).items()},
    )


def naming(found, row):
    """Say who a row is: sample 100 + row of lane 0."""
    return SampleMeta((7, 0, 100 + int(found.row[row])), 0, 0, int(found.ordinal[row]))


def lineages(made):
    """List the lineage of each row of a morsel."""
    return [made.payload.meta(i).lineage for i in range(len(made.refs))]


def children(made):
    """List draw, child and whether it is the last, of each row of a morsel."""
    found = made.refs
    return list(
        zip(found.ordinal.tolist(), found.child.tolist(), found.last_child.tolist(), strict=True)
    )
