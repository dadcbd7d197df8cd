import os
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zephon.errors import DataError, DatasetError, ShardError
from zephon.io import Dataset
from zephon.io.fields import TEXT, TOKENS, Column, Field
from zephon.io.formats.arrow_columns import converted_column
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader


@pytest.fixture(name="parquet")
def write_parquet(tmp_path):
    """Write tables as shards; give the dataset."""

    def write(*tables, group=3, **options):
        for number, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=group, **options)
        return Dataset.from_path("d", tmp_path)

    return write


def test_shards_and_row_groups(parquet):
    dataset = parquet(pa.table({"text": list("abcdefgh")}), pa.table({"text": ["x"]}))
    assert dataset.counts().tolist() == [8, 1]
    assert [shard.group_rows.tolist() for shard in dataset.shards] == [[3, 3, 2], [1]]
    assert dataset.manifest()[1][:2] == ("1.parquet", 1)
    assert dataset.fields() == (Field("text", "text"),)
    assert dataset.fields_complete


def test_every_kind_of_string_in_any_column_order(parquet, read, text):
    columns = [
        pa.array(["a", "größe"], dtype)
        for dtype in (
            pa.string(),
            pa.dictionary(pa.int32(), pa.string()),
            pa.large_string(),
            pa.string_view(),
        )
    ]
    tables = [pa.table({"text": column, "n": [1, 2]}) for column in columns]
    tables.append(pa.table({"n": [1, 2], "text": ["a", "größe"]}))
    dataset = parquet(*tables)
    rows = read(dataset, text)
    assert rows.take().columns.schema == pa.schema({"text": TEXT})
    assert rows.values() == ["a", "größe"] * 5
    assert rows.values([9, 0, 7, 0, 2]) == ["größe", "a", "größe", "a", "a"]


def test_tokens_of_any_integer_list(parquet, read, tokens):
    rows = [[1, 2], [], [3]]
    dataset = parquet(
        *(
            pa.table({"ids": pa.array(rows, dtype)})
            for dtype in (pa.list_(pa.int64()), pa.large_list(pa.uint16()), pa.list_(pa.int32()))
        )
    )
    taken = read(dataset, tokens).take()
    assert taken.columns.schema == pa.schema({"ids": TOKENS})
    assert taken.columns.column(0).to_pylist() == rows * 3


def test_only_the_wanted_leaves_are_decoded(parquet, read, text):
    wide = pa.array(["x" * 100_000] * 3)
    dataset = parquet(pa.table({"text": ["a", "b", "c"], "wide": wide}), use_dictionary=False)
    rows = read(dataset, text)
    rows.take()
    assert rows.cache.counts().bytes < 1000


def test_a_leaf_of_a_struct(parquet, read):
    meta = pa.array([{"text": "a", "wide": "x" * 9}, {"text": "b", "wide": None}])
    dataset = parquet(pa.table({"meta": meta}))
    assert read(dataset, Column("meta.text", "text")).values() == ["a", "b"]
    assert dataset.fields() == (Field("meta", "other"),)


def test_a_column_with_a_dot_in_its_name_wins(parquet, read):
    table = pa.table({"meta": pa.array([{"text": "in"}]), "meta.text": ["literal"]})
    assert read(parquet(table), Column("meta.text", "text")).values() == ["literal"]


def test_a_null_struct_makes_its_leaf_null(parquet, read):
    dataset = parquet(pa.table({"m": pa.array([{"t": "a"}, None, {"t": None}])}))
    rows = read(dataset, Column("m.t", "text", missing="empty"))
    assert rows.values([0]) == ["a"]
    for row in (1, 2):
        with pytest.raises(DataError, match=rf"row {row}: field 'm.t' must be text, got null"):
            rows.take([row])


def test_a_null_raises_only_when_its_row_is_taken(parquet, read, text):
    dataset = parquet(pa.table({"text": ["a", None, "c", "d", None]}))
    rows = read(dataset, text)
    assert rows.values([3, 0, 2]) == ["d", "a", "c"]
    with pytest.raises(
        DataError,
        match=r"dataset 'd', shard '0.parquet', row 4: field 'text' must be text, got null, "
        r"which null_text='drop' or 'empty' takes; "
        r"mend or remove the row",
    ):
        rows.take([3, 4, 1])


def test_tokens_too_large_name_their_row(parquet, read, tokens):
    dataset = parquet(pa.table({"ids": [[1], [2], [3], [4], [2**40]]}))
    rows = read(dataset, tokens)
    assert rows.values([0, 3]) == [[1], [4]]
    with pytest.raises(DataError, match=r"row 4: field 'ids'.*got 1099511627776"):
        rows.take([4])


def test_text_that_is_not_utf8_names_its_row(parquet, read, text):
    raw = pa.array([b"a", b"\xff"]).view(pa.string())
    rows = read(parquet(pa.table({"text": raw})), text)
    assert rows.values([0]) == ["a"]
    with pytest.raises(DataError, match=r"row 1: field 'text' must be text, got bytes that are"):
        rows.take([1])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (Column("txt", "text"), r"no column 'txt'; it has text, n, m \(did you mean 'text'\?\)"),
        (Column("n", "text"), r"column 'n' must be text, got int64; name another of text, n, m"),
        (Column("n", "tokens"), r"column 'n' must be a list of 32-bit integers, got int64"),
        (Column("text", "tokens"), r"column 'text' must be a list of 32-bit integers, got string"),
        (Column("m.y", "text"), r"no column 'm.y'"),
        (Column("m", "text"), r"column 'm' must be text, got struct"),
        (Column("n.x", "text", missing="empty"), r"'n.x' must lie in structs, got int64 at 'n'"),
    ],
)
def test_wrong_columns_are_refused_before_any_row(parquet, read, column, message):
    dataset = parquet(pa.table({"text": ["a"], "n": [1], "m": [{"x": "y"}]}))
    with pytest.raises(DatasetError, match=r"dataset 'd', shard '0.parquet': .*" + message):
        read(dataset, column)


def test_a_column_that_one_shard_lacks(parquet, read, tokens):
    dataset = parquet(pa.table({"text": ["a"], "ids": [[1]]}), pa.table({"text": ["b"]}))
    assert not dataset.fields_complete
    with pytest.raises(DatasetError, match=r"shard '1.parquet': no column 'ids'; it has text"):
        read(dataset, tokens)
    columns = (Column("ids", "tokens", missing="empty"), Column("t", "text", missing="empty"))
    taken = read(dataset, *columns).take([1, 0]).columns
    assert taken.to_pylist() == [{"ids": [], "t": ""}, {"ids": [1], "t": ""}]


@pytest.mark.parametrize(
    "dtype", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3), "dictionary"]
)
def test_bytes_are_text_where_they_are_utf8(parquet, read, text, dtype):
    values = pa.array([b"abc", b"gr\xc3", None, b"xyz"])
    values = values.dictionary_encode() if dtype == "dictionary" else values.cast(dtype)
    rows = read(parquet(pa.table({"text": values})), text)
    assert rows.values([0, 3]) == ["abc", "xyz"]
    with pytest.raises(DataError, match=r"row 1: field 'text' must be text, got bytes that are no"):
        rows.values([1])
    with pytest.raises(DataError, match=r"row 2: field 'text' must be text, got null"):
        rows.values([2])


def test_two_columns_of_one_name(parquet, read, text):
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    with pytest.raises(DatasetError, match="'text' must be there once, got 2 columns"):
        read(parquet(table), text)


def test_types_are_not_fixed_by_the_first_shard(parquet, read, text, tokens):
    empty = pa.table({"text": pa.nulls(2), "ids": pa.array([[], []], pa.list_(pa.null()))})
    full = pa.table({"text": ["late"], "ids": [[1]]})
    for tables in ((empty, full), (full, empty)):
        dataset = parquet(*tables)
        late = [2] if tables[0] is empty else [0]
        assert read(dataset, text, tokens).take(late).columns.to_pylist() == [
            {"text": "late", "ids": [1]}
        ]
        assert dataset.fields() == (Field("text", "text"), Field("ids", "tokens"))


def test_a_shard_without_rows_never_matters(parquet, read, text):
    empty = pa.table({"other": pa.nulls(0)})
    dataset = parquet(empty, pa.table({"text": ["a", "b"]}), empty)
    assert dataset.counts().tolist() == [0, 2, 0]
    assert dataset.fields() == (Field("text", "text"),)
    assert read(dataset, text).values([1, 0]) == ["b", "a"]


def test_all_shards_without_rows(parquet, read, text):
    dataset = parquet(pa.table({"text": pa.array([], pa.string())}))
    assert (dataset.total(), dataset.max_count()) == (0, 0)
    assert dataset.fields() == (Field("text", "text"),)
    assert read(dataset, text).take().columns.num_rows == 0


def test_empty_row_groups_between_others(tmp_path, read, text):
    schema = pa.schema({"text": pa.string()})
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for rows in ([], ["a"], [], [], ["b", "c"], []):
            writer.write_table(pa.table({"text": rows}, schema), row_group_size=10)
    rows = read(Dataset.from_path("d", tmp_path), text)
    assert rows.values() == ["a", "b", "c"]
    assert rows.values([2, 0]) == ["c", "a"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file is empty: this is not a Parquet file: "),
        (b"PAR1", "this is not a Parquet file, or it is damaged or cut off: "),
        (b"id,text\n0,hello there\n", r"this is not a Parquet file: it begins with b'id,t': "),
        (b"PARE and what is encrypted", "it is encrypted, and no keys are known: "),
    ],
)
def test_a_file_that_is_not_parquet(tmp_path, content, what):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(
        ShardError,
        match=rf"^dataset 'd', shard 'a.parquet': its footer must be readable, but {what}.*; write "
        r"the file .*, or move it out of the directory$",
    ):
        Dataset.from_path("d", tmp_path)


def test_a_truncated_file_names_itself(parquet, tmp_path):
    parquet(pa.table({"text": ["a"] * 1000}))
    whole = (tmp_path / "0.parquet").read_bytes()
    (tmp_path / "1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ShardError, match=r"shard '1.parquet': its footer .* cut off"):
        Dataset.from_path("d", tmp_path)


def test_a_damaged_page_names_its_row_group(parquet, tmp_path, read, text):
    dataset = parquet(pa.table({"text": [f"{i} text" for i in range(3000)]}), group=1000)
    path = tmp_path / "0.parquet"
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[20:600] = b"\xff" * 580
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    rows = read(dataset, text)
    assert rows.values([2500]) == ["2500 text"]
    with pytest.raises(ShardError, match=r"shard '0.parquet': row group 0 must be readable"):
        rows.take([3])


def test_a_file_rewritten_after_counting_is_refused(parquet, tmp_path, read, text):
    dataset = parquet(pa.table({"text": ["a"]}))
    pq.write_table(pa.table({"text": ["longer than before", "b"]}), tmp_path / "0.parquet")
    with pytest.raises(ShardError, match=r"shard '0.parquet': .*written to since .*open the"):
        read(dataset, text).take()


def test_a_file_that_is_gone(parquet, tmp_path, read, text):
    dataset = parquet(pa.table({"text": ["a"]}))
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(ShardError, match=r"shard '0.parquet': its footer .* it cannot be opened"):
        read(dataset, text).take()


def test_whole_rows(parquet, read, text):
    table = pa.table({"text": ["a", "b"], "n": pa.array([1, 2], pa.int16()), "ids": [[1], [2, 3]]})
    rows = read(parquet(table), text, payload=True)
    first, second = rows.rows([1, 0])
    assert (first["text"], first["n"], first["ids"].tolist()) == ("b", np.int16(2), [2, 3])
    assert isinstance(second["n"], np.int16)


def test_whole_rows_without_columns(parquet, read):
    rows = read(parquet(pa.table({"text": list("abcdef")})), payload=True)
    taken = rows.take([5, 0, 1])
    assert taken.columns.num_rows == 3
    assert [row["text"] for row in rows.rows([5, 0, 1])] == ["f", "a", "b"]


def test_neither_columns_nor_rows(parquet, read):
    assert read(parquet(pa.table({"text": list("abcd")}))).take([3, 0]).columns.num_rows == 2


def test_a_column_that_arrow_gives_in_chunks(text):
    chunks = pa.chunked_array([["a", None], [], ["c", None]], pa.string())
    column, faults = converted_column(pa.table({"text": chunks}), text)
    assert column.to_pylist() == ["a", "", "c", ""]
    assert faults.rows.tolist() == [1, 3]
    assert len(faults.details) == 2
    nothing = pa.table({"text": pa.chunked_array([], pa.string())})
    assert len(converted_column(nothing, text)[0]) == 0


def test_a_thread_holds_few_files_open(tmp_path, read, text):
    for number in range(60):
        pq.write_table(pa.table({"text": [str(number)]}), tmp_path / f"{number:02d}.parquet")
    rows = read(Dataset.from_path("d", tmp_path), text)
    before = len(os.listdir("/proc/self/fd"))
    assert rows.values() == [str(number) for number in range(60)]
    assert len(os.listdir("/proc/self/fd")) <= before + 16


def test_many_threads_read_the_same_rows(parquet, read, text):
    words = [f"{i}" * (i % 50) for i in range(2000)]
    tables = [pa.table({"text": words[i : i + 500]}) for i in range(0, 2000, 500)]
    rows = read(parquet(*tables, group=100), text, limit_bytes=40_000)
    wrong = []

    def work(seed):
        picks = np.random.default_rng(seed).integers(0, 2000, (20, 64))
        for some in picks:
            if rows.values(some) != [words[i] for i in some]:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong


def test_hive_directories_are_passed_over_with_their_columns(tmp_path, read):
    pq.write_table(pa.table({"lang": ["fr"]}), tmp_path / "x.parquet")
    (tmp_path / "lang=en").mkdir()
    dataset = Dataset.from_path("d", tmp_path)
    assert read(dataset, Column("lang", "text")).values() == ["fr"]
    assert dataset.passed_over == ("lang=en: a directory; only direct children are read",)


def test_a_file_written_to_while_it_is_open_is_refused(tmp_path):
    """The run goes on with no row of another file, whatever layout it has."""
    table = pa.table({"text": [f"old {i}" for i in range(20)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    dataset = Dataset.from_path("d", str(tmp_path))
    reader = RowReader(
        dataset, (Column("text", "text"),), payload=False, cache=GroupCache(limit_bytes=0)
    )
    reader.take(np.array([0]), np.array([0]))
    os.utime(tmp_path / "a.parquet", ns=(1, 1))
    with pytest.raises(ShardError, match="written to since"):
        reader.take(np.array([0]), np.array([15]))


def test_row_groups_that_contradict_the_footer(tmp_path):
    pq.write_table(pa.table({"n": range(50)}), tmp_path / "a.parquet", row_group_size=50)
    content = (tmp_path / "a.parquet").read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    place = content.rindex(b"\x16\x64", start)  # the rows of the row group: 50, as a zigzag
    (tmp_path / "a.parquet").write_bytes(content[:place] + b"\x16\x62" + content[place + 2 :])
    with pytest.raises(ShardError, match=r"'a.parquet': its footer .* of 50 rows, and of 49 in gr"):
        Dataset.from_path("d", tmp_path)


def test_numbers_beyond_a_dictionary_are_an_error_of_their_row_group(parquet, read, monkeypatch):
    dataset = parquet(pa.table({"t": pa.array(["a", "b", "a"]).dictionary_encode()}))
    broken = pa.DictionaryArray.from_arrays(pa.array([0, 7, 1]), ["a", "b"], safe=False)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda *_, **__: pa.table({"t": broken}))
    with pytest.raises(ShardError, match=r"row group 0 .* column 't' has a value beyond the 2 of"):
        read(dataset, Column("t", "text")).values()
