"""Jobs that are saved and gone on with, for both packages; imports the standard library alone.

Token lists of about 275 tokens, packed to 2,049, in batches of 8 rows. `public` runs what
`peers/zephon_resuming.py` can do with the same job in the environment of the public package.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.jobs import WRAP, Job, Step, bins
from benchmarks.timing import start

if TYPE_CHECKING:
    from zephon import Pipeline

DATA = "tokens-275"
PASSES = 20  # of 78 M tokens, where a job must not end
SHUFFLE: Step = ("shuffle", {"buffer_size": 8_192, "seed": 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A job that is saved.

    lanes: how many; step_rows: of a global step, None for plain lanes; order: as of `Job`.
    batches: how many come before it is saved: enough to fill what the steps hold.
    """

    title: str
    steps: tuple[Step, ...] = (WRAP,)
    lanes: int = 8
    step_rows: int | None = None
    order: str = "within_shard"
    batches: int = 200

    def job(self, passes: int = 1) -> Job:
        """Describe the job, over so many passes of the lists."""
        return Job(
            title=self.title,
            data={DATA: 1.0},
            text=False,
            order=self.order,
            steps=self.steps,
            step_rows=self.step_rows,
            passes=passes,
        )

    def described(self, corpus: Path, passes: int = 1) -> Pipeline:
        """Describe it as a user would."""
        from benchmarks.ours import described  # late: the parent's imports weigh on children

        return described(self.job(passes), corpus).options(canonical_replicas=self.lanes)


PACKING = {
    "wrap": Saved(title="wrap, 8 lanes"),
    "best_fit": Saved(title="best_fit, 32 bins, 8 lanes", steps=(bins("best_fit"),)),
    "wrap_64": Saved(title="wrap, 64 lanes, global steps of 768", lanes=64, step_rows=768),
    "best_fit_64": Saved(
        title="best_fit, 32 bins, 64 lanes, global steps of 768",
        steps=(bins("best_fit"),),
        lanes=64,
        step_rows=768,
        batches=400,
    ),
}
SHUFFLED = Saved(
    title="shuffle of 8,192, then best_fit, 8 lanes",
    steps=(SHUFFLE, bins("best_fit")),
    batches=1500,
)


def public(corpus: Path, saved: Saved, call: str, **arguments: Any) -> dict[str, Any] | None:
    """Let the public package do something with a job; None where its environment was not made."""
    python = corpus / "peer-venv" / "bin" / "python"
    if not python.exists():
        return None
    described = {
        "call": call,
        "corpus": str(corpus),
        "source": saved.job().source(),
        "steps": saved.steps,
        "lanes": saved.lanes,
        "batches": saved.batches,
        **arguments,
    }
    script = Path(__file__).with_name("peers") / "zephon_resuming.py"
    output, _ = start((str(python), str(script), json.dumps(described)))
    return json.loads(output.splitlines()[-1])


def own(module: str, corpus: Path, *arguments: str) -> dict[str, Any]:
    """Run a benchmark file as a process of its own; return what it printed."""
    command = (sys.executable, "-m", f"benchmarks.{module}", "--corpus", str(corpus), *arguments)
    output, _ = start(command)
    return json.loads(output.splitlines()[-1])
