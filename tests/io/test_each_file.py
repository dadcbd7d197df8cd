"""Files are looked at in order, by threads where that is worth it."""

import threading
import time
from pathlib import Path

import pytest

from zephon.io.each_file import each_file

FILES = [f"{number}.x" for number in range(12)]
HERE = Path("here")


@pytest.mark.parametrize("quickly", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 12])
@pytest.mark.parametrize("seconds", [0, 0.003])
def test_files_are_looked_at_once_and_in_order(count, quickly, seconds):
    def look(name, path):
        time.sleep(seconds)
        seen.append(Path(path))
        return name, path.name

    seen = []
    found = list(each_file(look, "d", HERE, FILES[:count], quickly=quickly))
    assert found == [("d", file) for file in FILES[:count]]
    assert sorted(seen) == sorted(HERE / file for file in FILES[:count])


def test_threads_start_only_once_it_takes_long():
    def look(_, path):
        time.sleep(0.02 if path.name == "2.x" else 0)
        return path.name, threading.current_thread() is threading.main_thread()

    found = dict(each_file(look, "d", HERE, FILES, quickly=True))
    assert found["2.x"]
    assert [file for file in FILES if found[file]] == FILES[: list(found.values()).index(False)]
    assert not any(found[file] for file in FILES[3:])


def test_what_is_wrong_with_the_first_file_is_told_first():
    def look(_, path):
        raise ValueError(path.name)

    for quickly in (False, True):
        with pytest.raises(ValueError, match=r"0\.x"):
            list(each_file(look, "d", HERE, FILES, quickly=quickly))
