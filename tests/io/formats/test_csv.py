import csv
import gzip
import io
import random

import polars as pl
import pytest

from tests.written import pipeline
from zephon.build_index import build_index
from zephon.errors import DataError, DatasetError, ShardError
from zephon.io import Dataset
from zephon.io.fields import Column
from zephon.io.formats import csv_records


def opened(folder, text, name="a.csv", **how):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return Dataset.from_path("d", folder, **how)


def rows_of(dataset):
    return [record.payload for record in pipeline(dataset)]


def test_values_are_the_text_that_stands_there(tmp_path):
    dataset = opened(tmp_path, 'a,b\n007,NA\nnull,1e5\n"",\n2024-01-01," x "\n')
    assert (dataset.kind, dataset.total(), dataset.fields_complete) == ("csv", 4, True)
    assert rows_of(dataset) == [
        {"a": "007", "b": "NA"},
        {"a": "null", "b": "1e5"},
        {"a": "", "b": ""},
        {"a": "2024-01-01", "b": " x "},
    ]
    assert [str(field.type) for field in dataset.fields()] == ["large_string", "large_string"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quotes_line_ends_blank_lines_and_a_mark(tmp_path, end):
    lines = ["\ufefftext,n", '"one', '""two""",1', "", 'a "quoted" word,2', '"x,y",3']
    dataset = opened(tmp_path, end.join(lines))
    assert rows_of(dataset) == [
        {"text": f'one{end}"two"', "n": "1"},
        {"text": 'a "quoted" word', "n": "2"},
        {"text": "x,y", "n": "3"},
    ]


def test_a_mark_within_the_file_is_part_of_its_value(tmp_path):
    long = "y" * 30_000  # several blocks begin with a mark
    text = "\ufeffa,b\n\ufeffx,1\n" + f"\ufeff{long},2\n" * 100
    rows = rows_of(opened(tmp_path, text))
    assert rows == [{"a": "\ufeffx", "b": "1"}] + [{"a": "\ufeff" + long, "b": "2"}] * 100


def test_a_lone_carriage_return_moves_no_row(tmp_path):
    dataset = opened(tmp_path, 'a\nx\ry\n\r\r\nz\n"p\rq"\n', on_error="skip")
    with pytest.warns(RuntimeWarning, match="2 skipped"):
        assert rows_of(dataset) == [{"a": "z"}, {"a": "p\rq"}]


@pytest.mark.parametrize("piece", [3, 7, 64])
@pytest.mark.parametrize("seed", range(12))
def test_rows_are_those_of_python(tmp_path, monkeypatch, seed, piece):
    monkeypatch.setattr(csv_records, "_PIECE", piece)
    draw = random.Random(seed)
    signs = ["a", "ö", '"', '""', ",", "\n", "\r\n", " ", '5" disk', "😀"]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=draw.choice(["\n", "\r\n"]))
    writer.writerow(["x", "y"])
    for _ in range(30):
        writer.writerow(["".join(draw.choices(signs, k=draw.randint(1, 6))) for _ in "xy"])
    text = out.getvalue()
    if seed % 3 == 0:  # quotes that Python takes as they are, within fields without any around
        text += '5" disk,6" disk\na,"b"c\nx""y,"p""q"\n'
    wanted = list(csv.DictReader(io.StringIO(text, newline="")))
    dataset = opened(tmp_path, text)
    assert len(dataset.group_sizes()) > 3
    assert rows_of(dataset) == wanted


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("a.tsv", None, "x\ty\n1\t2\n"),
        ("a.csv", {"delimiter": ";"}, "x;y\n1;2\n"),
        ("a.csv", {"header": ["x", "y"]}, "1,2\n"),
        ("a.csv", {"quote": "'"}, "x,y\n'1',2\n"),
    ],
)
def test_options(tmp_path, name, options, text):
    assert rows_of(opened(tmp_path, text, name, format_options=options)) == [{"x": "1", "y": "2"}]


def test_no_header_and_no_quotes(tmp_path):
    options = {"header": False, "quote": None}
    dataset = opened(tmp_path, '"1",2\n"3,4\n', format_options=options)
    assert rows_of(dataset) == [{"f0": '"1"', "f1": "2"}, {"f0": '"3', "f1": "4"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "::"}, "one ASCII character as delimiter, got '::'"),
        ({"quote": ","}, "another ASCII character, or None, as quote, got ','"),
        ({"header": 1.5}, "True, False or a list of names as header, got 1.5"),
        ({"quotes": "'"}, "has no 'quotes'; did you mean 'quote'"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, message):
    with pytest.raises(DatasetError, match=message):
        opened(tmp_path, "x\n1\n", fmt="csv", format_options=options)


def test_ragged_records_are_bad_rows_of_their_own(tmp_path, read):
    dataset = opened(tmp_path, 'x,y\n1,2\n3\n4,5,6\n"7\n",8\n')
    rows = read(dataset, Column("x", "text"), payload=True)
    assert rows.rows([0, 3]) == [{"x": "1", "y": "2"}, {"x": "7\n", "y": "8"}]
    with pytest.raises(
        DataError, match=r"row 1 \(line 3, byte 8\).*must have 2 fields.*got 1; it begins '3"
    ):
        rows.take([1])
    with pytest.raises(
        DataError, match=r"row 2 \(line 4, byte 10\): .* got 3; it begins '4,5,6\\n'"
    ):
        rows.take([2])


def test_bytes_that_are_not_utf8_spoil_their_row(tmp_path, read):
    rows = read(opened(tmp_path, b"x,y\na,1\n\xff,2\n"), Column("x", "text"))
    assert rows.values([0]) == ["a"]
    with pytest.raises(DataError, match=r"row 1: field 'x' must be text, got bytes that are not"):
        rows.values([1])


def test_a_schema_types_columns_for_expressions(tmp_path):
    text = "id,day,score\n007,2024-01-02,1.5\n8,,\n9,2024-01-03,2\n"
    dataset = opened(tmp_path, text, schema={"id": "int64", "day": "date32", "score": "double"})
    kept = pipeline(dataset).filter((pl.col("score") > 1.6) | pl.col("day").is_null())
    assert [record.payload["id"] for record in kept] == ["8", "9"]
    bad = opened(tmp_path, "id\n1\nx\n", schema={"id": "int64"})
    with pytest.raises(DataError, match=r"row 1: field 'id' must be .*int64, got text 'x'"):
        list(pipeline(bad).filter(pl.col("id") > 0))
    with pytest.raises(
        DatasetError, match=r"column 'id' must be of a type that text can be parsed"
    ):
        opened(tmp_path, "id\n1\n", schema={"id": "list<int64>"})


def test_equal_names_are_refused_where_one_is_needed(tmp_path, read):
    dataset = opened(tmp_path, "x,y,x\n1,2,3\n")
    assert read(dataset, Column("y", "text")).values() == ["2"]
    with pytest.raises(DatasetError, match=r"column 'x' must be there once, got 2"):
        read(dataset, Column("x", "text"))


def test_a_quote_that_is_never_closed(tmp_path):
    with pytest.raises(ShardError, match=r"'a.csv'.*record at byte 4 opens a quote that nothing"):
        opened(tmp_path, 'x\n1\n"2\n3\n')
    with pytest.raises(ShardError, match="mark of UTF-16"):
        opened(tmp_path, "x\n1\n".encode("utf-16"))


def test_empty_files_and_headers_alone(tmp_path):
    (tmp_path / "b.csv").write_bytes(b"")
    (tmp_path / "c.csv").write_bytes(b"x\n")
    dataset = opened(tmp_path, "x\n1\n")
    assert dataset.counts().tolist() == [1, 0, 0]
    assert rows_of(dataset) == [{"x": "1"}]


def test_compressed_files_and_an_index(tmp_path):
    text = "x,y\n" + "".join(f"{n},{'w' * 500}\n" for n in range(5000))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text.encode()))
    scanned = opened(tmp_path, text)
    assert scanned.group_counts().tolist() == [3, 3]
    build_index("csv", tmp_path, progress=False)
    indexed = Dataset.from_path("d", tmp_path)
    assert indexed == scanned
    assert indexed.shards.listed_by is not None
    assert [int(row["x"]) for row in rows_of(indexed)] == [*range(5000)] * 2
