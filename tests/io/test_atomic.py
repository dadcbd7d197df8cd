import os
import stat
import subprocess
import sys

import pytest

from zephon.io.atomic import written_atomically


def test_a_file_appears_at_the_end(tmp_path):
    path = tmp_path / "a"
    with written_atomically(path) as draft:
        draft.write_text("new")
        assert not path.exists()
        assert draft.parent == tmp_path
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), written_atomically(path) as draft:
        draft.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_two_writers_do_not_meet(tmp_path):
    path = tmp_path / "a"
    with written_atomically(path) as one, written_atomically(path) as two:
        one.write_text("one")
        two.write_text("two")
    assert path.read_text() == "one"
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_killed_writer_left_is_in_nobodys_way(tmp_path):
    """In a container each process may have the same id as the one that was killed."""
    script = (
        "import os, pathlib, signal, sys\n"
        "from zephon.io import atomic\n"
        "os.getpid = lambda: 1\n"
        "with atomic.written_atomically(pathlib.Path(sys.argv[1])) as draft:\n"
        "    draft.write_text('new')\n"
        "    if len(sys.argv) > 2:\n"
        "        signal.raise_signal(signal.SIGKILL)\n"
    )
    path = str(tmp_path / "a")
    assert subprocess.run([sys.executable, "-c", script, path, "killed"]).returncode < 0
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".a.")
    subprocess.run([sys.executable, "-c", script, path], check=True)
    assert sorted(os.listdir(tmp_path)) == sorted([left, "a"])


def test_others_may_read_it_as_the_user_lets_them(tmp_path):
    before = os.umask(0o022)
    try:
        with written_atomically(tmp_path / "a") as draft:
            draft.write_text("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644
