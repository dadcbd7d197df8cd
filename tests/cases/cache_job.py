"""A process that reads shards through a cache: `python -m tests.cases.cache_job SOURCE ROOT SEED`.

File locks do not work in it. It reads shards of a directory in an order of its own, some held
while others come, until there is a file `stop` beside the directory. Each that is right is a line
in the file `SEED.log` there; anything else ends it with an error.
"""

import fcntl
import hashlib
import sys
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from tests.io.shard_cache.places import FolderPlace, settings
from zephon.io.shard_cache import Prefetcher, ShardCache, Wanted

SIZES = [19_000 + 7 * number for number in range(300)]
LIMIT = 1_200_000  # a fifth of all, and more than all processes hold at a time
SLACK = 60_000
HELD = 2
MOST_READS = 5000


class SlowPlace(FolderPlace):
    """Takes a moment, so that a process is killed in the middle; drops a connection at times."""

    def __init__(self, folder, seed):
        super().__init__(folder)
        self.drawn = np.random.default_rng(seed)

    def fetch(self, file, target, told=None):
        content = (self.folder / file.name).read_bytes()
        drawn = self.drawn.random()
        stop = len(content) if drawn > 0.1 else int(len(content) * drawn * 9)
        for at in range(0, stop, 4000):
            piece = content[at : min(at + 4000, stop)]
            target.write(piece)
            told(len(piece))
            time.sleep(0.001)
        if drawn < 0.05:
            raise ConnectionResetError("the connection was reset")


def no_locks(how):
    """Let locks fail, or do nothing at all."""

    def refused(*_):
        raise OSError(37, "No locks available")

    fcntl.flock = fcntl.lockf = refused if how else lambda *_: None


def main():
    source, root, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("error")
    no_locks(seed % 2)
    place = SlowPlace(source, seed)
    files = place.files()
    right = [hashlib.sha256((source / file.name).read_bytes()).hexdigest() for file in files]
    cache = ShardCache.opened(
        settings(root, limit_bytes=LIMIT, min_slack_bytes=SLACK, max_slack_bytes=SLACK)
    )
    order = np.random.default_rng(seed).integers(len(files), size=MOST_READS).tolist()
    wanted = (Wanted("words", place, files[number]) for number in order)
    log = (source.parent / f"{seed}.log").open("w")
    with Prefetcher(cache, wanted, buffer_size=1, parallelism=1) as ahead, ExitStack() as stack:
        for position, number in enumerate(order):
            if (source.parent / "stop").exists():
                break
            ahead.reached(position)
            if position % HELD == 0:
                stack.pop_all().close()
            held = stack.enter_context(cache.hold("words", place, files[number]))
            for _ in range(2):
                found = hashlib.sha256(Path(held.path).read_bytes()).hexdigest()
                if found != right[number]:
                    sys.exit(f"{files[number].name}: wrong bytes")
                time.sleep(0.001)
            print(position, file=log, flush=True)


if __name__ == "__main__":
    main()
