import io
import threading

import pytest

from tests.written import PACK
from zephon.errors import ShardError
from zephon.io import Dataset
from zephon.io.formats import forward_file
from zephon.io.formats.compressed_text import COMPRESSED, open_text
from zephon.io.formats.forward_file import ForwardFile, PassedBlocks
from zephon.io.formats.line_blocks import index_lines

LINES = [b'{"n":%d,"x":"%s"}\n' % (n, b"y" * (n % 37)) for n in range(400)]
TEXT = b"".join(LINES)
PASSED_BYTES = 12 * 300


@pytest.fixture(params=COMPRESSED)
def forward(request, tmp_path):
    """A file of many blocks in several members or frames, with its blocks and its shard."""
    pack = PACK[request.param]
    path = tmp_path / f"a.jsonl{request.param}"
    whole = b"\xef\xbb\xbf" + TEXT
    path.write_bytes(b"".join(pack(whole[i : i + 3000]) for i in range(0, len(whole), 3000)))
    shard = Dataset.from_path("d", tmp_path).shards[0]
    blocks = index_lines(io.BytesIO(whole), block_bytes=256)
    wanted = [whole[a:b] for a, b in zip(blocks.offsets, blocks.offsets[1:], strict=False)]
    return ForwardFile("d", shard, blocks.offsets, PassedBlocks(PASSED_BYTES)), wanted, path


@pytest.fixture
def starts(monkeypatch):
    """Counts how often a file is read from its front."""
    seen = []
    monkeypatch.setattr(
        forward_file, "open_text", lambda path: seen.append(path) or open_text(path)
    )
    return seen


def test_blocks_in_order_backwards_and_at_random(forward):
    file, wanted, _ = forward
    assert len(TEXT) > 2 * PASSED_BYTES
    numbers = list(range(len(wanted)))
    for order in (numbers, numbers[::-3], numbers[::7] + numbers[3::11]):
        assert [file.block(number) for number in order] == [wanted[number] for number in order]


def test_neighbours_in_another_order_do_not_start_again(forward, starts):
    file, wanted, _ = forward
    for first in range(0, len(wanted) - 8, 8):
        for number in (first + 5, first, first + 7, first + 2):
            assert file.block(number) == wanted[number]
    assert len(starts) == 1


def test_lanes_within_the_bound_of_each_other_share_one_pass(forward, starts):
    file, wanted, _ = forward
    apart = 3
    for turn in range(len(wanted) - 3 * apart):
        for lane in range(4):
            assert file.block(turn + lane * apart) == wanted[turn + lane * apart]
    assert len(starts) == 1


def test_further_back_than_the_bound_starts_again(forward, starts):
    file, wanted, _ = forward
    assert file.block(30) == wanted[30]
    assert file.block(0) == wanted[0]
    assert len(starts) == 2


def test_a_block_larger_than_the_bound_is_handed_out(forward, starts):
    _, wanted, path = forward
    shard = Dataset.from_path("d", path.parent).shards[0]
    blocks = index_lines(io.BytesIO(b"\xef\xbb\xbf" + TEXT), block_bytes=256)
    file = ForwardFile("d", shard, blocks.offsets, PassedBlocks(10))
    starts.clear()
    assert [file.block(number) for number in (0, 1, 1)] == [wanted[0], wanted[1], wanted[1]]
    assert len(starts) == 2


def test_the_oldest_blocks_of_all_files_go_first():
    passed = PassedBlocks(20)
    for path, number in (("a", 0), ("b", 0), ("a", 1), ("b", 0), ("b", 1), ("a", 2)):
        passed.keep(path, number, path.encode() * 5)
    held = [(path, n) for path in "ab" for n in range(3) if passed.find(path, n) is not None]
    assert held == [("a", 1), ("a", 2), ("b", 0), ("b", 1)]
    passed.clear()
    assert passed.find("b", 1) is None
    passed.keep("a", 0, b"a" * 20)
    assert passed.find("a", 0) == b"a" * 20


def test_many_threads(forward):
    file, wanted, _ = forward
    wrong = []

    def work(step):
        for number in range(0, len(wanted), step):
            if file.block(number) != wanted[number]:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(step,)) for step in (1, 2, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not wrong


def test_a_closed_file_opens_again(forward):
    file, wanted, _ = forward
    file.block(3)
    file.close()
    assert file.block(2) == wanted[2]


def test_a_file_written_to_since_is_refused_and_an_error_is_not_remembered(forward):
    file, wanted, path = forward
    content, status = path.read_bytes(), path.stat()
    path.write_bytes(content + b"x")
    with pytest.raises(ShardError, match="written to since"):
        file.block(0)
    path.write_bytes(content)
    forward_file.os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.block(1) == wanted[1]
