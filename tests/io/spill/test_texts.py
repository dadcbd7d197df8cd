"""Text of compressed files that is kept where they were read from their front again."""

import io
import json
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.written import PACK
from zephon.debug import DatasetInspector
from zephon.errors import ShardError
from zephon.io import Dataset
from zephon.io.fields import Column
from zephon.io.formats import forward_file
from zephon.io.formats.compressed_text import COMPRESSED, open_text
from zephon.io.formats.forward_file import ForwardFile, PassedBlocks
from zephon.io.formats.line_blocks import index_lines
from zephon.io.group_cache import GroupCache
from zephon.io.reader import RowReader
from zephon.io.spill.spill import Spill, SpillSettings
from zephon.io.spill.texts import SpilledTexts

ROWS = [{"n": n, "text": "y" * (n % 400)} for n in range(3000)]
TEXTS, NUMBERS = Column("text", "text"), Column("n", "any", values=pa.int64())
TEXT = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


@pytest.fixture(params=COMPRESSED)
def path(request, tmp_path):
    found = tmp_path / "data" / f"a.jsonl{request.param}"
    found.parent.mkdir()
    found.write_bytes(PACK[request.param](TEXT))
    return found


@pytest.fixture
def texts(tmp_path):
    return SpilledTexts(Spill(SpillSettings(tmp_path / "spill", 1 << 30, 0)))


@pytest.fixture
def starts(monkeypatch):
    """Counts how often a file is read from its front."""
    seen = []
    monkeypatch.setattr(
        forward_file, "open_text", lambda path: seen.append(path) or open_text(path)
    )
    return seen


@pytest.fixture
def make(path, texts):
    """Make what reads blocks of about 4 KB, of which memory holds two."""
    blocks = index_lines(io.BytesIO(TEXT), block_bytes=4096)
    shard = replace(Dataset.from_path("d", path.parent).shards[0], layout=blocks)
    wanted = [TEXT[a:b] for a, b in zip(blocks.offsets, blocks.offsets[1:], strict=False)]
    return lambda: ForwardFile("d", shard, blocks.offsets, PassedBlocks(8192), texts), wanted


def test_random_order_reads_a_file_twice_and_others_not_at_all(make, starts):
    ours, wanted = make
    file = ours()
    for number in np.random.default_rng(3).permutation(len(wanted)):
        assert file.block(number) == wanted[number]
    assert len(starts) == 2
    other = ours()  # as another process would
    for number in np.random.default_rng(4).permutation(len(wanted))[:40]:
        assert other.block(number) == wanted[number]
    assert len(starts) == 2


def test_reading_forward_keeps_nothing(make, tmp_path):
    ours, wanted = make
    file = ours()
    assert [file.block(number) for number in range(len(wanted))] == wanted
    assert not (tmp_path / "spill").exists()


def test_what_was_kept_and_is_damaged_is_read_again(make, starts, tmp_path):
    ours, wanted = make
    file = ours()
    for number in (50, 0, len(wanted) - 1):
        file.block(number)
    kept = sorted((tmp_path / "spill").glob("*-group"))
    assert len(kept) == len(wanted)
    for number, one in enumerate(kept):
        if number % 2:
            one.write_bytes(one.read_bytes()[:-100])
        else:
            one.unlink()
    other = ours()
    for number in (70, 3, 11, 2):
        assert other.block(number) == wanted[number]


def test_a_file_that_was_written_again_is_never_answered_from_what_was_kept(make, path, texts):
    ours, wanted = make
    file = ours()
    for number in (50, 0, len(wanted) - 1):
        file.block(number)
    assert ours().block(7) == wanted[7]
    status = path.stat()
    path.write_bytes(PACK[path.suffix](TEXT.replace(b"y", b"z")))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    if path.stat().st_size == status.st_size:  # same size, same time: only the inode's change tells
        assert ours().block(7) != wanted[7]
    else:
        with pytest.raises(ShardError, match="written to since"):
            ours().block(7)


def test_a_reader_of_any_columns_finds_the_text_that_another_kept(path, starts, tmp_path):
    dataset = Dataset.from_path("d", path.parent)
    order = np.random.default_rng(5).permutation(len(ROWS))
    spill = Spill(SpillSettings(tmp_path / "spill", 1 << 30, 0))
    for wanted in ({"columns": (TEXTS,)}, {"columns": (), "frame": (NUMBERS,)}):
        reader = RowReader(dataset, **wanted, payload=True, cache=GroupCache(1, spill))
        taken = reader.take(np.zeros(len(order), np.int64), order)
        found, name = (taken.frame, "n") if "frame" in wanted else (taken.columns, "text")
        assert found.column(0).to_pylist() == [ROWS[row][name] for row in order]
        assert [taken.payload.row(at) for at in range(5)] == [ROWS[row] for row in order[:5]]


@pytest.mark.parametrize("enabled", [None, False])
def test_an_inspector_reads_compressed_rows_anywhere(path, tmp_path, monkeypatch, enabled, starts):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("zephon.io.formats.forward_files.PASSED_BYTES", 1)
    dataset = Dataset.from_path("d", path.parent)
    options = {"parquet": {"rg_cache": {"enabled": enabled}}}
    with DatasetInspector(dataset, io_options=options) as inspector:
        for row in (2999, 0, 1500):
            assert inspector.read(0, row) == ROWS[row]


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_rows_of_other_formats_are_read_anywhere_too(tmp_path, monkeypatch, suffix, starts):
    monkeypatch.setattr("zephon.io.formats.forward_files.PASSED_BYTES", 1)
    rows = [{"n": str(n), "text": "y" * 400} for n in range(8000)]
    text = "n,text\n" + "".join(f"{row['n']},{row['text']}\n" for row in rows)
    data = tmp_path / "csv"
    data.mkdir()
    (data / f"a.csv{suffix}").write_bytes(PACK[suffix](text.encode()))
    dataset = Dataset.from_path("d", data)
    assert len(dataset.shards[0].group_rows) > 2
    starts.clear()
    spill = Spill(SpillSettings(tmp_path / "spill", 1 << 30, 0))
    for _ in range(2):  # the second as another process would
        reader = RowReader(dataset, (), payload=True, cache=GroupCache(1, spill))
        for row in (7999, 0, 4000, 10, 7000):
            taken = reader.take(np.zeros(1, np.int64), np.array([row]))
            assert taken.payload.row(0) == rows[row]
    assert len(starts) == 2
    assert spill.counts().mapped > 5
