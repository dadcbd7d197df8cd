"""What it costs to be resumable at any row: `python -m benchmarks.resumable`.

In processor time: one pass with its lanes' histories and one without them, 15 pairs in turn; how
much more, with the 95 % interval of the median. In tokens: those of one pass that are never
delivered, beside the public package, which empties its packers now and then to be resumable.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.jobs import JOBS, WRAP, bins, parse_arguments
from benchmarks.pairs import PAIRS, run, show_pairs
from benchmarks.resuming import PACKING, SHUFFLE, Saved, own, public

TIMED = ("token_lists_275", "token_lists_best_fit", "token_lists_shuffle", "text_parquet")
COUNTED = {
    "wrap": PACKING["wrap"],
    "shuffle": Saved(title="shuffle of 8,192, then wrap, 8 lanes", steps=(SHUFFLE, WRAP)),
    "best_fit": Saved(title="best_fit, 32 bins, 8 lanes", steps=(bins("best_fit"),)),
}
CHUNKS = (16_384, 1_024)  # the default, and one that empties packers during this pass


def main() -> None:
    """Run the pairs, then count tokens; print two Markdown tables."""
    if "--run" in sys.argv or "--count" in sys.argv:
        _child()
        return
    arguments = parse_arguments(str(__doc__), rounds=PAIRS)
    show_pairs("resumable", "histories", TIMED, arguments.corpus, arguments.rounds)
    print(
        "\n| job | tokens | not delivered by Zephon | not delivered by public 0.2.0, chunk_size "
        f"{CHUNKS[0]:,} | {CHUNKS[1]:,} |\n|---|---|---|---|---|"
    )
    for name, saved in COUNTED.items():
        ours = own("resumable", arguments.corpus, "--count", name)
        cells = [f"{ours['tokens']:,}", told(ours)]
        for size in CHUNKS:
            theirs = public(arguments.corpus, saved, "count", chunk_size=size)
            cells.append("" if theirs is None else f"{ours['tokens'] - theirs['tokens']:,}")
        print(f"| {saved.title} | {' | '.join(cells)} |", flush=True)


def told(found: Mapping[str, Any]) -> str:
    """Say how many tokens were not delivered, and why."""
    lost = found["tokens"] - found["delivered"]
    reasons = ", ".join(f"{count:,} {why}" for why, count in found["dropped"].items() if count)
    return f"{lost:,} ({reasons})" if reasons else f"{lost:,}"


def leave_out_histories() -> None:
    """Make lanes of this process forget at once what only a checkpoint needs."""
    from zephon.exec.engine import Engine
    from zephon.exec.history import TICK, LaneHistory
    from zephon.exec.lane_run import LaneRun

    def add(self: Any, arrivals: Any, finishing: Any) -> None:
        self.rows += len(finishing)
        if len(arrivals):
            self._last_draw = int(arrivals.ordinal[-1])

    def nothing(self: Any, *_: Any) -> None:
        pass

    def no_tick(self: Any, ordinal: int) -> None:
        self._next_tick = ordinal + TICK

    for kind, calls in (
        (LaneHistory, {"add": add, "add_tick": nothing, "forget_before": nothing}),
        (LaneRun, {"_add_tick": no_tick}),
        (Engine, {"_counted": lambda self, ended: []}),  # which documents were dropped, by a state
    ):
        for name, function in calls.items():
            assert callable(getattr(kind, name)), name
            setattr(kind, name, function)


def counted(saved: Saved, corpus: Path) -> dict[str, Any]:
    """Run one pass. Returns tokens of the lists, tokens delivered, and tokens dropped by reason."""
    from benchmarks.plain import token_count

    pipeline = saved.described(corpus)
    for _ in pipeline:
        pass
    (account,) = pipeline.accounting().values()
    return {
        "tokens": token_count(saved.job(), corpus),
        "delivered": account["tokens_delivered"],
        "dropped": account["tokens_dropped"],
    }


def _child() -> None:
    import benchmarks.ours  # noqa: F401 (imports what a run needs before the clock starts)

    corpus = Path(sys.argv[sys.argv.index("--corpus") + 1])
    if "--count" in sys.argv:
        print(json.dumps(counted(COUNTED[sys.argv[-1]], corpus)))
        return
    name, kind = sys.argv[-2:]
    if kind == "without":
        leave_out_histories()
    print(json.dumps(run(JOBS[name], corpus)))


if __name__ == "__main__":
    main()
