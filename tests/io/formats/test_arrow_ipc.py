import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.written import pipeline
from zephon.build_index import build_catalog, build_index
from zephon.errors import DataError, DatasetError, ShardError
from zephon.io import Dataset
from zephon.io.fields import TEXT, Column
from zephon.io.formats import arrow_ipc
from zephon.io.formats.arrow_messages import messages_of

TABLE = pa.table(
    {
        "text": ["a", "größe", "", "d", "e"],
        "n": pa.array([1, None, 3, 4, 5], pa.int16()),
        "ids": [[1], [2, 3], [], [4], [5]],
        "tag": pa.array(list("xyxyz")).dictionary_encode(),
        "in": [{"a": 1}, None, {"a": 3}, {"a": 4}, {"a": 5}],
    }
)
KINDS = [
    (new, comp) for new in (pa.ipc.new_file, pa.ipc.new_stream) for comp in (None, "lz4", "zstd")
]


def write(path, *tables, new=pa.ipc.new_file, compression=None, rows=2, **more):
    options = pa.ipc.IpcWriteOptions(compression=compression, **more)
    with new(str(path), tables[0].schema, options=options) as file:
        for table in tables:
            file.write_table(table, rows)
    return path


def plain(row):
    return {
        key: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for key, value in row.items()
    }


def payloads(dataset):
    return [plain(record.payload) for record in pipeline(dataset)]


@pytest.mark.parametrize(("new", "compression"), KINDS)
def test_rows_are_those_of_pyarrow(tmp_path, new, compression):
    write(tmp_path / "a.arrow", TABLE, new=new, compression=compression)
    dataset = Dataset.from_path("d", tmp_path)
    assert (dataset.kind, dataset.total(), dataset.group_sizes().tolist()) == (
        "arrow",
        5,
        [2, 2, 1],
    )
    assert payloads(dataset) == TABLE.to_pylist()


@pytest.mark.parametrize(("new", "compression"), KINDS)
def test_columns_alone(tmp_path, read, new, compression):
    write(tmp_path / "a.feather", TABLE, new=new, compression=compression)
    rows = read(Dataset.from_path("d", tmp_path), Column("text", "text"))
    assert rows.take().columns.schema == pa.schema({"text": TEXT})
    assert rows.values([4, 1, 0]) == ["e", "größe", "a"]


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_dictionaries_that_grow_and_change(tmp_path, compression):
    tables = [
        pa.table({"tag": pa.array(tags).dictionary_encode()})
        for tags in (["a", "b"], ["a", "b", "c"], ["z", "a"])
    ]
    write(
        tmp_path / "a.arrow", *tables, new=pa.ipc.new_stream, compression=compression,
        emit_dictionary_deltas=True,
    )  # fmt: skip
    found = [row["tag"] for row in payloads(Dataset.from_path("d", tmp_path))]
    assert found == ["a", "b", "a", "b", "c", "z", "a"]


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_a_huge_batch_is_cut(tmp_path, new, monkeypatch):
    monkeypatch.setattr(arrow_ipc, "_GROUP_BYTES", 4096)
    table = pa.table({"n": pa.array(range(4000), pa.int64())})
    write(tmp_path / "a.arrow", table, new=new, rows=4000)
    dataset = Dataset.from_path("d", tmp_path)
    assert len(dataset.group_sizes()) == 7
    assert [row["n"] for row in payloads(dataset)] == list(range(4000))
    write(tmp_path / "a.arrow", table, new=new, rows=4000, compression="zstd")
    assert len(Dataset.from_path("d", tmp_path).group_sizes()) == 1


def test_columns_that_differ_between_files_are_widened(tmp_path, read):
    write(tmp_path / "a.arrow", pa.table({"text": ["a"], "n": pa.array([1], pa.int8())}))
    write(tmp_path / "b.arrow", pa.table({"n": pa.array([2**40]), "text": pa.array(["b"], TEXT)}))
    dataset = Dataset.from_path("d", tmp_path)
    types = {field.name: field.type for field in dataset.fields()}
    assert types == {"text": TEXT, "n": pa.int64()}
    assert read(dataset, Column("text", "text")).values() == ["a", "b"]
    write(tmp_path / "c.arrow", pa.table({"n": ["x"], "text": ["c"]}))
    dataset = Dataset.from_path("d", tmp_path)
    assert "shard 'a.arrow' has int8, shard 'c.arrow' has string" in dataset.type_conflict("n")
    with pytest.raises(
        DatasetError,
        match=r"shard 'a.arrow': column 'n' must be a list of 32-bit integers, got int8",
    ):
        read(dataset, Column("n", "tokens"))


def test_text_that_is_not_utf8_spoils_its_row(tmp_path, read):
    broken = pa.array([b"a", b"\xff", b"c"]).view(pa.string())
    write(tmp_path / "a.arrow", pa.table({"text": broken}))
    dataset = Dataset.from_path("d", tmp_path)
    rows = read(dataset, Column("text", "text"))
    assert rows.values([0, 2]) == ["a", "c"]
    with pytest.raises(
        DataError, match=r"row 1.*'text' must be text, got bytes that are not UTF-8"
    ):
        rows.values([1])


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_no_rows_and_no_bytes(tmp_path, new):
    write(tmp_path / "a.arrow", TABLE.slice(0, 0), new=new)
    write(tmp_path / "b.arrow", TABLE, new=new)
    assert Dataset.from_path("d", tmp_path).counts().tolist() == [0, 5]
    (tmp_path / "c.arrow").touch()
    with pytest.raises(ShardError, match=r"shard 'c.arrow'.*'arrow'.*it has no bytes"):
        Dataset.from_path("d", tmp_path)


@pytest.mark.parametrize(("new", "compression"), KINDS)
def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path, new, compression):
    whole = write(tmp_path / "a.arrow", TABLE, new=new, compression=compression).read_bytes()
    messages = messages_of(memoryview(whole))
    edges = {each.span.stop for each in messages.batches} | {messages.schema.stop}
    edges |= {span.stop for span in messages.dictionaries}  # a stream may end at any of these
    for size in range(1, len(whole) - 8, 23):
        if new is pa.ipc.new_stream and size in edges:
            continue
        (tmp_path / "a.arrow").write_bytes(whole[:size])
        with pytest.raises(ShardError, match=r"shard 'a.arrow'"):
            Dataset.from_path("d", tmp_path)


@pytest.mark.parametrize(("new", "compression"), KINDS)
def test_damaged_bytes_give_rows_or_an_error_that_says_where(tmp_path, new, compression):
    whole = write(tmp_path / "a.arrow", TABLE, new=new, compression=compression).read_bytes()
    for place in range(0, len(whole), 43):
        damaged = bytearray(whole)
        damaged[place] ^= 0xA5
        path = tmp_path / "a.arrow"
        path.write_bytes(damaged)
        try:
            payloads(Dataset.from_path("d", tmp_path))
        except (ShardError, DataError, DatasetError) as exc:
            assert "dataset 'd'" in str(exc)


def test_what_is_no_arrow_file(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.arrow")
    with pytest.raises(ShardError, match=r"no message of Arrow IPC begins b'PAR1'"):
        Dataset.from_path("d", tmp_path)


def test_an_index_and_a_catalogue_tell_of_batches(tmp_path):
    write(tmp_path / "a.arrow", TABLE)
    write(tmp_path / "b.arrow", TABLE, new=pa.ipc.new_stream)
    scanned = Dataset.from_path("d", tmp_path)
    build_index("arrow", tmp_path, progress=False)
    indexed = Dataset.from_path("d", tmp_path)
    assert indexed.shards.listed_by.file == "index.json"
    build_catalog(tmp_path, progress=False)
    catalogued = Dataset.from_path("d", tmp_path)
    assert catalogued.shards.listed_by.file == "_catalog.arrow"
    for dataset in (indexed, catalogued):
        assert dataset == scanned
        assert payloads(dataset) == TABLE.to_pylist() * 2
        assert [field.type for field in dataset.fields()] == [f.type for f in scanned.fields()]


def test_a_file_that_changed_is_noticed(tmp_path, read):
    path = write(tmp_path / "a.arrow", TABLE)
    rows = read(Dataset.from_path("d", tmp_path), Column("text", "text"))
    rows.values([0])
    path.rename(tmp_path / "old")
    write(path, TABLE.slice(0, 3))
    with pytest.raises(ShardError, match=r"shard 'a.arrow': the file must stay as it was"):
        rows.values([4])
