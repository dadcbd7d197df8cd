"""Damaged JSON lines: whatever bytes stand in them, rows are right, or an error says where not.

The test of each codec goes on for its share of the seconds of ``--fuzz``. What a plain file holds
is compared row by row with what Python's ``json`` makes of the damaged bytes; for a compressed one
that opens, with what Python's own reader of the codec makes of them.
"""

import bz2
import gzip
import lzma
import random
import time

import pytest

from tests.lines_by_json import check, lines_of
from tests.properties.odd_lines import a_text
from tests.written import PACK
from zephon import Dataset
from zephon.errors import ShardError
from zephon.io.formats import jsonl, line_blocks
from zephon.io.formats.zstd_module import zstd

UNPACK = {
    "": bytes,
    ".gz": gzip.decompress,
    ".zst": zstd.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
SECONDS_A_FILE = 30.0
_WAYS = (
    lambda before, after, size, noise, others: before,
    lambda before, after, size, noise, others: before + after[size:],
    lambda before, after, size, noise, others: before + bytes(size) + after[size:],
    lambda before, after, size, noise, others: before + noise + after,
    lambda before, after, size, noise, others: before + noise + after[size:],
    lambda before, after, size, noise, others: before + _flipped(after[:1], noise) + after[1:],
    lambda before, after, size, noise, others: before + before[:size] + after,
    lambda before, after, size, noise, others: before + others[-size:] + after[size:],
    lambda before, after, size, noise, others: after + before,
    lambda before, after, size, noise, others: before + noise[:1].translate(_SIGNS) + after,
)
_SIGNS = b'\n\r"\\{}[],:0a \x00\xef\xff' * 16
OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


def damaged(chance, content, others):
    """Damage some bytes once or a few times, in one of many ways."""
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        at = chance.randrange(len(content) + 1)
        size = min(chance.choice([1, 1, 2, 8, 100, 5000]), len(content))
        content = chance.choice(_WAYS)(
            content[:at], content[at:], size, chance.randbytes(size), others
        )
    return content


def _flipped(byte, noise):
    return bytes(one ^ 1 << (other & 7) for one, other in zip(byte, noise, strict=False))


@pytest.mark.parametrize("codec", list(UNPACK))
def test_damaged_files(tmp_path, request, monkeypatch, codec):
    chance = random.Random(f"damage {codec} {time.time()}")
    block_bytes = 1
    monkeypatch.setattr(
        jsonl,
        "index_lines",
        lambda stream, **rest: line_blocks.index_lines(stream, block_bytes=block_bytes, **rest),
    )
    path = tmp_path / f"a.jsonl{codec}"
    until = time.monotonic() + request.config.getoption("--fuzz") / len(UNPACK)
    tried = refused = 0
    while tried < 20 or time.monotonic() < until:
        block_bytes = chance.choice([1, 100, 3000, 1 << 20])
        texts = [a_text(chance, chance.choice([0.0, 0.3])) for _ in range(2)]
        pack = PACK.get(codec, bytes)
        whole, others = b"".join(map(pack, texts)), pack(texts[1])
        content = damaged(chance, whole, others)
        path.write_bytes(content)
        began = time.monotonic()
        try:
            found = _opened(tmp_path, path.name)
            if found is None:
                refused += 1
                _check_refused(codec, content)
            else:
                text = UNPACK[codec](content)
                for row, line in enumerate(lines_of(text)):
                    assert found.shards[0].rows > row, line
                check(found, [text], chance=chance if chance.random() < 0.5 else None)
        except BaseException:
            print(f"codec {codec!r}, block_bytes {block_bytes}, content {content!r}")
            raise
        assert time.monotonic() - began < SECONDS_A_FILE, content
        tried += 1
    assert refused if codec else refused < tried


def _opened(folder, file):
    """Open a file; None where it is refused, with an error that says which file it is."""
    try:
        return Dataset.from_path("d", folder)
    except ShardError as error:
        said = str(error)
        assert said.startswith(f"dataset 'd', shard {file!r}: "), said
        assert "\n" not in said
        return None


def _check_refused(codec, content):
    """Only damage may be refused: a plain file is not but for its encoding."""
    if not codec:
        assert content.startswith(OTHER_ENCODINGS), content
