"""How long it takes from `restore()` to the first batch: `python -m benchmarks.restore`.

From states of 10^6 and of 10^9 tokens, which a job reaches by repeating the lists, each in fresh
processes that have imported everything; the batch is compared with the one that followed the
state. Packing alone in the order of the files; rows shuffled within shards and in blocks; and a
buffer of 8,192 documents, all of which have to be read again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.jobs import WRAP, parse_arguments
from benchmarks.resuming import PASSES, SHUFFLE, Saved, own, public
from benchmarks.timing import Spread

if TYPE_CHECKING:
    from zephon import SampleBatch

CASES = {
    "wrap": Saved(title="wrap", lanes=1, order="sequential"),
    "blocks": Saved(title="rows within shards, then blocks, wrap", lanes=1, order="blocks"),
    "shuffle": Saved(
        title="rows within shards, shuffle of 8,192, wrap", lanes=1, steps=(SHUFFLE, WRAP)
    ),
}
POSITIONS = (10**6, 10**9)
PUBLIC_POSITIONS = (10**6, 10**8)  # at its rate the larger one would take minutes to reach
MOST = 1.0  # seconds


def main() -> None:
    """Reach each position once, and restore from it several times; print a Markdown table."""
    arguments = parse_arguments(str(__doc__), rounds=5)
    print(
        f"| job | at tokens | restore() to the first batch, s (must: {MOST:.0f}) | of processor, s "
        "| public 0.2.0, s | of processor, s |\n|---|---|---|---|---|---|"
    )
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            command = ("--reach", name, folder)
            own("restore", arguments.corpus, *command)
            theirs = Path(folder, "public")
            theirs.mkdir()
            where = {"folder": str(theirs), "exhausted_policy": "repeat"}
            reached = public(arguments.corpus, case, "reach", positions=PUBLIC_POSITIONS, **where)
            for position in sorted({*POSITIONS, *(PUBLIC_POSITIONS if reached else ())}):
                ours, others = [], []
                for _ in range(arguments.rounds):
                    if position in POSITIONS:
                        command = ("--restore", name, folder, str(position))
                        ours.append(own("restore", arguments.corpus, *command))
                    if reached and position in PUBLIC_POSITIONS:
                        found = public(
                            arguments.corpus, case, "restore", position=position, **where
                        )
                        others += [] if found is None else [found]
                print(line(case.title, position, ours, others), flush=True)


def line(
    title: str,
    position: int,
    ours: Sequence[Mapping[str, Any]],
    theirs: Sequence[Mapping[str, Any]],
) -> str:
    """Lay out what one position gave, as one line of the table.

    Raises:
        ValueError: the first batch was not the one that followed the state.
    """
    for who, found in (("zephon", ours), ("public", theirs)):
        if not all(each["same"] for each in found):
            raise ValueError(f"{title} at {position:,}: {who} goes on with another batch")
    cells = [
        str(Spread.of([each[name] for each in found])) if found else ""
        for found in (ours, theirs)
        for name in ("seconds", "processor")
    ]
    return f"| {title} | {position:,} | {' | '.join(cells)} |"


def reach(case: Saved, corpus: Path, folder: Path, positions: Sequence[int] = POSITIONS) -> None:
    """Write the states of some positions, and what follows each."""
    pipeline = case.described(corpus, PASSES)
    items, tokens = iter(pipeline), 0
    for position in positions:
        while tokens < position:
            tokens += _tokens(next(items))
        (folder / str(position)).write_bytes(pipeline.checkpoint(as_bytes=True))
        batch = next(items)
        (folder / f"{position}.json").write_text(json.dumps(batch.ids), encoding="utf-8")
        tokens += _tokens(batch)
    items.close()


def restore(case: Saved, corpus: Path, folder: Path, position: int) -> dict[str, Any]:
    """Time the first batch after a state.

    Returns:
        seconds, processor seconds, and whether it is the batch that followed.
    """
    state = (folder / str(position)).read_bytes()
    following = json.loads((folder / f"{position}.json").read_text(encoding="utf-8"))
    begin, worked = time.perf_counter(), time.process_time()
    items = iter(case.described(corpus, PASSES).restore(state))
    batch = next(items)
    batch.to_training(return_labels=True)
    seconds, processor = time.perf_counter() - begin, time.process_time() - worked
    items.close()
    return {
        "seconds": seconds,
        "processor": processor,
        "same": [list(each) for each in batch.ids] == following,
    }


def _tokens(batch: SampleBatch) -> int:
    from benchmarks.delivered import padding_of  # late: the parent's imports weigh on children
    from benchmarks.jobs import LENGTH

    return len(batch) * LENGTH - padding_of(batch)


def _child() -> None:
    import benchmarks.ours  # noqa: F401 (imports what a run needs before the clock starts)

    call = next(each for each in ("--reach", "--restore") if each in sys.argv)
    name, folder, *position = sys.argv[sys.argv.index(call) + 1 :]
    corpus = Path(sys.argv[sys.argv.index("--corpus") + 1])
    if call == "--reach":
        print(json.dumps(reach(CASES[name], corpus, Path(folder))))
    else:
        print(json.dumps(restore(CASES[name], corpus, Path(folder), int(position[0]))))


if __name__ == "__main__":
    _child() if {"--reach", "--restore"} & {*sys.argv} else main()
