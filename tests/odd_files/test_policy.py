"""Rows that are bad, and what datasets may say of them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from tests.odd_files.table import odd
from tests.written import lines, pipeline, raw
from zephon import Dataset
from zephon.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore:dataset 'words'")

GOOD = ['{"text": "one"}', '{"text": "two"}']


def job(folder, tokenizer_file, *, quarantine=None, **policy):
    dataset = Dataset.from_path("words", folder, **policy)
    made = pipeline(dataset).tokenize(
        tokenizer_id=tokenizer_file, field="text", special_tokens="none"
    )
    return made.options(quarantine=None if quarantine is None else str(quarantine))


def rows_of(job):
    """Give the row numbers that are delivered, and what is counted of the others."""
    rows = [record.meta.sample_id[2] for record in job]
    words = ("skipped", "quarantined", "null")
    found = job.accounting()["words"]
    return rows, {word: found[f"rows_{word}"] for word in words if found[f"rows_{word}"]}


@odd(
    "Bad rows",
    "a line that is not JSON",
    "the run ends there, with dataset, shard, row, line, byte and an excerpt",
)
def test_a_broken_line_raises(tmp_path, tokenizer_file):
    lines(tmp_path, "a.jsonl", [GOOD[0], '{"text": "b', GOOD[1]])
    found = []
    with pytest.raises(DataError) as told:
        found += [record.meta.sample_id[2] for record in job(tmp_path, tokenizer_file)]
    for part in (
        "dataset 'words', shard 'a.jsonl', row 1 (line 2, byte 16)",
        """the line begins '{"text": "b'""",
        "mend or remove the line, or pass on_error='skip' or 'quarantine' to its dataset",
    ):
        assert part in str(told.value)


@odd(
    "Bad rows",
    'bad lines, with `on_error="skip"`',
    "they are left out and counted; all others come, in the places that they would have",
)
def test_a_broken_line_is_skipped(tmp_path, tokenizer_file):
    lines(tmp_path, "a.jsonl", [GOOD[0], '{"text": "b', "5", GOOD[1]])
    skipped = rows_of(job(tmp_path, tokenizer_file, on_error="skip"))
    assert skipped == ([0, 3], {"skipped": 2})


@odd(
    "Bad rows",
    'bad lines, with `on_error="quarantine"`',
    "each is also written, once, to a file of its own with address and reason",
)
def test_a_broken_line_is_written_down(tmp_path, tokenizer_file):
    lines(tmp_path / "data", "a.jsonl", [GOOD[0], '{"text": "b', b'{"text": "\xff"}'])
    where = {"quarantine": tmp_path / "bad", "on_error": "quarantine"}
    for _ in range(2):
        assert rows_of(job(tmp_path / "data", tokenizer_file, **where)) == ([0], {"quarantined": 2})
    files = sorted((tmp_path / "bad").rglob("*.jsonl"))
    assert [path.name for path in files] == ["1.jsonl", "2.jsonl"]
    one, other = (json.loads(path.read_text()) for path in files)
    assert (one["shard"], one["row"], one["line"], one["byte"]) == ("a.jsonl", 1, 2, 16)
    assert one["raw"] == '{"text": "b' and "must be one JSON object" in one["reason"]
    assert other["raw_base64"] == "eyJ0ZXh0IjogIv8ifQ=="


@odd(
    "Bad rows",
    "half of a surrogate pair (`\\ud800`), or bytes that are not UTF-8, in a field that is read",
    "the row is bad; a whole pair is one character",
)
def test_half_of_a_pair(tmp_path, tokenizer_file):
    rows = [r'{"text": "a\ud800"}', r'{"text": "\ud83d\ude00"}', b'{"text": "\xff"}']
    lines(tmp_path, "a.jsonl", rows)
    assert rows_of(job(tmp_path, tokenizer_file, on_error="skip")) == ([1], {"skipped": 2})
    tokens = [r.payload["input_ids"] for r in job(tmp_path, tokenizer_file, on_error="skip")]
    lines(tmp_path / "whole", "a.jsonl", [{"text": "\U0001f600"}])
    assert tokens == [r.payload["input_ids"] for r in job(tmp_path / "whole", tokenizer_file)]


@odd(
    "Bad rows",
    "null for the text, or no such field",
    'a bad row; `null_text="drop"` leaves it out and counts it, `"empty"` reads it as no text',
)
@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ({"on_error": "skip"}, ([0, 3, 4, 5], {"skipped": 2})),
        ({"null_text": "drop"}, ([0, 3, 4, 5], {"null": 2})),
        ({"null_text": "empty"}, ([0, 1, 2, 3, 4, 5], {})),
    ],
)
def test_null_for_text(tmp_path, tokenizer_file, policy, wanted):
    texts = ['{"text": ""}', '{"text": null}', '{"n": 1}', '{"text": "null"}', '{"text": "  "}']
    lines(tmp_path, "a.jsonl", [*texts, r'{"text": "\u0000"}'])
    assert rows_of(job(tmp_path, tokenizer_file, **policy)) == wanted
    with pytest.raises(DataError, match=r"row 1 .*got null, which null_text='drop' or 'empty' tak"):
        list(job(tmp_path, tokenizer_file))


@odd("Bad rows", "the word `null` as its text", "it is a word")
def test_the_word_null(tmp_path, tokenizer_file):
    lines(tmp_path, "a.jsonl", ['{"text": "null"}'])
    tokens = [r.payload["input_ids"] for r in job(tmp_path, tokenizer_file, null_text="drop")]
    assert len(tokens) == 1 and len(tokens[0]) > 0


@odd(
    "Bad rows",
    "a row for which a function of mine raises",
    "a bad row like others: the run ends and names it, or it is skipped",
)
def test_a_function_raises(tmp_path, tokenizer_file):
    def length(row):
        return {"text": row["text"], "n": len(row["words"])}

    lines(tmp_path, "a.jsonl", [{"text": "a", "words": [1]}, {"text": "b"}])
    for policy in ({}, {"on_error": "skip"}):
        made = pipeline(Dataset.from_path("words", tmp_path, **policy)).map_transform(length)
        if policy:
            assert rows_of(made) == ([0], {"skipped": 1})
        else:
            with pytest.raises(Exception, match=r"KeyError: 'words' on .*row 1; .*on_error='skip'"):
                list(made)


@odd(
    "Bad rows",
    "text of Parquet, Arrow, CSV or text files that is not UTF-8, where whole rows are delivered",
    "that row is bad, as others are",
)
@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "text"])
def test_whole_rows_with_text_that_is_none(tmp_path, kind):
    texts = pa.array([b"one", b"\xff\xfe", b"three"]).cast(pa.large_binary())
    table = pa.table({"text": texts.view(pa.large_string())})
    if kind == "parquet":
        pq.write_table(table, tmp_path / "a.parquet")
    elif kind == "arrow":
        feather.write_feather(table, str(tmp_path / "a.arrow"))
    else:
        raw(tmp_path, "a.csv" if kind == "csv" else "a.txt", b"text\none\n\xff\xfe\nthree\n")
    options = {"separator": "\n"} if kind == "text" else None
    bad = 2 if kind == "text" else 1  # its first line is a row
    wanted = [row for row in range(bad + 2) if row != bad]

    def opened(on_error):
        return Dataset.from_path(
            "words", tmp_path, fmt=kind, format_options=options, on_error=on_error
        )

    assert rows_of(pipeline(opened("skip"))) == (wanted, {"skipped": 1})
    with pytest.raises(
        DataError, match=rf"row {bad}: field 'text' must be UTF-8 .*on_error='skip'"
    ):
        list(pipeline(opened("raise")))
