"""The directory of what is kept: the user's alone, and refused where it is someone else's."""

import os
import stat
import warnings

import pytest

from tests.io.spill.test_spill import group, key, spill_in
from zephon.io.own_directory import (
    ForeignRootError,
    check_ours,
    make_directory,
    mark,
    own_row_group_root,
)
from zephon.io.spill.room import MARKER, SUFFIX


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.fixture
def open_to_all():
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The root that nobody named, below a home of its own; not made yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    root = own_row_group_root()
    assert tmp_path in root.parents
    return root


def test_what_is_made_is_the_user_s_alone(tmp_path, open_to_all):
    root = tmp_path / "above" / "spill"
    spill_in(root).store(key(), group())
    made = {path.name: mode(path) for path in (root.parent, root, *root.iterdir())}
    assert made == {
        "above": 0o700, "spill": 0o700, MARKER: 0o600, key().digest + SUFFIX: 0o600,
    }  # fmt: skip


def test_a_directory_that_was_there_keeps_its_mode(tmp_path, open_to_all):
    root = tmp_path / "spill"
    root.mkdir(0o775)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the user named it
        spill_in(root).store(key(), group())
    assert (mode(root), mode(root / (key().digest + SUFFIX))) == (0o775, 0o600)
    assert spill_in(root).load(key()) is not None


def test_a_marker_is_never_written_through_a_link(tmp_path):
    root, elsewhere = tmp_path / "spill", tmp_path / "elsewhere"
    make_directory(root)
    (root / MARKER).symlink_to(elsewhere)
    mark(root, MARKER, "ours")
    assert not elsewhere.exists()
    (root / MARKER).unlink()
    mark(root, MARKER, "ours")
    mark(root, MARKER, "theirs")
    assert (root / MARKER).read_text() == "ours"


def test_our_own_root_is_made_and_used(own, open_to_all):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spill_in(own).store(key(), group())
    assert (mode(own.parent), mode(own)) == (0o700, 0o700)
    assert spill_in(own).load(key()) is not None


def test_the_directory_above_may_be_the_user_s_own_link(own, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir(0o700)
    own.parent.parent.mkdir()
    own.parent.symlink_to(disk)
    spill_in(own).store(key(), group())
    assert spill_in(own).load(key()) is not None
    disk.chmod(0o777)
    with pytest.raises(ForeignRootError, match="mode is 0777"):
        check_ours(own)


def writable(own, other):
    own.chmod(0o770)


def writable_above(own, other):
    own.parent.chmod(0o707)


def link(own, other):
    own.rename(other)
    own.symlink_to(other)


def plain_file(own, other):
    own.rename(other)
    own.write_text("")


PLACES = {
    writable: "others may write in .*, whose mode is 0770",
    writable_above: "others may write in .*, whose mode is 0707",
    link: "is a link",
    plain_file: "is no directory",
}


@pytest.mark.parametrize(("change", "said"), PLACES.items())
@pytest.mark.parametrize("first", ["load", "store"])
def test_a_root_that_others_could_change_is_not_used(own, tmp_path, change, said, first):
    spill_in(own).store(key(), group())
    change(own, tmp_path / "other")
    spill = spill_in(own)
    with pytest.warns(RuntimeWarning, match=said) as caught:
        if first == "load":
            assert spill.load(key()) is None
        spill.store(key(1), group(1))
        assert spill.load(key()) is None
        spill.store(key(2), group(2))
    assert len(caught) == 1
    for place in (own, tmp_path / "other"):
        assert not (place / (key(1).digest + SUFFIX)).exists()


def test_a_root_of_another_user_is_not_used(own, monkeypatch):
    spill_in(own).store(key(), group())
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.warns(RuntimeWarning, match=f"belongs to user {user}, and this process is user"):
        assert spill_in(own).load(key()) is None


def test_nothing_is_made_behind_a_stranger_s_link(own, tmp_path, monkeypatch):
    target = tmp_path / "target"
    target.mkdir()
    own.parent.parent.mkdir()
    own.parent.symlink_to(target)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.warns(RuntimeWarning, match="belongs to user"):
        spill_in(own).store(key(), group())
    assert list(target.iterdir()) == []
