import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tests.filters_by_hand import frame_of, row_filter
from zephon.errors import DataError
from zephon.exec.block import FILTERED
from zephon.exec.morsel import Morsel
from zephon.exec.operators.fetch_rows import FetchRowsOp
from zephon.io import Dataset, InMemoryShard
from zephon.io.fields import Column
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader
from zephon.work.refs import Refs

TEXT = Column("text", "text")
TYPES = {"k": pa.int64()}
NOTHING = pa.RecordBatch.from_arrays([], names=[])

ROWS = {
    "one": [{"k": number, "text": f"one {number}"} for number in range(6)],
    "two": [{"k": number, "text": f"two {number}" if number != 4 else 4} for number in range(6)],
}


def fetch(*predicates, columns=(TEXT,), frame=True, payload=False, late_faults=False):
    keep = row_filter(TYPES, *predicates) if predicates else None
    readers = {}
    for number, (name, rows) in enumerate(ROWS.items()):
        readers[number] = RowReader(
            Dataset.from_dict(name, {0: InMemoryShard(rows)}),
            columns,
            payload=payload,
            cache=GroupCache(1 << 20),
            keep=keep,
            frame=frame_of(TYPES) if frame else (),
        )
    return FetchRowsOp(readers, late_faults=late_faults)


def drawn(*rows):
    """References to rows, given as (component, row)."""
    component, row = np.array(rows, np.int64).reshape(-1, 2).T
    none = np.zeros(len(row), np.int32)
    return Refs.of(
        component.astype(np.int32), none.astype(np.int64), row, none, np.arange(len(row))
    )


def run(operator, *rows):
    return operator.run(Morsel(drawn(*rows), NOTHING))


def texts(morsel):
    return morsel.columns.column("text").to_pylist()


MIXED = [(0, 1), (1, 3), (0, 5), (1, 2), (0, 0)]


@pytest.mark.parametrize("rows", [MIXED, MIXED[:1], [(1, 5), (1, 1)], [(0, 3), (1, 3)], []])
def test_all_rows_come_in_the_order_of_their_references(rows):
    found = run(fetch(payload=True), *rows)
    names = list(ROWS)
    assert texts(found) == [f"{names[component]} {row}" for component, row in rows]
    assert found.frame.column("k").to_pylist() == [row for _, row in rows]
    assert [row["k"] for row in found.payload.rows()] == [row for _, row in rows]
    assert found.refs.row.tolist() == [row for _, row in rows]
    assert (len(found.lost), found.faults) == (0, {})


def test_rows_that_do_not_pass_are_lost_draws():
    found = run(fetch(pl.col("k") % 2 == 1, payload=True), *MIXED)
    assert texts(found) == ["one 1", "two 3", "one 5"]
    assert found.frame.column("k").to_pylist() == [1, 3, 5]
    assert [row["text"] for row in found.payload.rows()] == ["one 1", "two 3", "one 5"]
    assert found.refs.ordinal.tolist() == [0, 1, 2]
    assert found.lost.refs.ordinal.tolist() == [3, 4]
    assert found.lost.refs.component.tolist() == [1, 0]
    assert found.lost.reason.tolist() == [FILTERED] * 2


def test_draws_that_were_lost_before_stay_lost():
    first = run(fetch(pl.col("k") > 1), *MIXED)
    again = fetch(pl.col("k") > 2).run(Morsel(first.refs, NOTHING, lost=first.lost))
    assert sorted(again.lost.refs.ordinal.tolist()) == [0, 3, 4]


@pytest.mark.parametrize("rows", [MIXED, MIXED[:1], []])
def test_no_row_passes(rows):
    found = run(fetch(pl.col("k") > 9), *rows)
    assert (len(found.refs), found.columns.num_rows, found.frame.num_rows) == (0, 0, 0)
    assert found.lost.refs.ordinal.tolist() == list(range(len(rows)))


def test_rows_without_columns_are_counted():
    found = run(fetch(pl.col("k") < 3, columns=(), frame=True), *MIXED)
    assert (found.columns.num_rows, found.refs.row.tolist()) == (3, [1, 2, 0])


def test_nothing_is_read_beside_the_columns():
    found = run(fetch(frame=False), *MIXED)
    assert (found.frame, found.payload) == (None, None)


def test_a_bad_row_raises_unless_it_does_not_pass():
    with pytest.raises(DataError, match="dataset 'two', shard '0', row 4"):
        run(fetch(), (0, 1), (1, 4))
    assert texts(run(fetch(pl.col("k") != 4), (0, 1), (1, 4))) == ["one 1"]


def test_bad_rows_go_on_where_faults_are_late():
    found = run(fetch(pl.col("k") > 1, late_faults=True), (1, 4), (0, 1), (0, 5), (1, 4), (1, 2))
    assert found.refs.ordinal.tolist() == [0, 2, 3, 4]
    assert list(found.faults) == [0, 2]
    told = [fault.why for fault in found.faults.values()]
    assert all(why.startswith("dataset 'two', shard '0', row 4") for why in told)
