import io

import pytest

from zephon.io import progress
from zephon.io.progress import CountedFiles

FILES = [f"{n}.parquet" for n in range(1500)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def each(look, name, directory, files):
    return (look(name, file) for file in files)


def shown(out):
    found = CountedFiles(each, out)(lambda name, file: (name, file), "d", "/d", FILES)
    assert list(found) == [("d", file) for file in FILES]
    return out.getvalue()


def test_a_log_gets_the_end_and_a_line_now_and_then(monkeypatch):
    assert shown(io.StringIO()) == "looked at 1,500 of 1,500 files\n"
    monkeypatch.setattr(progress, "_PLAIN_SECONDS", 0)
    lines = shown(io.StringIO()).splitlines()
    assert len(lines) == 1500
    assert lines[1] == "looked at 2 of 1,500 files"


def test_a_terminal_gets_one_line_that_redraws_itself(monkeypatch):
    monkeypatch.setattr(progress, "_TERMINAL_SECONDS", 0)
    text = shown(Terminal())
    assert text.count("\r") == 1500
    assert text.count("\n") == 1
    assert text.endswith("\rlooked at 1,500 of 1,500 files\x1b[K\n")


def test_an_error_passes_through():
    def fail(name, file):
        raise OSError(file)

    with pytest.raises(OSError, match=r"0.parquet"):
        list(CountedFiles(each, io.StringIO())(fail, "d", "/d", FILES))
