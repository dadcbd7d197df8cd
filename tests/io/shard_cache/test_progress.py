"""The line that says what is fetched: on a terminal, while somebody waits."""

import io

import pytest

from zephon.io.shard_cache import progress
from zephon.io.shard_cache.progress import DownloadProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(progress, "_FIRST_SECONDS", 0)
    monkeypatch.setattr(progress, "_PAUSE_SECONDS", 0)
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


def shown(out, seen=True):
    shows = DownloadProgress(out)
    with shows.waiting(seen):
        with shows.fetching(3_000_000) as moved, shows.fetching(1_000_000):
            moved(1_000_000)
        with shows.fetching(10) as moved:
            moved(10)
    with shows.fetching(10) as moved:
        moved(10)  # nobody waits
    return out.getvalue()


def test_a_terminal_gets_one_line_that_goes(monkeypatch):
    text = shown(Terminal())
    assert "\rfetching shards: 0 done, 2 under way (1 MB of 4 MB), " in text
    assert "\rfetching shards: 2 done, 1 under way (10 B of 10 B), " in text
    assert text.endswith("\r\x1b[K")
    assert text.count("\r") == 3
    assert "\n" not in text


def test_nothing_else_is_written_to():
    assert shown(io.StringIO()) == ""
    assert shown(Terminal(), seen=False) == ""


def test_of_many_ranks_the_first_one_says_it(monkeypatch):
    monkeypatch.setenv("RANK", "8")
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert shown(Terminal())
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert shown(Terminal()) == ""


def test_a_terminal_that_has_gone_stops_nothing():
    class Gone(Terminal):
        def write(self, text):
            raise OSError(5, "Input/output error")

    assert shown(Gone()) == ""
