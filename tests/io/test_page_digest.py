"""The digest of pages: the same however reads are cut, and another for a file that is cut off."""

import io

import pytest

from zephon.io.page_digest import page_digest


class Slow(io.RawIOBase):
    """A file whose reads give less than they could, as those of a network may."""

    def __init__(self, content, most):
        self.left = memoryview(content)
        self.most = most

    def readinto(self, buffer):
        count = min(len(buffer), self.most, len(self.left))
        buffer[:count] = self.left[:count]
        self.left = self.left[count:]
        return count


@pytest.mark.parametrize("most", [1, 4095, 4097, 100_000])
def test_the_digest_does_not_depend_on_how_reads_are_cut(most, tmp_path):
    content = bytes(range(251)) * (40 if most == 1 else 12_000)  # 3 MB: more than one buffer
    (tmp_path / "file").write_bytes(content)
    with open(tmp_path / "file", "rb", buffering=0) as file:
        whole = page_digest(file, len(content))
    assert page_digest(Slow(content, most), len(content)) == whole
    assert page_digest(Slow(content[:-1], most), len(content)) != whole
