"""Eight processes on one cache without working file locks, and some are killed at any moment.

`--kills` says how many are killed in all (ten in `make test`, two hundred in `make soak`).
"""

import hashlib
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np

from tests.cases.cache_job import LIMIT, SIZES, SLACK
from tests.cases.ranks_job import ROOT
from tests.io.shard_cache.places import digests, lying, make_files, opened, served
from zephon.io.shard_cache.contents import cached, problem_of
from zephon.io.shard_cache.counting import count

PROCESSES = 8
SECONDS = 120  # a guard against hanging


def begun(source, root, seed):
    words = [sys.executable, "-m", "tests.cases.cache_job", str(source), str(root), str(seed)]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True)
    return process, source.parent / f"{seed}.log"


def read_by(log):
    return log.read_text().split("\n")[:-1] if log.exists() else []


def has_read_or_ended(process, log):
    return bool(read_by(log)) or process.poll() is not None


def wait_until(happens):
    end = time.monotonic() + SECONDS
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.01)


def whole_or_not_there(root, right):
    """Read every file that stands under a shard's name, right now; give the bytes of them all."""
    total = 0
    for folder in root.glob("words-*"):
        for path in folder.iterdir():
            if path.name[32:33] == "-":
                try:
                    content = path.read_bytes()
                except FileNotFoundError:
                    continue
                assert hashlib.sha256(content).hexdigest() == right[path.name[33:]], path
                total += len(content)
    return total


def test_eight_processes_some_of_them_killed(tmp_path, pytestconfig):
    kills = pytestconfig.getoption("kills")
    source, root = make_files(tmp_path / "source", SIZES), tmp_path / "cache"
    before = digests(source)
    right = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in source.iterdir()}
    rng = np.random.default_rng(kills)
    seeds = iter(range(10**6))
    running = [begun(source, root, next(seeds)) for _ in range(PROCESSES)]
    most = LIMIT + SLACK + PROCESSES * 2 * max(SIZES)  # those under way, for a reader and ahead
    for _ in range(kills):
        place = int(rng.integers(PROCESSES))
        process, log = running[place]
        if rng.random() > 0.2:  # else while it begins
            wait_until(partial(has_read_or_ended, process, log))
        time.sleep(rng.uniform(0, 0.2))
        process.kill()
        complaints = process.communicate(timeout=SECONDS)[1].decode()
        assert process.returncode == -signal.SIGKILL, complaints
        running[place] = begun(source, root, next(seeds))
        assert whole_or_not_there(root, right) <= most
    wait_until(lambda: all(has_read_or_ended(*each) for each in running))
    (tmp_path / "stop").touch()
    for process, log in running:
        complaints = process.communicate(timeout=SECONDS)[1].decode()
        assert process.returncode == 0, complaints
        assert read_by(log) == [str(number) for number in range(len(read_by(log)))]
    assert digests(source) == before
    assert [problem_of(shard) for shard in cached(root)] == [None] * len(list(cached(root)))
    with opened(root, limit_bytes=LIMIT, min_slack_bytes=SLACK, max_slack_bytes=SLACK):
        assert count(root).coming == 0  # what the killed ones began has gone
        assert len(list((root / ".users").iterdir())) == 1
    _, others = lying(root)
    assert not [name for name in others if name.endswith(".part")]


def test_processes_of_a_machine_fetch_each_shard_once(tmp_path):
    """None is killed, and none is slow: so nothing comes twice, without any lock."""
    source, root = make_files(tmp_path / "source", [300_000] * 12), tmp_path / "cache"
    with served(source, pause=0.005) as server:
        words = [str(source), str(server.server_port), str(root)]
        readers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.cases.cache_reader", *words],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        fetched = [int(reader.communicate(timeout=SECONDS)[0]) for reader in readers]
        assert sum(fetched) == len(server.requests) == 12
