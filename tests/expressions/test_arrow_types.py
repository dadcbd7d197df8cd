"""Which Arrow types stand for which of Polars, and back."""

import polars as pl
import pyarrow as pa
import pytest

from zephon.expressions.arrow_types import array, arrow_type, polars_type, series


@pytest.mark.parametrize(
    ("arrow", "polars", "back"),
    [
        (pa.int8(), pl.Int8(), pa.int8()),
        (pa.string(), pl.String(), pa.large_string()),
        (pa.list_(pa.string()), pl.List(pl.String()), pa.large_list(pa.large_string())),
        (pa.timestamp("s"), pl.Datetime("ms"), pa.timestamp("ms")),
        (pa.timestamp("ns", "UTC"), pl.Datetime("ns", "UTC"), pa.timestamp("ns", "UTC")),
        (pa.decimal128(9, 2), pl.Decimal(9, 2), pa.decimal128(9, 2)),
        (
            pa.struct({"a": pa.bool_()}),
            pl.Struct({"a": pl.Boolean()}),
            pa.struct({"a": pa.bool_()}),
        ),
        (pa.null(), pl.Null(), pa.null()),
        (pa.decimal256(60, 2), None, None),
        (pa.list_(pa.decimal256(60, 2)), None, None),
        (pa.month_day_nano_interval(), None, None),
    ],
    ids=str,
)
def test_types_that_polars_holds(arrow, polars, back):
    assert polars_type(arrow) == polars
    assert polars is None or arrow_type(polars) == back


def test_categories_are_text_at_any_depth():
    assert arrow_type(pl.Categorical()) == pa.large_string()
    nested = arrow_type(pl.Struct({"a": pl.List(pl.Enum(["x"]))}))
    assert nested == pa.struct({"a": pa.large_list(pa.large_string())})
    assert arrow_type(pl.Object()) is None


def test_numbers_are_not_copied():
    numbers = pa.array([1, None, 3])
    back = array(series(numbers), pa.int64())
    assert back.to_pylist() == [1, None, 3]
    assert back.buffers()[1].address == numbers.buffers()[1].address
