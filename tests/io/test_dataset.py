import copy
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zephon.build_index import build_index
from zephon.errors import DatasetError, NotYetError
from zephon.io import Dataset, InMemoryShard
from zephon.io.dataset import Shard


@pytest.fixture
def files(tmp_path):
    for name, rows in (("b", 3), ("a", 2), ("c", 0)):
        table = pa.table({"text": pa.array(["x"] * rows, pa.string())})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    (tmp_path / "README.md").write_text("# words\n")
    return tmp_path


def test_what_a_dataset_says(files):
    dataset = Dataset.from_path("words", files)
    assert dataset.name == "words"
    assert dataset.path == str(files)
    assert dict(dataset.backend) == {"kind": "parquet", "path": str(files)}
    assert dataset.ids().tolist() == [0, 1, 2]
    assert dataset.counts().tolist() == [2, 3, 0]
    assert dataset.total() == len(dataset) == 5
    assert dataset.max_count() == 3
    assert dataset.shard_count() == 3
    sizes = [(files / f"{name}.parquet").stat().st_size for name in "abc"]
    assert dataset.raw_bytes().tolist() == sizes
    assert dataset.manifest()[0] == ("a.parquet", 2, sizes[0])
    assert dataset.passed_over == ("README.md: not data",)
    assert isinstance(dataset.shards[0], Shard)
    assert dataset.mean_row_bytes() > 0
    assert repr(dataset) == "Dataset('words', parquet, 5 rows in 3 shards)"


@pytest.mark.parametrize("method", ["ids", "counts", "raw_bytes"])
def test_arrays_are_read_only_int64(files, method):
    array = getattr(Dataset.from_path("d", files), method)()
    assert array.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_a_dataset_is_frozen_equal_and_hashable(files):
    one, two = Dataset.from_path("d", files), Dataset.from_path("d", files)
    assert one == two
    assert hash(one) == hash(two)
    assert one != Dataset.from_path("e", files)
    with pytest.raises(AttributeError):
        one.name = "other"
    with pytest.raises(TypeError):
        one.backend["kind"] = "jsonl"


def test_datasets_in_memory_are_equal_only_with_the_same_rows():
    shard = InMemoryShard([{"text": "a"}])
    assert Dataset.from_dict("d", {0: shard}) == Dataset.from_dict("d", {0: shard})
    assert Dataset.from_dict("d", {0: shard}) != Dataset.from_dict("d", {0: InMemoryShard([{}])})


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_pickling_and_copying(tmp_path, read, text, suffix):
    if suffix == "parquet":
        pq.write_table(pa.table({"text": ["a", "b"]}), tmp_path / "a.parquet")
    else:
        (tmp_path / "a.jsonl").write_text('{"text":"a"}\n{"text":"b"}\n')
    dataset = Dataset.from_path("d", tmp_path)
    assert copy.deepcopy(dataset) is dataset
    assert copy.copy(dataset) is dataset
    other = pickle.loads(pickle.dumps(dataset))
    assert other == dataset
    assert other.fields() == dataset.fields()
    assert other.fields_complete == dataset.fields_complete
    assert not other.counts().flags.writeable
    assert read(other, text).values([1, 0]) == ["b", "a"]


def test_rows_in_memory_are_pickled_with_their_dataset(read, text):
    dataset = Dataset.from_dict("d", {5: InMemoryShard([{"text": "a"}])})
    other = pickle.loads(pickle.dumps(dataset))
    assert other.ids().tolist() == [5]
    assert read(other, text).values() == ["a"]


def test_rows_in_memory_keep_the_users_ids():
    shards = {9: InMemoryShard([{"t": "abc"}] * 2), -1: InMemoryShard([]), 3: InMemoryShard([{}])}
    dataset = Dataset.from_dict("d", shards)
    assert dataset.ids().tolist() == [-1, 3, 9]
    assert dataset.counts().tolist() == [0, 1, 2]
    assert dataset.raw_bytes().tolist() == [0, 0, 8]
    assert dataset.path is None
    assert dataset.backend["kind"] == "in_memory"
    assert dataset.backend["shards"][9] is shards[9]
    assert [shard.name for shard in dataset.shards] == ["-1", "3", "9"]


@pytest.mark.parametrize("key", ["0", 1.0, True, None])
def test_shard_ids_in_memory_must_be_int(key):
    with pytest.raises(DatasetError, match="shard ids must be int, got"):
        Dataset.from_dict("d", {key: InMemoryShard([])})


@pytest.mark.parametrize(
    "key", [2**63, -(2**63) - 1, 2**70, np.uint64(2**63), 1 << 20_000], ids=hex
)
def test_shard_ids_in_memory_must_be_numbers_of_64_bits(key):
    with pytest.raises(DatasetError, match=r"'d': shard ids must be from -2\^63 to 2\^63 - 1, got"):
        Dataset.from_dict("d", {key: InMemoryShard([])})


def test_the_least_and_the_largest_shard_id():
    shards = {key: InMemoryShard([{}]) for key in (2**63 - 1, -(2**63))}
    assert Dataset.from_dict("d", shards).ids().tolist() == [-(2**63), 2**63 - 1]


@pytest.mark.parametrize("shards", [[InMemoryShard([])], None, InMemoryShard([]), "abc"])
def test_shards_in_memory_must_have_ids(shards):
    with pytest.raises(DatasetError, match=r"shards must be a dict from shard id to .* got"):
        Dataset.from_dict("d", shards)


def test_rows_in_memory_must_be_wrapped():
    with pytest.raises(DatasetError, match=r"shard 0: rows must be an InMemoryShard, got a list"):
        Dataset.from_dict("d", {0: [{"text": "a"}]})


@pytest.mark.parametrize("fmt", ["vortex", "lance", "mds", "litdata"])
def test_documented_formats_that_are_not_there_yet(files, fmt):
    with pytest.raises(NotYetError, match=f"format '{fmt}' is not supported yet"):
        Dataset.from_path("d", files, fmt=fmt)


def test_an_unknown_format_names_the_nearest(files):
    with pytest.raises(ValueError, match=r"Unknown format kind 'parqet'; did you mean 'parquet'"):
        Dataset.from_path("d", files, fmt="parqet")
    with pytest.raises(DatasetError, match=r"Unknown format kind 'in_memory'"):
        Dataset.from_path("d", files, fmt="in_memory")


@pytest.mark.parametrize(
    "make", [lambda n, p: Dataset.from_path(n, p), lambda n, p: Dataset.from_dict(n, {})]
)
def test_a_name_is_checked_before_anything_else(make, tmp_path):
    with pytest.raises(DatasetError, match="must hold no slash"):
        make("a/b", tmp_path / "nowhere")


def test_fmt_reads_one_of_two_formats(files):
    (files / "a.jsonl").write_text('{"text":"json"}\n')
    with pytest.raises(DatasetError, match=r"must hold one format, got jsonl .* and parquet"):
        Dataset.from_path("d", files)
    assert Dataset.from_path("d", files, fmt="jsonl").counts().tolist() == [1]
    parquet = Dataset.from_path("d", files, fmt="parquet")
    assert parquet.counts().tolist() == [2, 3, 0]
    assert "a.jsonl: jsonl; only parquet is read" in parquet.passed_over


def test_train_and_test_files_side_by_side_are_both_listed_as_shards(tmp_path):
    for name in ("train-000.parquet", "test-000.parquet", "train-000.parquet.tmp"):
        pq.write_table(pa.table({"text": ["a"]}), tmp_path / name)
    (tmp_path / "README.md").touch()
    dataset = Dataset.from_path("d", tmp_path)
    assert [shard.name for shard in dataset.shards] == ["test-000.parquet", "train-000.parquet"]
    assert dataset.passed_over == ("README.md: not data", "train-000.parquet.tmp: temporary")


def test_fields_that_an_index_alone_tells_of(tmp_path):
    (tmp_path / "0.jsonl").write_text('{"n": 1}\n')
    (tmp_path / "1.jsonl").write_text('{"late": 5, "odd": {"x": 1}}\n')
    plain = Dataset.from_path("d", tmp_path)
    build_index("jsonl", tmp_path, progress=False)
    indexed = Dataset.from_path("d", tmp_path)
    assert [field.name for field in plain.fields()] == ["n"]
    assert [(field.name, field.kind, field.type) for field in indexed.fields()] == [
        ("n", "scalar", pa.int64()),
        ("late", "scalar", pa.int64()),
        ("odd", "other", None),
    ]
    assert indexed.kinds_without_index() == plain.kinds_without_index() == {"n": "scalar"}


@pytest.mark.filterwarnings("ignore:.*schema should name fields:RuntimeWarning")
def test_a_schema_for_json_lines(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"n": 1, "t": "a"}\n')
    schema = {"n": int, "m.x": "list<string>"}
    dataset = Dataset.from_path("d", tmp_path, schema=schema)
    fields = {field.name: (field.kind, field.type) for field in dataset.fields()}
    assert fields == {
        "n": ("scalar", pa.int64()),
        "t": ("text", None),
        "m.x": ("other", pa.large_list(pa.large_string())),
    }
    assert not dataset.fields_complete
    assert dataset.type_conflict("n") == ""
    assert dataset.type_conflict("t") == (
        "nobody has looked at all its values; pass schema= to Dataset.from_path, or run "
        f"`zephon index {tmp_path}`"
    )
    assert dataset.declared_types == {"m.x": "large_list<item: large_string>", "n": "int64"}
    plain = Dataset.from_path("d", tmp_path)
    assert plain.declared_types == {}
    recorded = {"shards": plain.recorded_manifest(), "types": dataset.declared_types}
    assert dataset.recorded_manifest() == recorded
    assert dataset != plain
    restored = pickle.loads(pickle.dumps(dataset))
    assert restored == dataset
    assert [field.type for field in restored.fields()] == [pa.int64(), None, fields["m.x"][1]]


@pytest.mark.parametrize("dtype", [bytes, "timestamp[us]", "list<date32>"])
def test_json_has_no_values_of_other_types(tmp_path, dtype):
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(DatasetError, match=r"schema\['n'\] must be of booleans, numbers, text"):
        Dataset.from_path("d", tmp_path, schema={"n": dtype})


TOLD = (
    "column 'n' must be a value of type large_string, got int64; leave it out of schema=, or give "
    "the type that the file has there, and convert it"
)


def test_a_schema_for_parquet_wins(tmp_path):
    pq.write_table(pa.table({"n": [1, 2**40], "m": [{"x": 1}, None]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": [0.5]}), tmp_path / "b.parquet")
    schema = {"n": "int32", "m.x": "int8"}
    dataset = Dataset.from_path("d", tmp_path, schema=schema)
    types = {field.name: field.type for field in dataset.fields()}
    assert types["n"] == pa.int32()
    assert types["m"] == pa.struct([("x", pa.int64())])
    assert types["m.x"] == pa.int8()
    with pytest.raises(DatasetError, match=TOLD):
        Dataset.from_path("d", tmp_path, schema={"n": "string"})
    with pytest.raises(DatasetError, match=r"got 'nn', which no shard has; did you mean 'n'\?"):
        Dataset.from_path("d", tmp_path, schema={"nn": "string"})


@pytest.mark.filterwarnings("ignore:.*schema should name fields:RuntimeWarning")
def test_a_schema_for_rows_in_memory():
    shards = {0: InMemoryShard([{"n": 1}])}
    dataset = Dataset.from_dict("d", shards, schema={"n": "float32", "when": "timestamp[ms]"})
    assert [field.type for field in dataset.fields()] == [pa.float32(), pa.timestamp("ms")]
    with pytest.raises(DatasetError, match="did you mean 'float32'"):
        Dataset.from_dict("d", shards, schema={"n": "flot32"})


def test_repr_tells_what_is_read_and_how(tmp_path):
    (tmp_path / "a.csv").write_text("a;b\n1;2\n")
    made = Dataset.from_path(
        "d", tmp_path, on_error="skip", null_text="drop", format_options={"delimiter": ";"}
    )
    assert repr(made) == (
        "Dataset('d', csv, 1 row in 1 shard, format_options={'delimiter': ';'}, "
        "on_error='skip', null_text='drop')"
    )
