"""Ranks that ask through torch.distributed, in processes of their own."""

import json
import os
import subprocess
import sys

from tests.cases.ranks_job import ROOT
from tests.free_port import free_port

RANKS = 2
SECONDS = 120  # a guard against hanging


def on_ranks(what):
    """Give what each rank prints, and what it complains of; all must end well."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.coordination.asking_job", what],
            cwd=ROOT,
            env={**os.environ, **place, "RANK": str(rank), "WORLD_SIZE": str(RANKS)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    found = [rank.communicate(timeout=SECONDS) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * RANKS, found
    return [json.loads(printed) for printed, _ in found]


def test_a_question_travels_beside_collectives_of_others_and_of_rounds():
    wanted = []
    for number in range(20):
        least = [10 * number] if number % 3 else []
        wanted += [*least, "01" if number % 2 else "", 1 + 2 * number]
    assert on_ranks("among_others") == [wanted] * RANKS


def test_a_question_that_one_rank_leaves_alone_is_told_of():
    (first, _), (other, _) = on_ranks("left_by_one")
    assert first.startswith("batch 2: ranks did not meet within 3 s, or one is gone")
    assert other.startswith("batch 2: rank 0 is at 'another call'")


def test_ranks_that_wait_for_one_that_does_not_ask_are_told():
    told, missing = on_ranks("missing")
    assert missing is None
    assert told.startswith("count: ranks did not meet within 3 s, or one is gone")
