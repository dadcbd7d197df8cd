"""One rank that makes an index before it reads: `python -m tests.cases.indexing_job FOLDER KILLED`.

It begins once there is a file `go` beside the folder. It prints each different pair of an index and
of what was found by it; or it is killed before its first index is in its place.
"""

import hashlib
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

from zephon import Dataset
from zephon.build_index import build_catalog, build_index

TIMES = 12


def found_in(folder):
    """Give digests of the index, the catalogue and the shards; anything odd is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = Dataset.from_path("rows", folder)
    files = (folder / "index.json", folder / "_catalog.arrow")
    marks = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return [*marks, dataset.shards.digest(), dataset.total(), sorted(map(str, dataset.fields()))]


def main():
    folder, killed = Path(sys.argv[1]), sys.argv[2] == "killed"
    while not (folder.parent / "go").exists():
        time.sleep(0.001)
    if killed:
        Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    found = []
    for _ in range(TIMES):
        build_index("jsonl", folder, progress=False)
        build_catalog(folder, progress=False)
        one = found_in(folder)
        found += [one] * (one not in found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
