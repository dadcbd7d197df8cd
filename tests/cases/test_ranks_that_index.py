"""Ranks that each make the index: of one directory at the same time, or of one on each machine.

Whoever looks meanwhile finds a whole one, the same whoever wrote it. Nobody waits for another.
"""

import json
import shutil
import subprocess
import sys
import time

import pytest

from tests.cases.indexing_job import found_in
from tests.cases.ranks_job import ROOT
from tests.written import lines
from zephon.build_index import build_catalog, build_index

SECONDS = 120  # a guard against hanging


@pytest.fixture
def folder(tmp_path):
    for shard in range(6):
        rows = [{"text": f"{shard}-{n} " + "é" * (n % 7), "k": n} for n in range(50 + 40 * shard)]
        lines(tmp_path / "data", f"{shard}.jsonl.gz" if shard % 2 else f"{shard}.jsonl", rows)
    return tmp_path / "data"


@pytest.mark.parametrize("killed", [0, 1])
def test_four_ranks_make_the_index_of_one_directory_and_one_of_another(folder, tmp_path, killed):
    elsewhere = shutil.copytree(folder, tmp_path / "elsewhere")
    build_index("jsonl", elsewhere, progress=False)
    build_catalog(elsewhere, progress=False)
    wanted = found_in(elsewhere)  # the same on a machine with a disk of its own
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.cases.indexing_job", str(folder), what],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for what in ["killed"] * killed + ["lives"] * (4 - killed)
    ]
    (tmp_path / "go").touch()
    looks, end = 0, time.monotonic() + SECONDS
    while any(rank.poll() is None for rank in ranks[killed:]) and time.monotonic() < end:
        if (folder / "index.json").exists() and (folder / "_catalog.arrow").exists():
            assert found_in(folder) == wanted
            looks += 1
    printed = [rank.communicate(timeout=SECONDS)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [-9] * killed + [0] * (4 - killed)
    assert [json.loads(found) for found in printed[killed:]] == [[wanted]] * (4 - killed)
    assert looks and found_in(folder) == wanted
    drafts = [file.name for file in folder.iterdir() if file.name.startswith(".")]
    assert len(drafts) == killed and all(draft.endswith(".tmp") for draft in drafts)
