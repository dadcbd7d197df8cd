"""Parquet files as many writers leave them over the years."""

import decimal
import itertools
import re

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.odd_files.encrypted import encrypted
from tests.odd_files.table import odd
from tests.written import pipeline, raw, texts_to_tokens
from zephon import Dataset
from zephon.errors import DataError, DatasetError, PlanError, ShardError


def written(folder, *tables, **options):
    """Write a file a table, in order of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", **options)
    return Dataset.from_path("words", folder)


def rows_of(data):
    return [record.payload for record in pipeline(data)]


def column(data, *names):
    """Give some columns as expressions see them."""
    pipe = pipeline(data).select(*map(pl.col, names))
    found = [[record.payload[name] for name in names] for record in pipe]
    return [row[0] if len(names) == 1 else tuple(row) for row in found]


def orders(tmp_path, *tables, **options):
    """Write files in every order; give the datasets, and the order of each."""
    for number, order in enumerate(itertools.permutations(range(len(tables)))):
        data = written(tmp_path / str(number), *(tables[place] for place in order), **options)
        yield data, order


def flat(order, parts):
    return [value for place in order for value in parts[place]]


@odd(
    "Parquet",
    "text in several layouts (string, large_string, view, dictionary, bytes)",
    "all are one text column; bytes must be UTF-8 for that",
)
def test_kinds_of_text(tmp_path, tokenizer_file):
    words = pa.array(["ash", "größe"])
    kinds = (words, words.cast(pa.large_string()), words.cast(pa.string_view()),
             words.dictionary_encode(), words.cast(pa.binary()))  # fmt: skip
    data = written(tmp_path, *(pa.table({"text": kind}) for kind in kinds))
    pipe = pipeline(data).tokenize(tokenizer_id=tokenizer_file, field="text", special_tokens="none")
    encoded = texts_to_tokens(tokenizer_file)
    wanted = [encoded("ash"), encoded("größe")] * 5
    assert [record.payload["input_ids"] for record in pipe] == wanted


@odd(
    "Parquet",
    "bytes that are not UTF-8 where text is read",
    "an error of that row alone, with its place",
)
def test_text_that_is_not_utf8(tmp_path, tokenizer_file):
    data = written(tmp_path, pa.table({"text": [b"good", b"\xff\xfe"]}))
    pipe = pipeline(data).tokenize(tokenizer_id=tokenizer_file, field="text")
    where = r"dataset 'words', shard '0.parquet', row 1: field 'text' must be text, got bytes that"
    with pytest.raises(DataError, match=where):
        list(pipe)


@odd(
    "Parquet",
    "integers of several widths, or beside floats",
    "one type that holds them all; a value that it cannot hold is an error of its row",
)
def test_widths_of_numbers(tmp_path):
    parts = [[1, 2], [3, 2**40], [0.5, 4.0]]
    tables = [pa.table({"n": pa.array(part, dtype)}) for part, dtype in
              zip(parts, (pa.int8(), pa.int64(), pa.float32()), strict=True)]  # fmt: skip
    for data, order in orders(tmp_path, *tables):
        found = column(data, "n")
        assert found == flat(order, parts)
        assert {type(value) for value in found} == {np.float64}
    large = written(tmp_path / "large", tables[2], pa.table({"n": [5, 2**53 + 1]}))
    with pytest.raises(DataError, match=r"'1.parquet', row 1: field 'n' .*got 9007199254740993"):
        column(large, "n")


@odd("Parquet", "a column that is all null in one file", "null there, of the type of the others")
def test_a_column_of_nulls(tmp_path):
    parts = [[None, None], ["a", None]]
    for data, order in orders(tmp_path, pa.table({"t": pa.nulls(2)}), pa.table({"t": parts[1]})):
        assert column(data, "t") == flat(order, parts)


@odd(
    "Parquet",
    "a column of types that do not go together, such as text and numbers",
    "nothing, if nobody needs it; else an error when the plan is made, with a file of each type",
)
def test_types_that_do_not_go_together(tmp_path):
    tables = [pa.table({"id": [1], "c": [1]}), pa.table({"id": [2], "c": ["x"]}),
              pa.table({"id": [3], "c": [True]})]  # fmt: skip
    names = ["int64", "string", "bool"]
    for data, order in orders(tmp_path, *tables):
        assert column(data, "id") == [place + 1 for place in order]
        assert [row["c"] for row in rows_of(data)] == [[1, "x", True][place] for place in order]
        with pytest.raises(PlanError) as caught:
            pipeline(data).select(pl.col("c")).explain()
        for shard, place in enumerate(order):
            assert f"shard '{shard}.parquet' has {names[place]}" in str(caught.value)


@odd(
    "Parquet",
    "a column that is text in one file and bytes in another",
    "an error when the plan is made, which names both files; `schema=` settles it",
)
def test_a_declared_type_settles_it(tmp_path):
    tables = [pa.table({"c": ["a"]}), pa.table({"c": [b"b"]})]
    for data, order in orders(tmp_path, *tables):
        with pytest.raises(PlanError, match=r"schema=\{'c': 'large_string'\}"):
            column(data, "c")
        values = ["a", "b"]
        told = Dataset.from_path("words", data.path, schema={"c": "large_string"})
        assert column(told, "c") == [values[place] for place in order]
        told = Dataset.from_path("words", data.path, schema={"c": bytes})
        assert column(told, "c") == [values[place].encode() for place in order]


@odd(
    "Parquet",
    "timestamps or decimals of several precisions",
    "the finest that is there holds all; with a zone beside without one, `schema=` must tell",
)
def test_precisions(tmp_path):
    money = decimal.Decimal
    tables = [
        pa.table({"d": pa.array([money("1.25")], pa.decimal128(10, 2)),
                  "t": pa.array([1], pa.timestamp("ms"))}),
        pa.table({"d": pa.array([money("1.2525")], pa.decimal128(12, 4)),
                  "t": pa.array([1], pa.timestamp("us", "UTC"))}),
    ]  # fmt: skip
    ticks = [np.datetime64(1000, "us"), np.datetime64(1, "us")]
    for data, order in orders(tmp_path, *tables):
        values = [money("1.25"), money("1.2525")]
        assert column(data, "d") == [values[place] for place in order]
        with pytest.raises(PlanError, match=r"has timestamp.* has timestamp.*schema="):
            column(data, "t")
        told = Dataset.from_path("words", data.path, schema={"t": "timestamp[us, tz=UTC]"})
        assert column(told, "t") == [ticks[place] for place in order]


@odd(
    "Parquet",
    "columns in another order, more of them, or fewer",
    "read by name; what nobody needs does not matter; what is needed must be in every file",
)
def test_columns_that_differ(tmp_path, tokenizer_file):
    tables = [pa.table({"a": [1], "text": ["x"]}), pa.table({"text": ["y"], "b": [2], "a": [3]}),
              pa.table({"a": [4]})]  # fmt: skip
    for data, order in orders(tmp_path, *tables):
        assert column(data, "a") == [[1, 3, 4][place] for place in order]
        assert [sorted(row) for row in rows_of(data)] == [
            [["a", "text"], ["a", "b", "text"], ["a"]][place] for place in order
        ]
        with pytest.raises(DatasetError, match=rf"{order.index(2)}.parquet': no column 'text'"):
            list(pipeline(data).tokenize(tokenizer_id=tokenizer_file, field="text"))


@odd(
    "Parquet",
    "objects whose fields differ from file to file",
    "whole rows stay as they are; expressions see all fields, null where a file has none",
)
def test_objects_that_differ(tmp_path):
    parts = [{"x": 1, "y": "a"}, {"z": None, "y": "b", "x": 2.5}]
    tables = [pa.table({"o": [parts[0]]}), pa.table({"o": [parts[1]]})]
    wider = [{"x": 1.0, "y": "a", "z": None}, {"x": 2.5, "y": "b", "z": None}]
    for data, order in orders(tmp_path, *tables):
        assert [row["o"] for row in rows_of(data)] == [parts[place] for place in order]
        assert column(data, "o") == [wider[place] for place in order]


@odd(
    "Parquet",
    "lists of several layouts (list, large, fixed size, view), or empty ones of null",
    "all are one list column",
)
def test_kinds_of_lists(tmp_path):
    kinds = (pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.int16(), 2),
             pa.list_view(pa.int32()))  # fmt: skip
    tables = [pa.table({"ids": pa.array([[1, 2]], kind)}) for kind in kinds]
    empty = pa.table({"ids": pa.array([[]], pa.list_(pa.null()))})
    data = written(tmp_path, empty, *tables)
    assert [list(value) for value in column(data, "ids")] == [[]] + [[1, 2]] * 4
    tokens = Dataset.from_path("words", data.path, schema={"ids": list[int]})
    assert [list(value) for value in column(tokens, "ids")] == [[]] + [[1, 2]] * 4


@odd(
    "Parquet",
    "two columns of one name",
    "an error if they are needed, as whole rows need them; else nothing",
)
def test_two_columns_of_one_name(tmp_path):
    double = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array(["x"])], ["a", "a", "t"])
    data = written(tmp_path, double)
    assert column(data, "t") == ["x"]
    with pytest.raises(PlanError, match=r"shard '0.parquet' has 2 columns of that name; rewrite"):
        column(data, "a")
    with pytest.raises(DatasetError, match=r"shard '0.parquet': whole rows .*2 named 'a'; rewrite"):
        rows_of(data)


@odd(
    "Parquet",
    "a name with a dot, or names that differ in case alone",
    "they are columns of their own; the dotted name wins over a field of an object",
)
def test_odd_names(tmp_path):
    data = written(tmp_path, pa.table({"a.b": [1], "a": [{"b": 2}], "A": [3], "": [4]}))
    assert column(data, "a.b", "A") == [(1, 3)]
    assert rows_of(data) == [{"a.b": 1, "a": {"b": 2}, "A": 3, "": 4}]


@odd("Parquet", "no rows, no row groups or no columns", "passed over, and counted as no rows")
def test_files_without_rows(tmp_path):
    table = pa.table({"n": [1, 2]})
    for data, _ in orders(tmp_path / "some", table.slice(0, 0), table, pa.table({})):
        assert column(data, "n") == [1, 2]
        assert sorted(data.counts().tolist()) == [0, 0, 2]
    data = written(tmp_path / "none", table.slice(0, 0), pa.table({}))
    with pytest.raises(DatasetError, match="dataset 'words' must have rows"):
        pipeline(data)


@odd(
    "Parquet",
    "been cut off, or is empty, or is something else by that name",
    "an error when the dataset is opened, with the file",
)
def test_no_parquet(tmp_path):
    written(tmp_path, pa.table({"text": ["x" * 100] * 50}))
    whole = (tmp_path / "0.parquet").read_bytes()
    for length in (*range(0, 12), len(whole) // 2, *range(len(whole) - 12, len(whole))):
        raw(tmp_path, "0.parquet", whole[:length])
        with pytest.raises(ShardError, match=r"dataset 'words', shard '0.parquet': its footer"):
            Dataset.from_path("words", tmp_path)
    raw(tmp_path, "0.parquet", b"id,text\n1,a\n")
    with pytest.raises(ShardError, match=r"not a Parquet file: it begins with b'id,t'"):
        Dataset.from_path("words", tmp_path)


@odd(
    "Parquet",
    "a damaged page",
    "nothing, if it is of a column that nobody needs; else an error "
    "with the file and the row group; checksums are verified where there are any",
)
@pytest.mark.parametrize("flip", [0xFF, 0x01])
def test_a_damaged_page(tmp_path, flip):
    table = pa.table({"id": range(50), "text": [f"text {n}" for n in range(50)]})
    options = {"write_page_checksum": True, "use_dictionary": False, "compression": "none"}
    written(tmp_path, table, **options)
    path = tmp_path / "0.parquet"
    content = bytearray(path.read_bytes())
    content[content.index(b"text 31")] ^= flip
    path.write_bytes(content)
    data = Dataset.from_path("words", tmp_path)
    assert column(data, "id") == list(range(50))
    with pytest.raises(ShardError, match=r"shard '0.parquet': row group 0 must be .*(CRC|crc)"):
        column(data, "text")


@odd(
    "Parquet",
    "an encrypted footer, or encrypted columns",
    "an error that says so; columns that are not encrypted can be read without the others",
)
def test_encryption(tmp_path):
    table = pa.table({"id": [0, 1], "text": ["a", "b"]})
    encrypted(table, tmp_path / "some" / "0.parquet", columns=["text"], footer=False)
    data = Dataset.from_path("words", tmp_path / "some")
    assert column(data, "id") == [0, 1]
    hidden = r"'words', shard '0.parquet': columns that are read must not be encrypted, got 'text'"
    for pipe in (
        pipeline(data),
        pipeline(data).select(pl.col("text")),
        pipeline(data).filter(pl.col("text") > "a"),
        pipeline(data).filter(pl.col("text") > "a").select(pl.col("id")),
    ):
        with pytest.raises(ShardError, match=hidden):
            list(pipe)
    encrypted(table, tmp_path / "all" / "0.parquet", columns=["text"], footer=True)
    with pytest.raises(ShardError, match=r"'0.parquet': its footer .* it is encrypted, and no key"):
        Dataset.from_path("words", tmp_path / "all")


@odd(
    "Parquet",
    "row groups of gigabytes",
    "read forwards, in parts of about 32 MB; `explain()` warns and tells the peak",
)
def test_huge_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("zephon.io.formats.parquet_units.HUGE_BYTES", 2000)
    monkeypatch.setattr("zephon.io.formats.parquet_units.UNIT_BYTES", 1000)
    data = written(tmp_path, pa.table({"n": range(5000)}))
    assert column(data, "n") == list(range(5000))
    assert len(data.group_sizes()) > 30
    told = str(pipeline(data).explain())
    assert re.search(r"warning: row groups of words take up to .* MB once decoded", told)


@odd(
    "Parquet",
    "types of Arrow extensions (uuid, json), half floats, or INT96 timestamps",
    "read as what they store: bytes, text, floats, timestamps",
)
def test_odd_types(tmp_path):
    table = pa.table({
        "u": pa.array([bytes(16)], pa.binary(16)).cast(pa.uuid()),
        "j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}'])),
        "h": pa.array([0.5], pa.float16()),
    })  # fmt: skip
    data = written(tmp_path / "a", table)
    assert column(data, "u", "j", "h") == [(bytes(16), '{"a": 1}', 0.5)]
    assert rows_of(data) == [{"u": bytes(16), "j": '{"a": 1}', "h": np.float16(0.5)}]
    old = pa.table({"t": pa.array([10**15], pa.timestamp("us"))})
    data = written(tmp_path / "b", old, use_deprecated_int96_timestamps=True)
    assert column(data, "t") == [np.datetime64(10**15, "us")]
