"""Runs a recipe on several topologies, cut at random places, and compares every byte."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zephon.errors import PlanError, WrongKindError
from zephon.options import RUNNERS
from zephon.pipeline import Pipeline
from zephon.verification.cuts import Choices, Place, Stretch, stretches
from zephon.verification.ranks import starts_processes
from zephon.verification.report import report
from zephon.verification.run import Run, run_cut, run_reference

RANKS = (1, 2, 3, 4, 6, 8, 16, 32)
STEPS = 8
CUTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What ``verify`` found; as text, a table of hashes, how each run was cut, and the verdict.

    rows: R. lanes: L. runs: the first one is whole, the others were cut and are compared with it.
    skipped: numbers of ranks among which a step does not divide. map_batch: the recipe calls it.
    left_out: options of the recipe that mean nothing here. to_end: the runs were made to the end of
    the data.
    """

    rows: int
    lanes: int
    runs: tuple[Run, ...]
    skipped: tuple[int, ...] = ()
    map_batch: bool = False
    left_out: tuple[str, ...] = ()
    to_end: bool = False

    @property
    def same(self) -> bool:
        """Whether all runs handed out the same bytes."""
        return all(run.difference is None and run.failure is None for run in self.runs)

    def __str__(self) -> str:
        return report(self)


def verify(
    recipe: Callable[[], Pipeline],
    *,
    steps: int = STEPS,
    ranks: Sequence[int] = RANKS,
    cuts: int = CUTS,
    seed: int = 0,
    to_end: bool = False,
    runners: Sequence[str] = ("threads", "inline"),
) -> Verification:
    """Run a recipe on several topologies and compare what they hand out.

    The ranks of a topology are threads of this process. The first run is not cut; each of the
    others is, at places that ``seed`` chooses: all ranks take a checkpoint, and pipelines that are
    made anew go on from it, at the end of a step on another number of ranks, with other
    microbatches, runner and memory budget. Compared is every row: its tokens, labels, masks,
    bounds of documents, fields and meta, floats bit by bit; not what ``map_batch`` makes. About
    400 bytes are held for each row of a run.

    Args:
        recipe: makes a new pipeline at every call, with ``options(global_batch_size=...)``; its
            settings of ranks are overridden; ``mtp_mode``, where ranks meet, and on several ranks
            ``runner="process"`` are left out, since they are threads of this process.
        steps: how many global steps to run, fewer where the data end.
        ranks: numbers of ranks; those that do not divide a step are left out.
        cuts: of each run but the first.
        seed: chooses where runs are cut and how they go on.
        to_end: run to the end of the data instead, which must be there for all after one step.
        runners: what runs may go on with: "threads", "inline" or "process".

    Raises:
        PlanError: the recipe has no global batch size, or an argument cannot be.
        ZephonError: whatever stops the first run.
    """
    _check(recipe, steps=steps, ranks=ranks, cuts=cuts, seed=seed, runners=runners)
    described = _made(recipe)
    rows = described._options.global_batch_size
    if rows is None:
        raise PlanError(
            "verify: the recipe must say how many rows a step has, got no global_batch_size; "
            "without it ranks hand out whole lanes in turns, and only lanes can be compared: add "
            "options(global_batch_size=...)"
        )
    fitting = list(dict.fromkeys(each for each in ranks if rows % each == 0))
    if not fitting:
        raise PlanError(
            f"verify: ranks must divide global_batch_size={rows}, got "
            f"{', '.join(map(str, ranks))}; name some that do"
        )
    microbatch, map_batch = described._batching()
    choices = Choices(rows=rows, microbatch=microbatch, ranks=fitting, runners=tuple(runners))
    whole = Stretch(replace(choices.manner(fitting[0]), validated=False), Place(), None)
    with _each_warning_once():
        first, reference, lanes = run_reference(recipe, whole, rows, None if to_end else steps)
        runs = [first]
        for each in fitting[1:] or fitting:
            cut = tuple(stretches(each, len(reference), cuts, choices, seed=seed))
            runs.append(run_cut(recipe, cut, rows, reference, ended=first.ended))
    return Verification(
        rows=rows,
        lanes=lanes,
        runs=tuple(runs),
        skipped=tuple(each for each in ranks if rows % each),
        map_batch=map_batch,
        left_out=_left_out(described),
        to_end=to_end,
    )


def _made(recipe: Callable[[], Pipeline]) -> Pipeline:
    made = recipe()
    if not isinstance(made, Pipeline):
        raise WrongKindError(
            f"verify: recipe must be a function that makes a Pipeline, got {type(made).__name__} "
            "from it; return one"
        )
    return made


def _left_out(described: Pipeline) -> tuple[str, ...]:
    """Name the options that say in which process an engine runs, and where several meet."""
    options, found = described._options, []
    if options.mtp_mode:
        found.append("mtp_mode")
    if starts_processes(described):
        found.append("runner='process' on several ranks")
    found += ["aggregate_dir"] if options.aggregate_dir is not None else []
    found += ["aggregate_store"] if options.aggregate_store is not None else []
    return tuple(found)


@contextlib.contextmanager
def _each_warning_once() -> Iterator[None]:
    """Show what ranks warn of once, whatever numbers are in it; where they end is compared here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "rank .* ends where its own lanes end", RuntimeWarning)
        show, shown = warnings.showwarning, set[str]()

        def show_new(message: Warning | str, *where: Any, **named: Any) -> None:
            kind = re.sub(r"[\d.,]+", "0", str(message))
            if kind not in shown:
                shown.add(kind)
                show(message, *where, **named)

        warnings.showwarning = show_new
        yield


def _check(
    recipe: object,
    *,
    steps: int,
    ranks: Sequence[int],
    cuts: int,
    seed: int,
    runners: Sequence[str],
) -> None:
    if not callable(recipe):
        raise WrongKindError(
            f"verify: recipe must be a function that makes a Pipeline, got {recipe!r:.80}; pass one"
        )
    numbers = {"steps": (steps, 1), "cuts": (cuts, 0), "seed": (seed, None)}
    numbers.update({f"ranks[{i}]": (each, 1) for i, each in enumerate(ranks)})
    for name, (value, least) in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise PlanError(f"verify: {name} must be a whole number, got {value!r}; pass one")
        if least is not None and value < least:
            raise PlanError(f"verify: {name} must be at least {least}, got {value}; pass more")
    if not ranks:
        raise PlanError("verify: ranks must name at least one number of ranks; pass (1, 2, 4)")
    known = [each for each in RUNNERS if each != "auto"]
    if not runners or any(each not in known for each in runners):
        raise PlanError(
            f"verify: runners must be some of {', '.join(known)}, got {list(runners)!r}; name them"
        )
