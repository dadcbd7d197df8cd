import bz2
import gc
import gzip
import io
import lzma
import random
import warnings
from functools import partial

import pytest

from tests.written import PACK
from zephon.io.formats.compressed_text import COMPRESSED, DamageError, open_text
from zephon.io.formats.zstd_module import zstd

TEXT = b"".join(b'{"n":%d,"x":"%s"}\n' % (n, b"y" * (n % 37)) for n in range(4000))

WRITERS = {
    ".gz": partial(gzip.GzipFile, "a name", "wb", 1),
    ".bz2": partial(bz2.BZ2File, mode="wb", compresslevel=1),
    ".xz": partial(lzma.LZMAFile, mode="wb", check=lzma.CHECK_CRC32, preset=0),
    ".zst": partial(zstd.ZstdFile, mode="wb", level=-5),
}


@pytest.fixture(params=COMPRESSED)
def codec(request):
    return request.param


@pytest.fixture
def read(tmp_path, codec):
    """Give the text of some bytes, read in pieces of a size."""

    def read_all(content, size=1 << 20):
        path = tmp_path / f"a.jsonl{codec}"
        path.write_bytes(content)
        pieces = []
        with open_text(path) as stream:
            while piece := stream.read(size):
                pieces.append(piece)
            assert stream.read(size) == b""
        assert all(len(piece) == size for piece in pieces[:-1])
        return b"".join(pieces)

    return read_all


def members(codec, size):
    return [PACK[codec](TEXT[at : at + size]) for at in range(0, len(TEXT), size)]


def test_a_file_that_nobody_reads_any_more_is_closed(tmp_path):
    (tmp_path / "a.gz").write_bytes(PACK[".gz"](TEXT))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        stream = open_text(tmp_path / "a.gz")
        stream.read(10)
        del stream
        gc.collect()
    assert not told


def test_every_codec_is_known():
    assert set(COMPRESSED) == set(PACK)


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_one_member(read, codec, size):
    text = TEXT if size > 1 else TEXT[:3000]
    assert read(PACK[codec](text), size) == text


@pytest.mark.parametrize("size", [5, 1000, 70_000])
def test_several_members_are_one_text(read, codec, size):
    assert read(b"".join(members(codec, 1000)), size) == TEXT


def test_more_members_than_are_read_at_a_time(read, codec, monkeypatch):
    monkeypatch.setattr("zephon.io.formats.compressed_text._CHUNK_BYTES", 11)
    assert read(b"".join(members(codec, 10_000))) == TEXT


def test_members_without_text_are_passed_over(read, codec):
    nothing, one = PACK[codec](b""), PACK[codec](b"one\n")
    assert read(nothing + one + nothing + nothing + one + nothing) == b"one\none\n"
    assert read(nothing) == b""


def test_a_long_run_is_not_held_at_once(read, codec):
    run = b"a" * (8 << 20)
    assert read(PACK[codec](run), 1 << 16) == run


@pytest.mark.parametrize("zeros", [4, 8, 600_000])
def test_zeros_are_padding_where_the_format_has_it(read, codec, zeros):
    content = (b"\0" * zeros).join([*members(codec, 90_000), b""])
    if codec in (".gz", ".xz"):
        assert read(content) == TEXT
    else:
        with pytest.raises(DamageError):
            read(content)


def test_a_skippable_frame_of_zstd_is_no_text(tmp_path):
    skipped = b"\x5a\x2a\x4d\x18" + (9).to_bytes(4, "little") + b"123456789"
    one, two = zstd.compress(b"one\n"), zstd.compress(b"two\n")
    path = tmp_path / "a.zst"
    path.write_bytes(skipped + one + skipped + skipped + two + skipped)
    with open_text(path) as stream:
        assert stream.read(100) == b"one\ntwo\n"


def test_long_windows_of_zstd(tmp_path):
    options = {zstd.CompressionParameter.window_log: 28}
    path = tmp_path / "a.jsonl.zst"
    with zstd.open(path, "wb", options=options) as file:
        file.write(TEXT)
    with open_text(path) as stream:
        assert stream.read(len(TEXT)) == TEXT


@pytest.mark.parametrize("junk", [b"x", b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0", b"junk" * 99])
def test_bytes_behind_the_last_member_are_damage(read, codec, junk):
    """Also where they are the beginning of a member that was cut off."""
    with pytest.raises(DamageError, match="behind"):
        read(PACK[codec](TEXT) + junk)


def test_wherever_a_file_is_cut_off(read, codec):
    first, second = PACK[codec](TEXT[:500]), PACK[codec](TEXT[500:900])
    for stop in range(1, len(first + second)):
        if stop == len(first):
            assert read((first + second)[:stop]) == TEXT[:500]
            continue
        with pytest.raises(DamageError, match="behind"):
            read((first + second)[:stop])


def test_a_damaged_byte_is_an_error_or_changes_nothing(read, codec):
    """All four hold a checksum of the text, for zstd where the writer asked for it."""
    options = {zstd.CompressionParameter.checksum_flag: 1}
    whole = zstd.compress(TEXT, options=options) if codec == ".zst" else PACK[codec](TEXT)
    chance = random.Random(7)
    refused = 0
    for _ in range(150):
        at, bit = chance.randrange(len(whole)), 1 << chance.randrange(8)
        content = bytearray(whole)
        content[at] ^= bit
        try:
            assert read(bytes(content)) == TEXT
        except DamageError:
            refused += 1
    assert refused > 100


def test_what_other_writers_make_is_read(read, codec):
    into = io.BytesIO()
    with WRITERS[codec](into) as file:
        for at in range(0, len(TEXT), 9999):
            file.write(TEXT[at : at + 9999])
            file.flush()
    assert read(into.getvalue(), 12_345) == TEXT
