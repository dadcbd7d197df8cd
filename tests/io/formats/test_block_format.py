import gzip
import io

import pytest

from tests.written import pipeline
from zephon.build_index import build_catalog, build_index
from zephon.errors import DataError, ShardError
from zephon.io import Dataset
from zephon.io.fields import Column
from zephon.io.formats import FORMATS, RecordFormat, block_format, register
from zephon.io.formats.registering import FILE_FORMATS


class Notes(RecordFormat):
    """Records of lines that end in a line with a dot; ``upper`` is an option of words."""

    kind = "notes"
    suffixes = (".notes", ".notes.gz")
    option_defaults = {"upper": False}  # noqa: RUF012 - as a user writes it

    def records(self, file):
        start = place = 0
        for line in file:
            place += len(line)
            if line == b".\n":
                yield start, place
                start = place
        if place > start:
            raise ValueError(f"the record at byte {start} must end in a dot")

    def row(self, record):
        text = record.decode().removesuffix(".\n")
        if text.startswith("bad"):
            raise ValueError("it says so")
        return {"text": text.upper() if self.options["upper"] else text, "ids": [len(text)]}

    options = option_defaults


@pytest.fixture(autouse=True)
def known():
    register(Notes())
    yield
    FORMATS.pop("notes")
    FILE_FORMATS.pop("notes")


def notes(*texts):
    return "".join(f"{text}\n.\n" for text in texts).encode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(block_format, "BLOCK_BYTES", 16)
    (tmp_path / "a.notes").write_bytes(notes("one", "two", "bad luck", "four", "five"))
    (tmp_path / "b.notes.gz").write_bytes(gzip.compress(notes("six", "seven", "eight and more")))
    return tmp_path


def test_rows_columns_and_types(folder, read):
    dataset = Dataset.from_path("d", folder)
    assert (dataset.kind, dataset.counts().tolist()) == ("notes", [5, 3])
    assert dataset.group_counts().tolist() == [3, 2]
    assert [(field.name, field.kind) for field in dataset.fields()] == [
        ("text", "text"), ("ids", "tokens"),
    ]  # fmt: skip
    good = [0, 1, 3, 4, 5, 6, 7]
    texts = ["one\n", "two\n", "four\n", "five\n", "six\n", "seven\n", "eight and more\n"]
    assert read(dataset, Column("text", "text")).values(good) == texts
    assert read(dataset, Column("ids", "tokens")).values(good) == [[len(text)] for text in texts]
    rows = read(dataset, payload=True).rows(good)
    assert rows == [{"text": text, "ids": [len(text)]} for text in texts]


def test_a_bad_record_is_one_bad_row_and_says_where_it_lies(folder, read):
    rows = read(Dataset.from_path("d", folder), Column("text", "text"), payload=True)
    with pytest.raises(
        DataError,
        match=r"shard 'a.notes', row 2 \(byte 12\): a record raised ValueError: it says so; it "
        r"begins 'bad luck\\n.\\n'; mend or remove the row",
    ):
        rows.take([2])


def test_what_is_cut_off_is_refused_when_it_is_counted(folder):
    (folder / "c.notes").write_bytes(notes("one") + b"two")
    with pytest.raises(ShardError, match=r"'c.notes'.*'notes'.*record at byte 6 must end in a dot"):
        Dataset.from_path("d", folder)


def test_an_index_and_a_catalogue_tell_of_blocks_and_types(folder):
    (folder / "a.notes").write_bytes(notes("one", "two", "three"))
    scanned = Dataset.from_path("d", folder)
    assert "zephon index" in scanned.type_conflict("text")
    build_index("notes", folder, progress=False)
    indexed = Dataset.from_path("d", folder)
    build_catalog(folder, progress=False)
    catalogued = Dataset.from_path("d", folder)
    for dataset in (indexed, catalogued):
        assert dataset == scanned
        assert dataset.shards.listed_by is not None
        assert [str(field.type) for field in dataset.fields()] == [
            "large_string", "large_list<item: int64>",
        ]  # fmt: skip
        rows = [record.payload["text"] for record in pipeline(dataset)]
        assert rows == [record.payload["text"] for record in pipeline(scanned)]


def test_options_reach_rows_and_an_index_of_others_is_not_used(folder):
    (folder / "a.notes").write_bytes(notes("one", "two"))
    build_index("notes", folder, progress=False)
    with pytest.warns(RuntimeWarning, match=r"made with format_options={}, not {'upper': True}"):
        dataset = Dataset.from_path("d", folder, format_options={"upper": True})
    assert dataset.shards.listed_by is None
    assert next(iter(pipeline(dataset))).payload["text"] == "ONE\n"


def test_a_file_that_changed_is_noticed(folder, read):
    rows = read(Dataset.from_path("d", folder), Column("text", "text"))
    (folder / "a.notes").write_bytes(notes("another", "thing"))
    with pytest.raises(ShardError, match=r"shard 'a.notes': the file must stay as it was"):
        rows.values([0])


def test_rows_are_fresh_copies(folder, read):
    rows = read(Dataset.from_path("d", folder), payload=True)
    payload = rows.take([0]).payload
    payload.row(0)["ids"].append(9)
    assert payload.row(0)["ids"] == [4]


def test_a_resumed_run_goes_on_where_it_was(folder):
    (folder / "a.notes").write_bytes(notes(*(f"n{number}" for number in range(20))))
    dataset = Dataset.from_path("d", folder)
    whole = [record.payload["text"] for record in pipeline(dataset)]
    running = pipeline(dataset)
    records = iter(running)
    first = [next(records).payload["text"] for _ in range(7)]
    state = running.checkpoint()
    again = pipeline(dataset)
    again.restore(state)
    assert first + [record.payload["text"] for record in again] == whole


def test_records_of_a_block_are_found_from_its_first_one():
    text = notes("one", "two")
    assert list(Notes().records(io.BytesIO(text[6:]))) == [(0, 6)]
