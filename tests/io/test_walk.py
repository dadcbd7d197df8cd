import os
from pathlib import Path

import pytest

from zephon.errors import DatasetError
from zephon.io.selection import Selection
from zephon.io.walk import in_folders, walked


def found(folder, recursive=False, glob=None):
    selection = Selection.of("d", recursive=recursive, glob=glob)
    return {e.name: e.reason or e.taken for e in walked("d", Path(folder), selection)}


@pytest.fixture
def tree(tmp_path):
    for name in ("a", "en/b", "en/x/c", ".git/d", "_temporary/0/e", "old.tmp/f", "z.lance/g"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_all_folders(tree):
    assert found(tree, recursive=True) == {
        "a": True,
        "en/b": True,
        "en/x/c": True,
        ".git": "a hidden directory",
        "_temporary": "a hidden directory",
        "old.tmp": "a temporary directory",
        "z.lance": "Lance is not read yet",
    }


def test_only_folders_that_patterns_look_into(tree):
    told = found(tree, glob="en/*")
    assert (told["en/b"], told["a"]) == (True, False)
    assert told["en/x"] == "no pattern looks into it"
    assert found(tree)["en"] == "a directory; only direct children are read"
    assert found(tree, glob=".git/*")[".git/d"] is True


def test_the_same_from_a_list_of_names(tree):
    names = [str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()]
    for recursive, glob in [(False, None), (True, None), (False, "en/*"), (False, "**/c")]:
        selection = Selection.of("d", recursive=recursive, glob=glob)
        listed = {e.name: e.reason or e.taken for e in in_folders(names, selection)}
        assert listed == found(tree, recursive, glob)


def test_links_to_folders_elsewhere_are_followed(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a").touch()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "en").symlink_to(tmp_path / "far")
    assert found(tmp_path / "root", recursive=True) == {"en/a": True}


def test_a_folder_inside_is_found_once(tmp_path):
    (tmp_path / "2024").mkdir()
    (tmp_path / "2024" / "a").touch()
    (tmp_path / "latest").symlink_to("2024")
    why = "a link to a directory that is looked into anyway"
    assert found(tmp_path, recursive=True) == {"2024/a": True, "latest": why}
    assert found(tmp_path, glob="latest/*")["latest/a"] is True


def test_a_link_to_a_hidden_folder_is_followed(tmp_path):
    (tmp_path / ".store").mkdir()
    (tmp_path / ".store" / "a").touch()
    (tmp_path / "en").symlink_to(".store")
    assert found(tmp_path, recursive=True) == {"en/a": True, ".store": "a hidden directory"}


def test_circles_of_links_end(tmp_path):
    root, other = tmp_path / "root", tmp_path / "other"
    (root / "en").mkdir(parents=True)
    other.mkdir()
    (root / "en" / "up").symlink_to(root)
    (root / "out").symlink_to(other)
    (other / "back").symlink_to(root)
    (other / "self").symlink_to(other)
    (other / "a").touch()
    circle = "a link to a directory that holds it"
    assert found(root, recursive=True) == {
        "en/up": circle, "out/a": True, "out/back": circle, "out/self": circle,
    }  # fmt: skip


def test_broken_links_and_pipes_have_reasons(tmp_path):
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "gone").symlink_to("nowhere")
    (tmp_path / "en" / "self").symlink_to("self")
    os.mkfifo(tmp_path / "en" / "pipe")
    assert found(tmp_path, recursive=True) == {
        "en/gone": "a broken link", "en/self": "a broken link", "en/pipe": "not a regular file",
    }  # fmt: skip


def test_a_folder_that_vanishes_or_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "en").mkdir()
    scan = os.scandir

    def refused(folder):
        if str(folder).endswith("en/"):
            raise PermissionError(13, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr("zephon.io.walk.os.scandir", refused)
    with pytest.raises(DatasetError, match=r"en/' must be readable, got .*denied.*with glob="):
        found(tmp_path, recursive=True)
    assert found(tmp_path, glob="de/*") == {"en": "no pattern looks into it"}
