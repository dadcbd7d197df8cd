"""``zephon cache``: what lies there, whether it is sound, and its end."""

import json
import os
import subprocess
import sys

import pytest

from tests.io.shard_cache.places import digests, opened, source  # noqa: F401
from tests.test_architecture import ROOT
from zephon import cli
from zephon.io.shard_cache import CacheSettings, ShardCache


@pytest.fixture
def root(tmp_path, source):  # noqa: F811
    with opened(tmp_path / "cache") as cache:
        for dataset in ("prose", "code"):
            for file in source.files()[:3]:
                cache.hold(dataset, source, file).close()
    return tmp_path / "cache"


@pytest.fixture
def run(capsys):
    def run(*words):
        code = cli.main(["cache", *map(str, words)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_it_lists_datasets(root, run):
    code, out, _ = run("ls", "--root", root)
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 3)
    assert lines[0].startswith("code: 3 shards, 300,003 bytes, last used 20")
    assert lines[2] == f"{root}: 6 shards, 600,006 bytes"
    code, out, _ = run("ls", "--root", root, "--json")
    found = json.loads(out)
    assert [each["dataset"] for each in found["datasets"]] == ["code", "prose"]
    assert (found["shards"], found["bytes"], found["processes"]) == (6, 600_006, [])
    assert found["datasets"][0]["url"].startswith("test://")


def test_it_says_who_uses_it(root, run):
    with opened(root):
        assert f"; used by process {os.getpid()}\n" in run("ls", "--root", root)[1]


def test_it_verifies_all_bytes(root, run):
    assert run("verify", "--root", root)[:2] == (0, f"{root}: 6 shards, 0 not as they came\n")
    paths = sorted(root.glob("*/*-*.bin"))
    before = paths[0].stat()
    with open(paths[0], "r+b") as file:
        file.seek(50_000)
        file.write(b"#")
    os.utime(paths[0], ns=(before.st_atime_ns, before.st_mtime_ns))
    os.truncate(paths[1], 7)
    (paths[2].parent / f"{paths[2].name[:32]}.told").unlink()
    code, out, _ = run("verify", "--root", root)
    lines = out.splitlines()
    assert code == 1
    assert lines[0] == f"{paths[0]}: its bytes are not those that came"
    assert "it has 7 bytes, and came with 100,00" in lines[1]
    assert "nothing is told of it" in lines[2]
    assert "3 not as they came; remove them with --remove" in lines[3]
    code, out, _ = run("verify", "--root", root, "--json", "--remove")
    assert (code, len(json.loads(out)["problems"]), json.loads(out)["removed"]) == (1, 3, True)
    code, out, _ = run("verify", "--root", root)
    assert (code, out) == (0, f"{root}: 3 shards, 0 not as they came\n")


def test_it_removes_what_the_cache_made_and_nothing_else(root, run):
    folder = next(root.glob("prose-*"))
    strange = [root / "notes", root / ".parquet-rg-cache" / "group", folder / "mine.txt"]
    strange[1].parent.mkdir()
    for path in strange:
        path.write_text("stays")
    code, out, _ = run("clear", "--root", root)
    assert (code, out) == (0, f"{root}: removed 6 shards, 600,006 bytes\n")
    assert sorted(path for path in root.rglob("*") if path.is_file()) == sorted(strange)
    code, _, complaint = run("ls", "--root", root)
    assert (code, "must hold the mark '.zephon-cache'" in complaint) == (2, True)
    strange[0].unlink()
    strange[2].unlink()
    folder.rmdir()
    assert run("ls", "--root", root)[1] == f"{root}: there is no cache\n"


def test_a_cleared_root_is_empty_and_no_cache(root, run):
    assert json.loads(run("clear", "--root", root, "--json")[1])["shards"] == 6
    assert list(root.iterdir()) == []


def test_it_refuses_while_a_process_lives_that_uses_it(root, run, source):  # noqa: F811
    words = "import sys; from pathlib import Path; from zephon.io.shard_cache import *; "
    words += "c = ShardCache.opened(CacheSettings(Path(sys.argv[1]))); print(); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", words, str(root)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    child.stdout.readline()
    code, out, complaint = run("clear", "--root", root)
    assert (code, out) == (1, "")
    assert f"is used by process {child.pid}; end it, or pass --force" in complaint
    assert len(list(root.glob("*/*-*.bin"))) == 6
    assert run("clear", "--root", root, "--force")[0] == 0
    assert list(root.glob("*/*")) == list(root.glob(".users/*"))
    child.kill()
    child.communicate()
    cache = ShardCache.opened(CacheSettings(root))
    cache.hold("prose", source, source.files()[0]).close()
    cache.close()
    assert run("clear", "--root", root)[0] == 0


def test_it_goes_on_in_a_process_whose_cache_was_cleared(root, run, source):  # noqa: F811
    with opened(root) as cache, cache.hold("prose", source, source.files()[0]):
        assert run("clear", "--root", root, "--force")[0] == 0
        with cache.hold("prose", source, source.files()[0]) as held, open(held.path, "rb") as file:
            assert file.read() == (source.folder / "000.bin").read_bytes()


@pytest.mark.parametrize("action", ["ls", "verify", "clear"])
def test_what_is_no_cache_is_left_alone(run, tmp_path, source, action):  # noqa: F811
    before = digests(source.folder)
    code, out, complaint = run(action, "--root", source.folder)
    assert (code, out) == (2, "")
    assert complaint.startswith(f"zephon cache: {str(source.folder)!r} must hold the mark")
    assert digests(source.folder) == before
    code, out, _ = run(action, "--root", tmp_path / "nothing")
    assert (code, out) == (0, f"{tmp_path / 'nothing'}: there is no cache\n")
    assert not (tmp_path / "nothing").exists()
    assert json.loads(run(action, "--root", tmp_path / "nothing", "--json")[1])["datasets"] == []


def test_its_root_is_the_user_s_own_by_default(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".cache" / "zephon" / ".parquet-rg-cache").mkdir(parents=True)
    assert run("ls")[:2] == (0, f"{tmp_path}/.cache/zephon: there is no cache\n")
