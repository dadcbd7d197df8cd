import io
import re

import pytest

from zephon.io import progress
from zephon.io.progress import CountedFiles

FILES = [f"{n}.parquet" for n in range(300)]
END = r"looked at 300 of 300 files, \d\.\d s"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def each(look, name, directory, files):
    return (look(name, file) for file in files)


def shown(out, directory="/d", **settings):
    counted = CountedFiles(each, out, **settings)
    found = counted(lambda name, file: (name, file), "d", directory, FILES)
    assert list(found) == [("d", file) for file in FILES]
    return out.getvalue()


@pytest.fixture
def folder(tmp_path):
    for number, file in enumerate(FILES):
        (tmp_path / file).write_bytes(b"x" * (100 + 10_000 * (number == 0)))
    return tmp_path


def test_a_log_gets_the_end_and_a_line_now_and_then(monkeypatch):
    assert re.fullmatch(END + "\n", shown(io.StringIO()))
    monkeypatch.setattr(progress, "_PLAIN_SECONDS", 0)
    lines = shown(io.StringIO()).splitlines()
    assert len(lines) == 300
    assert re.fullmatch(r"looked at 2 of 300 files, \d+\.\d s left", lines[1])
    assert re.fullmatch(END, lines[-1])


def test_files_that_are_read_whole_are_told_in_bytes(monkeypatch, folder):
    monkeypatch.setattr(progress, "_PLAIN_SECONDS", 0)
    lines = shown(io.StringIO(), folder, whole=True).splitlines()
    assert re.fullmatch(
        r"looked at 1 of 300 files, 10.1 kB of 40 kB, \S+ \S?B/s, \d+\.\d s left", lines[0]
    )
    assert re.fullmatch(r"looked at 300 of 300 files, 40 kB, \S+ \S?B/s, \d\.\d s", lines[-1])


def test_a_terminal_gets_one_bar_that_redraws_itself(monkeypatch, folder):
    monkeypatch.setattr(progress, "_TERMINAL_SECONDS", 0)
    monkeypatch.setenv("COLUMNS", "120")
    text = shown(Terminal(), folder, whole=True)
    assert text.count("\r") == 300
    assert text.count("\n") == 1
    first, *_, last = text.split("\r")[1:]
    assert first.startswith("[######------------------] looked at 1 of 300 files, 10.1 kB of 40 kB")
    assert last.startswith("[########################] looked at 300 of 300 files, 40 kB")
    assert last.endswith("\x1b[K\n")


@pytest.mark.parametrize("columns", [10, 60])
def test_a_bar_is_never_wider_than_the_terminal(monkeypatch, columns, folder):
    monkeypatch.setattr(progress, "_TERMINAL_SECONDS", 0)
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = shown(Terminal(), folder, whole=True).split("\r")[1:]
    assert max(len(line.removesuffix("\n").removesuffix("\x1b[K")) for line in lines) < columns


def test_an_error_passes_through():
    def fail(name, file):
        raise OSError(file)

    with pytest.raises(OSError, match=r"0.parquet"):
        list(CountedFiles(each, io.StringIO())(fail, "d", "/d", FILES))


def test_no_file_at_all():
    out = io.StringIO()
    assert list(CountedFiles(each, out)(None, "d", "/d", [])) == []
    assert re.fullmatch(r"looked at 0 of 0 files, 0\.0 s\n", out.getvalue())
