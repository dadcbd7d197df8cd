"""What states say of shards, written, read back, and refused where it cannot be."""

import json

import numpy as np
import pytest

from tests.exec.checked_data import in_memory, pipe, rows, taken
from zephon.errors import CheckpointError
from zephon.exec.checkpoint import content_digest
from zephon.exec.manifest import Manifest, to_dict
from zephon.io.contents import Contents

NAMES = ["a", "b", "c"]


def recorded(names=NAMES):
    return [[name, 5, 100] for name in names]


def contents(count=3, *, written=True, full=True):
    marks = np.array([0, (1 << 48) - 1, 77] + [5] * (count - 3), np.uint64)
    times = np.array([-5, 0, 1 << 50] + [9] * (count - 3), np.int64)
    return Contents(marks, times if written else None, marks[::-1] if full else None)


def test_what_is_written_is_read_back():
    held = json.loads(json.dumps(to_dict(contents())))
    found = Manifest.read("prose", recorded(), held)
    assert found.sizes == dict.fromkeys(NAMES, (5, 100))
    assert found.marks == dict(zip(NAMES, [0, (1 << 48) - 1, 77], strict=True))
    assert found.written == dict(zip(NAMES, [-5, 0, 1 << 50], strict=True))
    assert found.full == dict(zip(NAMES, [77, (1 << 48) - 1, 0], strict=True))
    few = Manifest.read("prose", recorded(), to_dict(contents(written=False, full=False)))
    assert (few.written, few.full) == ({}, {})


def test_what_is_written_is_small():
    many = contents(4096, full=False)
    assert len(json.dumps(to_dict(many))) < 33_500  # eight letters a mark; these times are alike
    assert len(json.dumps(to_dict(contents(4097)))) < 300


def test_of_very_many_only_digests_are_known():
    held = to_dict(contents(4097))
    found = Manifest.read("prose", {"shards": 4097, "sha256": "ab"}, held)
    assert found.sizes is None
    assert (found.digest(4097), found.digest(4096)) == ("ab", None)
    assert found.hashes("marks", 4097) == held["marks"]
    assert found.hashes("marks", 4096) is None


def damaged(state, change):
    held = json.loads(json.dumps(state))
    change(held)
    held["digest"] = content_digest(held)
    return held


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.pop("manifest"),
        lambda s: s.update(manifest=5),
        lambda s: s["manifest"].update(prose={"marks": 5}),
        lambda s: s["manifest"].update(prose=[]),
        lambda s: s["manifest"].update(prose={"marks": "AAAA"}),
        lambda s: s["manifest"].update(prose={"marks": "AAAAAAAA"}),
        lambda s: s["manifest"].update(prose={"written": "i1:zz"}),
        lambda s: s["manifest"].update(prose={"other": ""}),
        lambda s: s["recipe"]["data"].update(prose=[["0", 1]]),
        lambda s: s["recipe"]["data"].update(prose={"shards": 7}),
        lambda s: s["recipe"]["data"].update(prose=7),
    ],
)
def test_a_damaged_manifest_is_refused(change):
    data = in_memory({0: rows(0), 1: rows(1)})
    state, _ = taken(pipe(data))
    with pytest.raises(CheckpointError, match=r"damaged.*restore an earlier one"):
        iter(pipe(data).restore(damaged(state, change)))
