import gzip
import pickle
from types import MappingProxyType

import pytest

from tests.written import pipeline
from zephon.errors import DatasetError, PlanError
from zephon.io import Dataset
from zephon.io.formats import FORMATS, register
from zephon.io.formats.jsonl import Jsonl
from zephon.io.formats.registering import FILE_FORMATS


class Words(Jsonl):
    kind = "words"
    suffixes = (".words",)
    further_suffixes = ()
    option_defaults = MappingProxyType({"upper": False})


@pytest.fixture(autouse=True)
def forgotten():
    yield
    for kind in ("words", "srt"):
        FORMATS.pop(kind, None)
        FILE_FORMATS.pop(kind, None)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.words").write_text('{"text": "one"}\n')
    return tmp_path


def test_a_format_is_known_once_it_is_registered(folder):
    with pytest.raises(DatasetError, match=r"Unknown format kind 'words'.*formats.register was"):
        Dataset.from_path("d", folder, fmt="words")
    register(Words())
    register(Words())
    dataset = Dataset.from_path("d", folder)
    assert (dataset.kind, dataset.total()) == ("words", 1)


def test_a_pickle_of_a_dataset_carries_its_format(folder):
    register(Words())
    dataset = Dataset.from_path("d", folder, format_options={"upper": True})
    text = pickle.dumps(dataset)
    del FORMATS["words"], FILE_FORMATS["words"]
    again = pickle.loads(text)
    assert again == dataset
    assert again.format.options == {"upper": True}
    assert FORMATS["words"].options == {}


def test_options_are_part_of_what_a_dataset_is(folder):
    register(Words())
    plain, upper = (
        Dataset.from_path("d", folder, fmt="words", format_options={"upper": said})
        for said in (False, True)
    )
    assert plain != upper
    assert plain == Dataset.from_path("d", folder)
    assert upper.recorded_manifest() == {
        "shards": plain.recorded_manifest(),
        "format_options": {"upper": True},
    }


@pytest.mark.parametrize(
    ("options", "fmt", "message"),
    [
        ({"uper": True}, "words", "fmt='words' has no 'uper'; did you mean 'upper'"),
        ({"upper": True}, "jsonl", "fmt='jsonl' must be left out, got .*; it has none"),
        ({"uper": True}, None, "must be those of one format, got .*words .upper."),
        ("upper", None, "must be a dict of options by name, got 'upper'"),
    ],
)
def test_options_that_no_format_has(folder, options, fmt, message):
    register(Words())
    with pytest.raises(DatasetError, match=message):
        Dataset.from_path("d", folder, fmt=fmt, format_options=options)


def test_options_of_another_format_than_the_files(folder):
    register(Words())
    (folder / "a.words").rename(folder / "a.jsonl")
    with pytest.raises(DatasetError, match="of the format of the files, jsonl"):
        Dataset.from_path("d", folder, format_options={"upper": True})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "two words"}, "kind must be a name of letters"),
        ({"kind": "parquet"}, "kind 'parquet' is that of Parquet"),
        ({"suffixes": ("words",)}, "lower case after a dot, got 'words'"),
        ({"suffixes": (".big.jsonl",)}, "files that end in '.big.jsonl' are jsonl"),
    ],
)
def test_formats_that_cannot_be(changes, message):
    with pytest.raises(PlanError, match=message):
        register(type("Odd", (Words,), changes)())


def test_what_is_no_format():
    with pytest.raises(PlanError, match=r"an instance .*got <class .*Words.*pass MyFormat\(\)"):
        register(Words)


SUBTITLES = "1\n00:01 --> 00:02\nHello\nyou\n\n\n2\n00:03 --> 00:04\nBye"


@pytest.mark.parametrize("runner", ["inline", "process"])
def test_the_readers_own_format_of_the_readme(tmp_path, runner):
    from tests import subtitles  # registers it

    register(subtitles.Subtitles())
    (tmp_path / "a.srt").write_text(SUBTITLES)
    (tmp_path / "b.srt.gz").write_bytes(gzip.compress(SUBTITLES.encode()))
    dataset = Dataset.from_path("films", tmp_path)
    rows = pipeline(dataset).options(runner=runner)
    assert [record.payload for record in rows] == 2 * [
        {"number": 1, "begin": "00:01", "end": "00:02", "text": "Hello\nyou"},
        {"number": 2, "begin": "00:03", "end": "00:04", "text": "Bye"},
    ]
