"""The compiled catalogue: what it holds, when it is used, and when it is not."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest

from tests.written import lines, parquet
from zephon import Pipeline, StaticMixtureWorkSource
from zephon.build_index import build_catalog, build_index, write_catalog
from zephon.errors import DatasetError, ShardError
from zephon.io import Dataset, InMemoryShard
from zephon.io import catalog as catalogs

ROWS = [{"text": f"row {n}"} for n in range(11)]


@pytest.fixture
def folder(tmp_path):
    parquet(tmp_path, "b.parquet", ROWS[5:])
    parquet(tmp_path, "a.parquet", ROWS[:5])
    parquet(tmp_path, "c.parquet", pa.table({"n": pa.array([], pa.int64())}))
    return tmp_path


@pytest.fixture
def scanned(folder):
    return Dataset.from_path("d", folder)


def opened(folder, fmt=None):
    """Open a directory; any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Dataset.from_path("d", folder, fmt=fmt)


def without_marks(dataset, path):
    """Write a catalogue of what is known of files that were counted: no content marks."""
    known = catalogs.Catalog(dataset.kind, dataset.shards, dataset.fields(), True)
    catalogs.write_shards(path, known)


def rewritten(folder, change, about=None):
    """Change the columns of a catalogue, or what it says of them; without a checksum."""
    path = folder / catalogs.CATALOG
    with pa.ipc.open_file(path) as reader:
        batch, metadata = reader.get_batch(0), dict(reader.schema.metadata)
    columns = {name: batch.column(name) for name in batch.schema.names}
    change(columns)
    said = json.loads(metadata[b"zephon.catalog"])
    del said["crc32"]
    metadata[b"zephon.catalog"] = json.dumps({**said, **(about or {})}).encode()
    made = pa.RecordBatch.from_pydict(columns).replace_schema_metadata(metadata)
    with pa.ipc.new_file(path, made.schema) as writer:
        writer.write_batch(made)


def test_a_catalogue_is_used_first_and_the_directory_is_not_listed(folder, scanned, read, text):
    build_index("parquet", folder, progress=False)
    build_catalog(folder, progress=False)
    parquet(folder, "later.parquet", ROWS)
    (folder / "notes.md").touch()
    dataset = opened(folder)
    assert dataset.shards.listed_by.file == "_catalog.arrow"
    assert dataset.passed_over == ()
    assert dataset.shards == scanned.shards
    assert dataset.group_sizes().tolist() == scanned.group_sizes().tolist()
    assert dataset.raw_bytes().tolist() == scanned.raw_bytes().tolist()
    assert dataset.mean_row_bytes() == scanned.mean_row_bytes()
    assert dataset.fields() == scanned.fields()
    assert dataset.fields_complete == scanned.fields_complete
    assert read(dataset, text).values() == [row["text"] for row in ROWS]


def test_fmt_passes_by_a_catalogue_of_another_format(folder):
    build_catalog(folder, progress=False)
    lines(folder, "z.jsonl", ["{}"])
    dataset = opened(folder, fmt="jsonl")
    assert dataset.counts().tolist() == [1]
    assert "_catalog.arrow: a catalogue; not used" in dataset.passed_over
    assert opened(folder, fmt="parquet").shards.listed_by is not None


def test_a_file_that_is_gone_or_another_is_refused_when_it_is_opened(folder, read, text):
    build_catalog(folder, progress=False)
    (folder / "a.parquet").unlink()
    parquet(folder, "b.parquet", ROWS)
    rows = read(opened(folder), text)
    with pytest.raises(
        ShardError,
        match=rf"dataset 'd', shard 'a.parquet': the file must be there, as _catalog.arrow in "
        rf"'{folder}' says, .*; put it back, or make .* with `zephon index --catalog {folder}`",
    ):
        rows.values([0])
    with pytest.raises(ShardError, match=r"'b.parquet': the file must be as _catalog.arrow says"):
        rows.values([5])


def test_a_run_that_goes_on_after_a_file_was_renamed_names_the_catalogue(folder):
    def job():
        source = StaticMixtureWorkSource([opened(folder)], {"d": 1}, shuffle_shards=False)
        return Pipeline(source).batch(2).options(runner="inline")

    (folder / "c.parquet").unlink()
    build_catalog(folder, progress=False)
    pipeline = job()
    items = iter(pipeline)
    next(items)
    state = pipeline.checkpoint()
    items.close()
    (folder / "b.parquet").rename(folder / "renamed.parquet")
    with pytest.raises(ShardError, match=r"'b.parquet': the file must be there, as _catalog.arrow"):
        list(job().restore(state))


def test_a_file_of_the_same_size_with_other_rows_is_refused(folder, scanned, read, text):
    """The footer is compared too: a size alone may be the same by chance."""
    without_marks(scanned, folder / "_catalog.arrow")
    size = (folder / "b.parquet").stat().st_size
    for other, difference in (
        (pa.table({"text": ["x"] * 3}), r"it has 3 rows in 1 row groups, not 6 in 2"),
        (pa.table({"txet": ["x"] * 6}), r"its columns are others"),
    ):
        parquet(folder, "b.parquet", other)
        padded = (folder / "b.parquet").read_bytes()
        assert len(padded) <= size
        # bytes before the first row group are nobody's: the footer says where columns begin
        (folder / "b.parquet").write_bytes(_padded(padded, size))
        with pytest.raises(ShardError, match=difference):
            read(opened(folder), text).values([5])


def _padded(content, size):
    """Put bytes between the pages and the footer; Parquet finds its footer from the end."""
    footer = int.from_bytes(content[-8:-4], "little") + 8
    return content[:-footer] + bytes(size - len(content)) + content[-footer:]


def test_what_a_catalogue_cannot_be(folder, scanned):
    build_catalog(folder, progress=False)
    good = (folder / "_catalog.arrow").read_bytes()

    def with_(**values):
        def change(columns):
            for name, value in values.items():
                old = columns[name]
                columns[name] = pa.array(
                    value, old.type if not isinstance(value, pa.Array) else None
                )

        return change

    names = ["a.parquet", "b.parquet", "c.parquet"]
    groups = pa.array([[4, 1], [4, 2], []], pa.large_list(pa.int64()))
    cases = [
        (with_(name=["b.parquet", "a.parquet", "c.parquet"]), "names must ascend bytewise, got 'b"),
        (with_(name=["a.parquet", "a.parquet", "c.parquet"]), "names must ascend bytewise, got 'a"),
        (with_(name=["a.parquet", "b.txt", "c.parquet"]), "must end in .parquet, got 'b.txt'"),
        (with_(name=["../a.parquet", *names[1:]]), "must be without a path, got one with '/'"),
        (with_(name=["a\0.parquet", *names[1:]]), "must be without a path"),
        (with_(name=["a.parquet", None, "c.parquet"]), "a value is missing"),
        (with_(rows=[5, -6, 0]), "rows must be at least 0, got -6"),
        (with_(bytes=[5, 6, -1]), "bytes must be at least 0, got -1"),
        (with_(decoded_bytes=[-5, 6, 1]), "decoded_bytes must be at least 0, got -5"),
        (with_(rows=[2**62, 2**62, 2**62]), "all shards together must have less than"),
        (with_(rows=[5, 5, 1]), "rows must be those of the row groups, got others for 'b.parquet'"),
        (with_(group_rows=[[4, 1], [-1, 7], []]), "group_rows must be at least 0, got -1"),
        (with_(schema=[0, 0, 5]), "a shard has a schema that is none of the 2 stored"),
        (with_(schema=[0, 0, -1]), "a shard has a schema that is none of the 2 stored"),
        (with_(rows=pa.array([5.0, 6.0, 0.0])), "its columns must be"),
        (lambda columns: columns.pop("bytes"), "its columns must be"),
        (lambda columns: columns.update(more=columns["rows"]), "its columns must be"),
        (with_(group_rows=groups.slice(0, 3)), None),
    ]
    for change, why in cases:
        (folder / "_catalog.arrow").write_bytes(good)
        rewritten(folder, change)
        if why is None:
            assert opened(folder).shards.listed_by is not None
            continue
        with pytest.warns(RuntimeWarning, match=r"'.*_catalog.arrow' is not used") as caught:
            dataset = Dataset.from_path("d", folder)
        assert len(caught) == 1
        assert why in str(caught[0].message)
        assert caught[0].filename == __file__
        assert dataset.shards == scanned.shards
        assert dataset.shards.listed_by is None


@pytest.mark.parametrize(
    "about", [{"kind": "lance"}, {"layouts": {}}, {"layouts": 5}, {"fields": 1}]
)
def test_a_catalogue_that_says_odd_things_is_passed_by(folder, scanned, about):
    build_catalog(folder, progress=False)
    rewritten(folder, lambda columns: None, about)
    with pytest.warns(RuntimeWarning, match="zephon index --catalog"):
        assert Dataset.from_path("d", folder).shards == scanned.shards


@pytest.mark.parametrize("content", ["empty", "text", "cut", "foreign"])
def test_a_damaged_file_or_one_of_something_else_is_passed_by(folder, scanned, content):
    path = folder / build_catalog(folder, progress=False)
    if content == "empty":
        path.write_bytes(b"")
    elif content == "text":
        path.write_text("catalogue\n" * 100)
    elif content == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        table = pa.table({"rows": [1]})
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.warns(RuntimeWarning, match="is not used, the index or the files are read instead"):
        assert Dataset.from_path("d", folder).shards == scanned.shards


def test_a_damaged_catalogue_gives_way_to_the_index(folder, scanned):
    path = folder / build_catalog(folder, progress=False)
    build_index("parquet", folder, output_path=folder / "index.json", progress=False)
    path.write_bytes(b"damaged")
    with pytest.warns(RuntimeWarning, match="is not used"):
        dataset = Dataset.from_path("d", folder)
    assert dataset.shards.listed_by.file == "index.json"
    assert dataset.shards == scanned.shards


def test_a_catalogue_of_a_newer_version_is_refused(folder):
    """Reading a million files instead would look like a hang, and the data are fine."""
    build_catalog(folder, progress=False)
    rewritten(folder, lambda columns: None, {"version": 2})
    with pytest.raises(DatasetError, match=r"must be of version 1 at most, got 2; use the newer"):
        Dataset.from_path("d", folder)


def test_columns_alone_make_a_catalogue(tmp_path):
    count = 100_000
    names = pa.array([f"part-{n:06}.parquet" for n in range(count)])
    rows = np.arange(count) % 7
    path = write_catalog(tmp_path, names, rows, rows * 10, schema=pa.schema([("t", pa.string())]))
    assert path == str(tmp_path / "_catalog.arrow")
    dataset = opened(tmp_path)
    assert dataset.counts().tolist() == rows.tolist()
    assert dataset.raw_bytes().sum() == 10 * rows.sum()
    assert dataset.group_counts().tolist() == [1] * count
    assert dataset.shards[99_999].name == "part-099999.parquet"
    assert [field.name for field in dataset.fields()] == ["t"]
    assert len(dataset.recorded_manifest()) == 4
    drawn = StaticMixtureWorkSource([dataset], {"d": 1.0}).lane_stream(3, 64).draw(1000, 5)
    assert (rows[drawn.shard] > drawn.row).all()


def test_columns_alone_with_row_groups(tmp_path):
    write_catalog(
        tmp_path / "x.arrow",
        ["a.parquet", "b.parquet"],
        [5, 0],
        [50, 9],
        group_counts=[2, 0],
        group_rows=[4, 1],
        decoded_bytes=[100, 0],
    )
    (tmp_path / "x.arrow").rename(tmp_path / "_catalog.arrow")
    dataset = opened(tmp_path)
    assert dataset.group_sizes().tolist() == [4, 1]
    assert dataset.mean_group_bytes() == 50


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ((["b.parquet", "a.parquet"], [1, 1], [1, 1]), "names must ascend bytewise"),
        ((["a.parquet", "b.parquet"], [1, -1], [1, 1]), "rows must be at least 0"),
        ((["a.parquet", "b.parquet"], [1], [1, 1]), "a value for each of 2 shards, got 1"),
        ((["a.parquet", "b.parquet"], [1, 1], [1]), "a value for each of 2 shards, got 1"),
        ((["a.parquet", "b/c.parquet"], [1, 1], [1, 1]), "must be without a path"),
        ((["a.parquet", None], [1, 1], [1, 1]), "a name is missing"),
        (([], [], []), "it lists no shard"),
        ((["a.parquet"], ["x"], [1]), "invalid literal"),
        ((["a.parquet"], [2**70], [1]), "too large"),
    ],
)
def test_columns_that_cannot_be_files_are_refused(tmp_path, columns, why):
    with pytest.raises(DatasetError, match=why):
        write_catalog(tmp_path, *columns)
    assert not list(tmp_path.iterdir())


def test_a_schema_must_be_one(tmp_path):
    with pytest.raises(DatasetError, match=r"schema must be a pyarrow.Schema, got 'text'; write"):
        write_catalog(tmp_path, ["a.parquet"], [1], [1], schema="text")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (5, "path must be a non-empty str without NUL, got 5"),
        ("folder", "path: '.*/_catalog.arrow' must be a file, or not be there, .* a directory"),
        ("nowhere/x", "path must lie in a directory that is there, got .*; make '.*/nowhere'"),
    ],
)
def test_a_catalogue_that_cannot_be_there(path, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder" / "_catalog.arrow").mkdir(parents=True)
    with pytest.raises(DatasetError, match=f"write_catalog: {why}"):
        write_catalog(path, ["a.parquet"], [1], [1])


@pytest.mark.parametrize(
    "groups", [([2, 1], [1, 1]), ([-1, 2], [1]), ([1, 1], [1, 2]), ([1], [1]), ([0, 2], [1, 1])]
)
def test_row_groups_that_cannot_be_those_of_the_files_are_refused(tmp_path, groups):
    with pytest.raises(DatasetError, match=r"row groups|rows must be those"):
        write_catalog(
            tmp_path, ["a.parquet", "b.parquet"], [1, 1], [9, 9],
            group_counts=groups[0], group_rows=groups[1],
        )  # fmt: skip


def test_rows_in_memory_have_a_manifest_too():
    dataset = Dataset.from_dict("d", {3: InMemoryShard([{"n": 1}])})
    assert dataset.recorded_manifest() == [["3", 1, dataset.raw_bytes()[0]]]
