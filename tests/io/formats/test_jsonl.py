import gzip
import json
import os
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.written import PACK
from zephon.errors import DataError, ShardError
from zephon.io import Dataset
from zephon.io.fields import Column, Field
from zephon.io.formats import jsonl, line_blocks, line_groups

PACKED = {"a.jsonl": bytes} | {f"a.jsonl{suffix}": pack for suffix, pack in PACK.items()}


@pytest.fixture
def small_blocks(monkeypatch):
    """Make blocks of about 100 bytes, so that small files have many."""
    monkeypatch.setattr(
        jsonl,
        "index_lines",
        lambda stream, **rest: line_blocks.index_lines(stream, block_bytes=100, **rest),
    )


def dumped(*rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.mark.parametrize("name", PACKED)
def test_plain_and_compressed_files(tmp_path, read, text, name, small_blocks):
    rows = [{"text": f"{n} " * (n % 9), "n": n} for n in range(300)]
    (tmp_path / name).write_bytes(PACKED[name](dumped(*rows)))
    dataset = Dataset.from_path("d", tmp_path)
    assert dataset.kind == "jsonl"
    assert dataset.counts().tolist() == [300]
    assert len(dataset.shards[0].group_rows) > 50
    got = read(dataset, text, payload=True)
    assert got.values() == [row["text"] for row in rows]
    picks = np.random.default_rng(0).permutation(300)
    assert got.values(picks) == [rows[i]["text"] for i in picks]
    assert got.rows(picks) == [rows[i] for i in picks]


@pytest.mark.parametrize("name", list(PACKED)[1:])
def test_several_members_or_frames_are_one_text(tmp_path, read, text, name):
    whole = dumped(*({"text": str(n)} for n in range(50)))
    parts = [PACKED[name](whole[i : i + 70]) for i in range(0, len(whole), 70)]
    (tmp_path / name).write_bytes(b"".join(parts))
    assert read(Dataset.from_path("d", tmp_path), text).values() == [str(n) for n in range(50)]


def test_blank_lines_returns_and_a_missing_end(lines, read, text):
    path = lines(a__jsonl=b'{"text":"a"}\r\n\r\n  \n{"text":"b"}', b__jsonl=b'{"text":"one"}')
    dataset = Dataset.from_path("d", path)
    assert dataset.counts().tolist() == [2, 1]
    assert read(dataset, text).values() == ["a", "b", "one"]


def test_a_byte_order_mark_at_the_front_of_every_file(lines, read, text):
    mark = b"\xef\xbb\xbf"
    path = lines(
        a__jsonl=mark + b'{"text":"a"}\n',
        b__jsonl=mark + b'{"text":"b"}\r\n{"text":null}\r\n',
        c__jsonl=mark,
    )
    rows = read(Dataset.from_path("d", path), text)
    assert rows.dataset.counts().tolist() == [1, 2, 0]
    assert rows.values([0, 1]) == ["a", "b"]
    with pytest.raises(DataError, match=r"row 1 \(line 2, byte 17\)"):
        rows.take([2])


def test_a_bad_line_spoils_its_own_row_only(lines, read, text):
    path = lines(a__jsonl=b'{"text":"a"}\n\n{"text":"b\n{"text":"c"}\n{"text":"d"}\n')
    rows = read(Dataset.from_path("d", path), text, payload=True)
    assert rows.values([0, 2, 3]) == ["a", "c", "d"]
    assert rows.rows([3]) == [{"text": "d"}]
    with pytest.raises(
        DataError,
        match=r"""dataset 'd', shard 'a.jsonl', row 1 \(line 3, byte 14\): a line must be one """
        r"""JSON object, this one is not \(Unterminated string starting at: character 8\); the """
        r"""line begins '{"text":"b'; mend or remove the line""",
    ):
        rows.take([0, 1])


def test_a_bad_line_far_into_a_file_is_located_by_blocks(lines, read, text, small_blocks):
    good = b'{"text":"good"}\n'
    path = lines(a__jsonl=good * 2001 + b'{"text":[1]}\n' + good * 50)
    rows = read(Dataset.from_path("d", path), text)
    assert rows.values([2000, 2002]) == ["good", "good"]
    with pytest.raises(
        DataError,
        match=r"row 2001 \(line 2002, byte 32016\): field 'text' must be text, got a list",
    ):
        rows.take(range(1990, 2010))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text":null}', "field 'text' must be text, got null"),
        (b'{"txt":"a"}', "no field 'text'; the row has txt"),
        (b'{"text":["a"]}', "field 'text' must be text, got a list"),
        (b'{"text":{"a":1}}', "field 'text' must be text, got an object"),
        (b'{"text":true}', "field 'text' must be text, got a boolean"),
        (b'{"text":3.0}', "field 'text' must be text, got a number"),
        (b'{"text":"a\\ud800"}', r"must be valid UTF-8, got '\\ud800' at character 1"),
        (b'{"text":"a\xff"}', r"must be valid UTF-8, got '\\udcff' at character 1"),
        (b'{"text":"a"} zzz', r"\(Extra data: character 13\)"),
        (b'"str"', "a row must be an object with fields, got text"),
        (b"3", "a row must be an object with fields, got a number"),
        (b"null", "a row must be an object with fields, got null"),
        (b'{"text":NaN}', "field 'text' must be text, got a number"),
        (b"\xff\xff", "one JSON object"),
    ],
)
def test_bad_rows_say_what_came(lines, read, text, line, message):
    path = lines(a__jsonl=b'{"text":"fine"}\n' + line + b'\n{"text":"too"}\n')
    rows = read(Dataset.from_path("d", path), text)
    assert rows.values([0, 2]) == ["fine", "too"]
    with pytest.raises(DataError, match=message):
        rows.take([1])


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"text":"a","text":"z"}', "z"),
        (b'{"text":null,"text":"z"}', "z"),
        (b'{"x":NaN,"text":"a"}', "a"),
        (b'{"x":"\\ud800","text":"a"}', "a"),
        (b'{"x":"\xff","text":"a"}', "a"),
        (b'{"text":"null"}', "null"),
        (b'{"text":""}', ""),
        (b'{"text":"   "}', "   "),
        (b'{"text":"\\u0000"}', "\0"),
        (b'{"text":"2024-01-01T00:00:00Z"}', "2024-01-01T00:00:00Z"),
        (b'{"text":"\\ud83d\\ude00"}', "😀"),
        (b'  {"text" : "a"}  ', "a"),
    ],
)
def test_odd_rows_that_are_fine(lines, read, text, line, value):
    rows = read(Dataset.from_path("d", lines(a__jsonl=line)), text)
    assert rows.values() == [value]


@pytest.mark.parametrize(
    ("content", "rows", "message"),
    [
        (b'[{"text":"a"},{"text":"b"}]', 1, "this looks like a JSON array, not JSON lines"),
        (b'[\n  {"text":"a"},\n  {"text":"b"}\n]\n', 4, "this looks like a JSON array"),
        (b'{\n "text":"a"\n}\n', 3, "this looks like indented JSON, not JSON lines"),
    ],
)
def test_other_json_is_recognised_from_any_of_its_lines(lines, read, text, content, rows, message):
    dataset = Dataset.from_path("d", lines(a__jsonl=content))
    assert dataset.total() == rows
    for row in range(rows):
        if content[:1] == b"[" and rows > 1 and row == 2:
            continue  # the last object of the array has no comma: a row by itself
        with pytest.raises(DataError, match=message):
            read(dataset, text).take([row])


def test_types_are_not_fixed_by_the_first_rows(lines, read, text):
    nulls, late = dumped(*[{"text": None}] * 150, {"text": "late"}), dumped({"text": ["m"]})
    path = lines(a__jsonl=nulls, b__jsonl=late)
    dataset = Dataset.from_path("d", path)
    assert read(dataset, text).values([150]) == ["late"]
    assert read(dataset, payload=True).rows([151, 0]) == [{"text": ["m"]}, {"text": None}]


def test_absent_is_not_null_in_whole_rows(lines, read):
    first, second = {"p": {"a": {"t": "int"}}}, {"p": {"b": None}, "x": 1}
    rows = read(Dataset.from_path("d", lines(a__jsonl=dumped(first, second))), payload=True)
    assert rows.rows([1, 0]) == [second, first]
    assert rows.take([1, 0]).columns.num_rows == 2


def test_whole_rows_may_be_any_json(lines, read):
    path = lines(a__jsonl=b'[1]\nnull\n3\n{"a":1,"a":2}\n{"x":NaN}\n')
    rows = read(Dataset.from_path("d", path), payload=True).rows()
    assert rows[:4] == [[1], None, 3, {"a": 2}]
    assert rows[4]["x"] != rows[4]["x"]


def test_a_whole_row_that_is_bad_is_located_when_it_is_taken(lines, read):
    path = lines(a__jsonl=b'{"a":1}\n{"a":\n{"a":"\xff"}\n')
    reading = read(Dataset.from_path("d", path), payload=True)
    with pytest.raises(DataError, match=r"shard 'a.jsonl', row 1 \(line 2, byte 8\): a line must"):
        reading.take()


def test_some_bad_rows_are_located_as_all_are(lines, read, small_blocks):
    good = b'{"a":"some good text"}\n'
    path = lines(a__jsonl=b"\n" + good * 40 + b' \n{"a":\n{"a":"\xff"}\n' + good * 40)
    dataset = Dataset.from_path("d", path)
    group = int(np.searchsorted(np.cumsum(dataset.shards[0].group_rows), 40, side="right"))
    source = line_groups.JsonlGroups("d", dataset.shards, (), payload=True).read(0, group).payload
    first = 40 - int(dataset.shards[0].group_rows[:group].sum())
    assert first > 0  # the block begins with other rows
    some, places = source.some(np.array([first + 1, first, 0, first]))
    fewer, fewer_places = some.some(places[:2])
    assert some.row(places[2]) == {"a": "some good text"}
    for turn, row in enumerate([first + 1, first]):
        messages = set()
        for rows, place in ((source, row), (some, places[turn]), (fewer, fewer_places[turn])):
            with pytest.raises(DataError) as caught:
                rows.row(place)
            messages.add(str(caught.value))
        assert len(messages) == 1
    assert "row 40 (line 43, byte 923): a line must be one JSON object" in messages.pop()


def test_few_whole_rows_keep_their_own_lines_only(lines, read):
    line = b'{"a":"' + b"x" * 1000 + b'"}\n'
    rows = read(Dataset.from_path("d", lines(a__jsonl=line * 500)), payload=True)
    payload = rows.take([400, 7, 400]).payload
    assert [payload.row(i) for i in range(3)] == [{"a": "x" * 1000}] * 3
    (source,) = payload._sources
    assert len(source._text) == 2 * (len(line) - 1)


def test_whole_rows_are_fresh(lines, read):
    rows = read(Dataset.from_path("d", lines(a__jsonl=dumped({"a": [1]}))), payload=True)
    payload = rows.take().payload
    payload.row(0)["a"].append(2)
    assert payload.row(0) == {"a": [1]}


def test_dotted_fields(lines, read):
    path = lines(
        a__jsonl=dumped({"meta": {"text": "in"}}, {"meta.text": "top", "meta": {"text": "in"}})
    )
    assert read(Dataset.from_path("d", path), Column("meta.text", "text")).values() == ["in", "top"]


def test_tokens(lines, read, tokens):
    path = lines(a__jsonl=dumped({"ids": [1, 2]}, {"ids": []}, {"ids": [2**31]}, {"ids": [True]}))
    rows = read(Dataset.from_path("d", path), tokens)
    assert rows.values([1, 0]) == [[], [1, 2]]
    for row, came in ((2, "2147483648"), (3, "a list that holds a boolean")):
        with pytest.raises(DataError, match=rf"row {row} .*'ids' must be a list.*got {came}"):
            rows.take([row])


def test_fields_are_those_of_the_first_rows(lines):
    rows = [{"text": "a", "ids": [1]}] * 40 + [{"late": 1}] * 24 + [{"later": 1}]
    dataset = Dataset.from_path("d", lines(a__jsonl=b"\n", b__jsonl=b"{bad\n" + dumped(*rows)))
    assert dataset.fields() == (
        Field("text", "text"), Field("ids", "tokens"), Field("late", "scalar"),
    )  # fmt: skip
    assert not dataset.fields_complete


def test_empty_files(lines, read, text):
    path = lines(a__jsonl=b"", b__jsonl=b'{"text":"x"}\n{"text":"y"}\n', c__jsonl=b"\n\n")
    dataset = Dataset.from_path("d", path)
    assert dataset.counts().tolist() == [0, 2, 0]
    assert read(dataset, text).values([1, 0]) == ["y", "x"]
    nothing = Dataset.from_path("d", lines(b__jsonl=b" "))
    assert (nothing.total(), nothing.fields()) == (0, ())
    assert nothing.mean_row_bytes() == 0


@pytest.mark.parametrize("name", list(PACKED)[1:])
@pytest.mark.parametrize("keep", [0, 40, -4])
def test_a_cut_off_compressed_file_names_itself(tmp_path, name, keep):
    whole = PACKED[name](dumped(*({"n": n} for n in range(2000))))
    (tmp_path / name).write_bytes(whole[:keep])
    with pytest.raises(ShardError, match=rf"shard '{name}': .* it is damaged or cut off: "):
        Dataset.from_path("d", tmp_path)


@pytest.mark.parametrize("name", list(PACKED)[1:])
def test_a_compressed_file_that_is_none(tmp_path, name):
    (tmp_path / name).write_bytes(b'{"text":"a"}\n')
    with pytest.raises(ShardError, match=rf"shard '{name}': .* it is damaged"):
        Dataset.from_path("d", tmp_path)


def test_utf16_is_refused(lines):
    with pytest.raises(ShardError, match=r"it is not UTF-8: it begins with the mark of UTF-16"):
        Dataset.from_path("d", lines(a__jsonl='{"text":"a"}\n'.encode("utf-16")))


def test_a_file_rewritten_after_counting_is_refused(lines, read, text):
    path = lines(a__jsonl=b'{"text":"aaa"}\n{"text":"b"}\n')
    dataset = Dataset.from_path("d", path)
    os.utime(path / "a.jsonl", ns=(1, 1))
    with pytest.raises(ShardError, match=r"shard 'a.jsonl': the file must stay as it was"):
        read(dataset, text).take()
    (path / "a.jsonl").unlink()
    with pytest.raises(ShardError, match=r"it cannot be read: .*No such file"):
        read(dataset, text).take()


def test_rows_that_no_longer_agree_with_the_index_are_refused(lines, read, text):
    path = lines(a__jsonl=b'{"text":"aaa"}\n{"text":"b"}\n')
    dataset = Dataset.from_path("d", path)
    status = (path / "a.jsonl").stat()
    (path / "a.jsonl").write_bytes(b'{"text":"aaa"}     {"text":"b"}\n'[:28])
    os.utime(path / "a.jsonl", ns=(1, status.st_mtime_ns))
    with pytest.raises(ShardError, match=r"block 0: 2 rows were counted, but 1 read"):
        read(dataset, text).take()


def test_many_compressed_files_from_many_threads(tmp_path, read, text, small_blocks):
    for number in range(12):
        rows = dumped(*({"text": f"{number}-{n}"} for n in range(100)))
        (tmp_path / f"{number:02d}.jsonl.gz").write_bytes(gzip.compress(rows))
    rows = read(Dataset.from_path("d", tmp_path), text, limit_bytes=2000)
    want = [f"{number}-{n}" for number in range(12) for n in range(100)]
    wrong = []

    def work(seed):
        start = seed * 300
        for first in range(start, start + 300, 10):
            if rows.values(range(first, first + 10)) != want[first : first + 10]:
                wrong.append(first)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong
    rows.reader._groups.close()


ROWS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"text": st.text()}).map(lambda row: json.dumps(row).encode()),
        st.fixed_dictionaries({"text": st.text(), "x": st.floats()}).map(
            lambda row: json.dumps(row, ensure_ascii=False).encode()
        ),
        st.sampled_from([b"", b" ", b"\r", b"{bad", b'{"text":1}', b"[]", b'{"text":"x"}\r']),
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(ROWS, ROWS, st.data())
def test_any_request_gives_what_a_naive_reader_gives(
    tmp_path, read, text, small_blocks, first, second, data
):
    for name, content in (("a.jsonl", first), ("b.jsonl", second)):
        (tmp_path / name).write_bytes(b"\n".join(content))
    naive = []
    for line in [*first, *second]:
        if line.strip():
            try:
                row = json.loads(line)
                naive.append(row["text"] if isinstance(row["text"], str) else None)
            except (ValueError, TypeError):
                naive.append(None)
    rows = read(Dataset.from_path("d", tmp_path), text)
    assert rows.dataset.total() == len(naive)
    picks = data.draw(st.lists(st.integers(0, len(naive) - 1)) if naive else st.just([]))
    if any(naive[pick] is None for pick in picks):
        bad = next(pick for pick in picks if naive[pick] is None)
        shard, row = rows.addresses[bad]
        with pytest.raises(DataError, match=rf"shard '{'ab'[shard]}.jsonl', row {row} "):
            rows.take(picks)
    else:
        assert rows.values(picks) == [naive[pick] for pick in picks]


WITHOUT = {
    "top": (Column("ids", "tokens", without=("mask", "labels")),),
    "nested": (Column("in.ids", "tokens", without=("mask",)),),
    "shared": (Column("ids", "tokens", without=("mask",)), Column("mask", "int64", "empty")),
    "escaped": (Column("ids", "tokens", without=('a"b', "mask")),),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_rows_that_must_be_without_a_field(tmp_path, read, case):
    good = {"ids": [1, 2], "in": {"ids": [3]}}
    odd = [{**good, "mask": None}, {**good, "mask": [1]}, {**good, "other": {"mask": 1}}]
    (tmp_path / "a.jsonl").write_bytes(dumped(good, *odd, good))
    rows = read(Dataset.from_path("d", tmp_path), *WITHOUT[case])
    wanted = [3] if case == "nested" else [1, 2]
    good_rows = [0, 3, 4] if case == "shared" else [0, 1, 3, 4]  # of a mask itself, null is bad
    taken = rows.take(good_rows).columns.column(0)
    assert taken.to_pylist() == [wanted] * len(good_rows)
    with pytest.raises(DataError, match=r"row 2 .*field 'mask' must be in the first 64 rows"):
        rows.take([2])
