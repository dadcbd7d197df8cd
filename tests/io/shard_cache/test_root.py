"""The root: made for one user, marked, and never anybody else's."""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cases.ranks_job import ROOT
from tests.io.shard_cache.places import digests, opened
from zephon.errors import CacheError
from zephon.io.shard_cache import CacheSettings, ShardCache
from zephon.io.shard_cache.names import folder_name, names_of
from zephon.io.shard_cache.root import MARK, open_root
from zephon.io.storage.place import StoredFile


def modes(folder):
    return {stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")}


def test_what_is_made_is_the_user_s_alone(tmp_path, source):
    before = os.umask(0)
    try:
        with opened(tmp_path / "above" / "cache") as cache:
            cache.hold("prose", source, source.files()[0]).close()
            assert modes(tmp_path / "above") == {0o700, 0o600}
    finally:
        os.umask(before)
    assert json.loads((tmp_path / "above" / "cache" / MARK).read_text())["format"] == 1


def test_a_directory_with_other_things_is_refused_and_left_alone(tmp_path, source):
    before = digests(source.folder)
    with pytest.raises(
        CacheError, match=r"must be empty, or a cache .* holds '000.bin' and 7 more"
    ):
        ShardCache.opened(CacheSettings(source.folder))
    assert digests(source.folder) == before
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match=r"file' must be a directory"):
        ShardCache.opened(CacheSettings(tmp_path / "file"))


def test_what_lies_beside_the_cache_by_default_is_no_stranger(tmp_path, source):
    for name in (".parquet-rg-cache", "tokenizers"):
        (tmp_path / "cache" / name).mkdir(parents=True)
    with opened(tmp_path / "cache") as cache:
        cache.hold("prose", source, source.files()[0]).close()


def test_strange_files_in_a_cache_stay(tmp_path, source):
    with opened(tmp_path / "cache", limit_bytes=100_010) as cache:
        with cache.hold("prose", source, source.files()[0]) as held:
            folder = Path(held.path).parent
        strange = [folder / "notes.txt", folder / "a-0.bin", tmp_path / "cache" / "x"]
        for path in strange:
            path.write_bytes(b"x" * 300_000)
        for file in source.files():
            cache.hold("prose", source, file).close()
        assert all(path.exists() for path in strange)


def test_a_cache_of_another_format_is_refused(tmp_path):
    (tmp_path / MARK).write_text('{"format": 9}')
    with pytest.raises(CacheError, match=r"must tell of format 1, and does not: .*another release"):
        open_root(tmp_path, ours=False)
    (tmp_path / MARK).write_text("")  # its writer was killed, or is about to go on
    open_root(tmp_path, ours=False)


def test_a_root_of_another_user_is_refused(tmp_path, monkeypatch):
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(
        CacheError, match=rf"{tmp_path.name}' must belong to user .*{user + 1}.* and"
    ):
        open_root(tmp_path, ours=False)
    assert list(tmp_path.iterdir()) == []


def test_nobody_else_may_write_in_a_root_that_nobody_named(tmp_path):
    root = tmp_path / "cache"
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(CacheError, match="its mode is 0777"):
        open_root(root, ours=True)
    open_root(root, ours=False)  # the user named it


def test_a_link_is_followed(tmp_path, source):
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    with opened(tmp_path / "cache") as cache:
        cache.hold("prose", source, source.files()[0]).close()
    assert (tmp_path / "disk" / MARK).exists()


def test_a_dataset_s_folder_that_leads_elsewhere_is_refused(tmp_path, source):
    with opened(tmp_path / "cache") as cache:
        (tmp_path / "elsewhere").mkdir()
        folder = tmp_path / "cache" / folder_name("prose", source.url)
        folder.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(CacheError, match="is no directory"):
            cache.hold("prose", source, source.files()[0])
        assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_name_that_is_too_long_is_named(tmp_path):
    with pytest.raises(CacheError, match=r"x' must be a directory that .*, but File name too long"):
        open_root(tmp_path / ("x" * 300), ours=False)


READ_ONLY = """
import os, sys
from pathlib import Path
from zephon.errors import CacheError
from zephon.io.shard_cache.root import open_root
if os.geteuid() == 0:
    os.setuid(65534)
for name in sys.argv[1:]:
    try:
        open_root(Path(name), ours=False)
    except CacheError as exc:
        print(exc)
"""


@pytest.fixture
def open_folder():
    """A directory that all may look into, which those of tests are not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_a_root_that_cannot_be_written_is_an_error_at_once(open_folder):
    """Root may write anywhere, so a process of another user tries."""
    folder = open_folder / "above"
    folder.mkdir(mode=0o555)
    words = [sys.executable, "-c", READ_ONLY, str(folder / "cache"), str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    assert f"{folder / 'cache'!s}' must be a directory that this process can make" in lines[0]
    assert "Permission denied; name another io_options.cache.root" in lines[0]
    if os.geteuid() == 0:
        assert re.search(r"must belong to user .*65534.* and belongs to user .*0", lines[1])


@pytest.mark.parametrize(
    "name",
    ["x" * 255, "/".join(["deep"] * 300) + "/x.parquet", "木" * 80, "a b%\n'\udc80.jsonl", "."],
)
def test_names_of_any_length_and_depth(tmp_path, name):
    file = StoredFile(name, 7, "v", 5)
    names = names_of("prose-0", file)
    for each in (names.shard, f"{names.key.hex()}.{2**63}.{'f' * 60}.part.told"):
        assert len(os.fsencode(each)) < 255
        (tmp_path / each).touch()
    assert names.mtime_ns == 5
    assert names.shard.isascii() and "/" not in names.shard
    if name.endswith(".parquet"):
        assert names.shard.endswith("x.parquet")
    assert len(folder_name(name, "u")) < 255
    others = [
        names_of("prose-1", file),
        names_of("prose-0", StoredFile(name + "x", 7, "v", 5)),
        names_of("prose-0", StoredFile(name, 8, "v", 5)),
        names_of("prose-0", StoredFile(name, 7, "w", 5)),
    ]
    assert len({each.key for each in [names, *others]}) == 5
