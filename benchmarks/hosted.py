"""What an engine in a child process costs and frees: `python -m benchmarks.hosted`.

First, tokens a second of a job whose engine is in the caller's process, and in a child of it
(`mtp_mode`). Then, how fast a Python thread of the caller is beside it, while a batch is taken
every few milliseconds as a trainer would: its turns, as a share of those that it has alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.jobs import CORPUS, JOBS, parse_arguments
from benchmarks.timing import Contender, Spread, alternate, measure, show

TIMED = ("text_parquet", "token_lists_275")
PLACES = ("here", "child")
STEP_SECONDS = 0.005
STEPS = 800
_TURNS = 1_000  # of the thread between two looks at the clock


def main() -> None:
    """Time both jobs, then the thread beside each."""
    if "--run" in sys.argv or "--beside" in sys.argv:
        _child(*sys.argv[1:])
        return
    arguments = parse_arguments(str(__doc__))
    for job in TIMED:
        readings = alternate(
            [Contender(place, _command("--run", job, place, arguments.corpus)) for place in PLACES],
            arguments.rounds,
        )
        show(JOBS[job].title, readings)
        here, child = (Spread.of([r.rate for r in readings[place]]).median for place in PLACES)
        print(f"  a child has {child / here:.0%} of the tokens a second")
        shares: dict[str, list[float]] = {place: [] for place in PLACES}
        for _ in range(arguments.rounds):
            for place in PLACES:
                command = _command("--beside", job, place, arguments.corpus)
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                shares[place].append(json.loads(done.stdout.splitlines()[-1])["share"])
        for place in PLACES:
            spread = Spread.of([100 * share for share in shares[place]])
            print(f"  {place:<6} a thread beside it keeps {spread} % of its turns")


def _command(what: str, job: str, place: str, corpus: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "benchmarks.hosted", what, job, place, str(corpus))


def _child(what: str, job: str, place: str, corpus: str = str(CORPUS)) -> None:
    import torch

    from benchmarks.ours import batches, described  # late: they load what the parent need not

    torch.set_num_threads(1)
    pipeline = described(JOBS[job], Path(corpus)).options(mtp_mode=place == "child")
    sizes = (
        batch.to_training(return_labels=True)["input_ids"].numel() for batch in batches(pipeline)
    )
    if what == "--run":
        measure(lambda: sizes)
    else:
        print(json.dumps({"share": _share(sizes)}))


def _share(sizes: Iterator[int]) -> float:
    """Take batches at the pace of a trainer; give the turns of a thread, over those alone."""
    turns, stop = [0], threading.Event()

    def busy() -> None:
        while not stop.is_set():
            for _ in range(_TURNS):
                pass
            turns[0] += 1

    threading.Thread(target=busy, daemon=True).start()
    rates = []
    for source in (iter(int, 1), islice(sizes, 100, None)):
        next(source)
        before, began = turns[0], time.perf_counter()
        for step in range(1, STEPS + 1):
            next(source)
            time.sleep(max(0.0, began + step * STEP_SECONDS - time.perf_counter()))
        rates.append((turns[0] - before) / (time.perf_counter() - began))
    stop.set()
    return rates[1] / rates[0]


if __name__ == "__main__":
    main()
