"""Content marks of files: what they see of a change, what they cost, what they miss."""

import hashlib
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.written import lines, parquet
from zephon.build_index import build_catalog, build_index
from zephon.errors import ShardError
from zephon.io import Dataset, marks
from zephon.io.marks import (
    WHOLE_BYTES,
    block_places,
    full_hash,
    is_hash,
    mark_of,
    mark_text,
    number_of,
)

END, BLOCK = 64 << 10, 4 << 10


def mark(path):
    with open(path, "rb") as file:
        return mark_of(file.fileno(), os.path.getsize(path))


def noise(size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8).tobytes()


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize("size", [1, 100, WHOLE_BYTES])
def test_any_byte_of_a_small_file_counts(tmp_path, size):
    content = noise(size)
    path = tmp_path / "a"
    path.write_bytes(content)
    first = mark(path)
    for place in {0, size // 3, size // 2, size - 1}:
        path.write_bytes(flipped(content, place))
        assert mark(path) != first
    path.write_bytes(content)
    os.utime(path, (1, 1))
    assert mark(path) == first


def test_the_ends_and_the_blocks_of_a_large_file_count(tmp_path):
    size = 3 * WHOLE_BYTES
    content, path = noise(size), tmp_path / "a"
    path.write_bytes(content)
    first = mark(path)
    seen = np.zeros(size, bool)
    seen[:END] = seen[-END:] = True
    places = block_places(size)
    assert len(places) == 16
    for place in places:
        seen[place : place + BLOCK] = True
    assert seen.sum() > 2 * END + 8 * BLOCK
    looked = [0, END - 1, size - END, size - 1, *places, *(place + BLOCK - 1 for place in places)]
    for place in looked:
        path.write_bytes(flipped(content, place))
        assert mark(path) != first, place
    missed = int(np.flatnonzero(~seen)[1000])
    path.write_bytes(flipped(content, missed))
    assert mark(path) == first  # a sample is no more than that; the full hash sees it
    with open(path, "rb", buffering=0) as file:
        assert full_hash(file) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_blocks_lie_elsewhere_in_a_file_of_another_size():
    assert block_places(10**9) != block_places(10**9 + 1)
    assert block_places(10**9) == sorted(block_places(10**9))
    for size in (WHOLE_BYTES + 1, 10**6, 10**13):
        assert END <= min(block_places(size)) <= max(block_places(size)) <= size - END - BLOCK


def table(seed, rows=40_000):
    return pa.table({"n": np.random.default_rng(seed).permutation(rows)})


def test_the_footer_of_a_large_parquet_file_counts(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(table(0), path, compression="none", use_dictionary=False)
    size, first = path.stat().st_size, mark(path)
    assert size > WHOLE_BYTES
    pq.write_table(table(1), path, compression="none", use_dictionary=False)
    assert path.stat().st_size == size
    assert mark(path) == first  # the same values in another order: nothing in the footer differs
    pq.write_table(pa.table({"n": table(1)["n"].to_numpy() + 1}), path, compression="none")
    content = path.read_bytes()
    path.write_bytes(content + bytes(max(0, size - len(content))))
    assert mark(path) != first


@pytest.mark.parametrize("columns", [1, 3000])
def test_all_of_a_footer_is_read_however_long_it_is(tmp_path, monkeypatch, columns):
    monkeypatch.setattr(marks, "WHOLE_BYTES", END)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({f"c{n}": np.arange(30_000 // columns) for n in range(columns)}), path)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    assert (length > END) == (columns == 3000)
    wanted = hashlib.blake2b(len(content).to_bytes(8, "little"), digest_size=6)
    wanted.update(content[-8 - length : -8])
    assert mark_text(mark(path)) == wanted.hexdigest()


def test_a_length_that_cannot_be_is_no_error(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(noise(2 * WHOLE_BYTES) + b"\xff\xff\xff\xffPAR1")
    assert mark(path) == mark(path)


def test_marks_are_written_and_read_as_hexadecimal():
    for number in (0, 5, (1 << 48) - 1):
        assert is_hash(mark_text(number), 12)
        assert number_of(mark_text(number)) == number
    for text in ("", "5", "G" * 12, "-00000000001", "0" * 13, "0 " * 6, "\u0660" * 12):
        assert not is_hash(text, 12)


KINDS = ("parquet", "jsonl", "jsonl.gz", "jsonl.zst")


def rewrite(kind, folder, file):
    """Put other rows in a file, in as many bytes, and give it its old time."""
    path = folder / file
    before = path.read_bytes(), path.stat()
    for number in range(100):  # compressed, not every text of a length takes as many bytes
        other = [{"text": f"other {number:02} {n}"} for n in range(4)]
        (parquet if kind == "parquet" else lines)(folder, file, other)
        if path.stat().st_size == len(before[0]) and path.read_bytes() != before[0]:
            os.utime(path, ns=(before[1].st_atime_ns, before[1].st_mtime_ns))
            return
    raise AssertionError("no rows of the same size")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["index", "catalogue"])
def test_a_file_that_was_rewritten_in_the_same_size_is_refused(tmp_path, read, text, kind, way):
    for number in range(2):
        rows = [{"text": f"first {number:02} {n}"} for n in range(4)]
        (parquet if kind == "parquet" else lines)(tmp_path, f"{number}.{kind}", rows)
    if way == "index":
        build_index(kind.split(".")[0], tmp_path, progress=False)
    else:
        build_catalog(tmp_path, progress=False)
    listed = Dataset.from_path("d", tmp_path)
    assert read(listed, text).values()[0] == "first 00 0"
    rewrite(kind, tmp_path, f"1.{kind}")
    reader = read(Dataset.from_path("d", tmp_path), text)
    assert reader.values([0, 3]) == ["first 00 0", "first 00 3"]
    file = {"index": "index.json", "catalogue": "_catalog.arrow"}[way]
    with pytest.raises(
        ShardError,
        match=rf"shard '1\.{kind}': the file must be as {file} says, but it holds something else "
        r"in as many bytes; make that anew with `zephon index",
    ):
        reader.values([4])


def test_a_file_is_marked_once_a_process(tmp_path, read, text, monkeypatch):
    for number in range(3):
        parquet(tmp_path, f"{number}.parquet", [{"text": f"{number} {n}"} for n in range(20)])
    build_index("parquet", tmp_path, progress=False)
    marked = []

    def counted(file, size):
        marked.append(size)
        return mark_of(file, size)

    monkeypatch.setattr("zephon.io.shard.mark_of", counted)
    dataset = Dataset.from_path("d", tmp_path)
    assert marked == []
    for _ in range(2):
        assert len(read(dataset, text).values()) == 60
    assert len(marked) == 3
