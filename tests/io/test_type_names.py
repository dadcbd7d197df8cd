import datetime

import polars as pl
import pyarrow as pa
import pytest

from zephon.errors import DatasetError
from zephon.io.type_names import declared_types, fits_json, type_of_text

LIST = pa.large_list(pa.int64())


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (str, pa.large_string()),
        (int, pa.int64()),
        (float, pa.float64()),
        (bool, pa.bool_()),
        (datetime.date, pa.date32()),
        (list[int], LIST),
        (
            {"a": "int8", "b": {"c": bool}},
            pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.bool_())]))]),
        ),
        (pa.string_view(), pa.large_string()),
        (pa.list_(pa.int64()), LIST),
        (pl.Int32, pa.int32()),
        (pl.List(pl.Int64()), LIST),
        (pl.Datetime("us", "UTC"), pa.timestamp("us", "UTC")),
        (pl.Categorical, pa.large_string()),
        ("int64", pa.int64()),
        ("list<int64>", LIST),
        ("large_list<item: int64>", LIST),
        (
            " struct<a: list<string>, b: decimal(10, 2)> ",
            pa.struct([("a", pa.large_list(pa.large_string())), ("b", pa.decimal128(10, 2))]),
        ),
        ("timestamp[ms, tz=Europe/Berlin]", pa.timestamp("ms", "Europe/Berlin")),
    ],
)
def test_what_names_a_type(given, dtype):
    assert declared_types("d", {"n": given}) == (("n", dtype),)


def test_whole_schemas():
    wanted = (("a", pa.int8()), ("b", pa.large_string()))
    assert declared_types("d", pa.schema([("b", pa.string()), ("a", pa.int8())])) == wanted
    assert declared_types("d", pl.Schema({"b": pl.String, "a": pl.Int8})) == wanted
    assert declared_types("d", None) == ()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"n": "int46"}, r"'d': schema\['n'\] must be .* got 'int46'; did you mean 'int64'\?"),
        ({"n": "list<strng>"}, "did you mean 'string'"),
        ({"n": {"a": "bol"}}, r"schema\['n'\] must be .* got 'bol'; did you mean 'bool'"),
        ({"n": "null"}, "got 'null'; types are called 'bool', 'int64'"),
        ({"n": "struct<>"}, "got 'struct<>'"),
        ({"n": "struct<a>"}, "got 'struct<a>'"),
        ({"n": "decimal(50, 2)"}, "got 'decimal"),
        ({"n": object}, "got <class 'object'>"),
        ({"n": pl.Object}, "got Object"),
        ({"n": 3}, "got 3"),
        ({1: int}, "names in schema must be UTF-8 texts, each there once, got 1"),
        ({"\ud800": int}, "names in schema must be UTF-8 texts, .* got '.ud800'"),
        (pa.schema([("a", pa.int8()), ("a", pa.int8())]), "each there once, got 'a'"),
        (["n"], "schema must be a dict from field names to types, .* got list"),
    ],
)
def test_what_does_not(schema, message):
    with pytest.raises(DatasetError, match=message):
        declared_types("d", schema)


@pytest.mark.parametrize(
    "dtype",
    [pa.int8(), pa.float64(), pa.large_list(pa.null()), pa.timestamp("ms", "Asia/Tokyo"), LIST],
)
def test_what_arrow_writes_is_read_back(dtype):
    assert type_of_text(str(dtype)) == dtype


def test_types_of_json():
    assert fits_json(pa.struct([("a", pa.large_list(pa.bool_())), ("b", pa.uint8())]))
    assert not fits_json(pa.large_binary())
    assert not fits_json(pa.large_list(pa.struct([("a", pa.date32())])))
