"""Before a run begins: the tokens of a mean row of each dataset, where a mixture counts them.

What counts rows is the plan's own segment, or the user's ``measure``. It runs where the run's tasks
run, on threads or inline, and nothing shows which. A restored run takes the costs that its
checkpoint carries, and measures nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from zephon.exec.counting import MeasureCount, SegmentCount
from zephon.exec.edits import Edit
from zephon.exec.grown_data import shards_at_first
from zephon.exec.launch import assembly_of, workers_of
from zephon.exec.parts import segment_of
from zephon.exec.runners import InlineRunner, ThreadsRunner
from zephon.exec.tokenizers import Tokenizer
from zephon.io.far_reading import FarReading
from zephon.io.group_cache import GroupCache
from zephon.io.options import StoreOptions
from zephon.options import DEFAULT_MEMORY_BUDGET, RuntimeOptions, parse_size
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.tree import source_first
from zephon.work.source import WorkSource
from zephon.work.static_mixture import StaticMixtureWorkSource
from zephon.work.token_estimation import Count, TokenRatio, mean_cost

_COUNTED_BY: WeakKeyDictionary[WorkSource, object] = WeakKeyDictionary()
"""What counted rows when a source got its costs here: a function, or steps; None: a checkpoint.

Two pipelines may share a source but not its tokenizer, and a run from the beginning does not go by
what a checkpoint said. Costs that were set by hand are not in here, and stand.
"""


def prime(
    plan: Plan,
    source: WorkSource,
    options: RuntimeOptions,
    tokenizers: Mapping[physical.MakesTokens, Tokenizer],
    restored: Mapping[str, Any] | None,
    *,
    without_some: bool = False,
) -> None:
    """Give a source that counts estimated tokens its costs, from a checkpoint or by measuring.

    A custom source that asks to be primed is, whenever a run begins. ``without_some``: of the
    datasets of a checkpoint some may be gone.

    Raises:
        PlanError: a dataset must be measured, and the plan makes no tokens.
        ExecutionError: the user's ``measure`` failed; names the row.
        ShardError: a file cannot be read.
    """
    mixture = source if isinstance(source, StaticMixtureWorkSource) else None
    estimation = None if mixture is None else mixture.token_estimation
    if mixture is not None and estimation is not None and restored is not None:
        saved = _saved_costs(mixture, restored, without_some=without_some)
        _restore_costs(plan, source, options, tokenizers, saved)
        return
    counted_by = estimation.measure if estimation and estimation.measure else _steps(plan)
    stale = estimation is not None and _COUNTED_BY.get(source, counted_by) != counted_by
    if stale or _requires_priming(source):
        with counting(plan, source, options, tokenizers) as count:
            source.prime(
                io_options=options.io_options,
                counting_spec=count,
                pre_tokenize_replay=None,
                mp_context=None,
            )
        if estimation is not None:
            _COUNTED_BY[source] = counted_by


def _requires_priming(source: WorkSource) -> bool:
    required: Any = source.requires_token_priming
    return bool(required() if callable(required) else required)  # a custom one may be a method


def cost_lines(source: WorkSource, restored: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Say what a mean row of each dataset costs, or that it is still to be measured."""
    if not isinstance(source, StaticMixtureWorkSource) or source.token_estimation is None:
        return ()
    estimation = source.token_estimation
    saved = _saved_costs(source, restored)
    costs = saved or source.token_costs
    ratios = {} if saved else source.token_ratios
    lines = []
    for component in source.components:
        name, dataset = component.name, component.dataset
        given = estimation.given_ratio(name)
        if not component.read:
            continue
        if given is not None:
            cost = saved[name] if saved else mean_cost(dataset, TokenRatio(given))
            lines.append(f"{name}: {cost:,.1f} tokens a mean row, given as {given:g} a byte")
        elif costs is not None and name in costs:
            how = _how(ratios[name]) if name in ratios else "as measured when the run began"
            lines.append(f"{name}: {costs[name]:,.1f} tokens a mean row, {how}")
        else:
            rows = min(estimation.calibration_samples, dataset.total())
            lines.append(
                f"{name}: tokens of a mean row are measured when the run begins, on {rows:,} rows"
            )
    return tuple(lines)


def _how(ratio: TokenRatio) -> str:
    shown = f"{ratio.tokens_per_byte:.4g} a byte"
    if ratio.how == "measured":
        return f"{shown}, measured on {ratio.measured_rows:,} rows"
    return f"{shown} by fallback_tokens_per_byte"


def _saved_costs(
    source: StaticMixtureWorkSource,
    restored: Mapping[str, Any] | None,
    *,
    without_some: bool = False,
) -> dict[str, float] | None:
    """Give the costs of a checkpoint's run, for the shards that were there when it was primed.

    What is given now stays as given. Of datasets that the run did not know there are no costs, but
    those given. None if there is no checkpoint, or it has no costs, or those of others too, unless
    these may be gone: then it belongs to another recipe.
    """
    estimation = source.token_estimation
    if restored is None or estimation is None:
        return None
    saved = restored["recipe"].get("source", {}).get("token_costs")
    datasets = {c.name: c.dataset for c in source.components if c.read}
    if saved is None or (saved.keys() - datasets.keys() and not without_some):
        return None
    edits = [Edit.from_dict(each, restored["lane_count"]) for each in restored["edits"]]
    found = {}
    for name, dataset in datasets.items():
        ratio = estimation.given_ratio(name)
        if ratio is None and name in saved:
            found[name] = saved[name]
        elif ratio is not None:
            first = None
            if name in saved:
                growths = [edit.grown[name] for edit in edits if name in edit.grown]
                first = shards_at_first(restored["recipe"]["data"][name], dataset, growths)
            found[name] = mean_cost(dataset, TokenRatio(ratio), first)
    return found


def _restore_costs(
    plan: Plan,
    source: WorkSource,
    options: RuntimeOptions,
    tokenizers: Mapping[physical.MakesTokens, Tokenizer],
    saved: Mapping[str, float] | None,
) -> None:
    """Take the costs of a checkpoint; measure those of datasets that it did not know."""
    if saved is None or not isinstance(source, StaticMixtureWorkSource):
        return
    if any(c.read and c.name not in saved for c in source.components):
        with counting(plan, source, options, tokenizers) as count:
            source.prime(counting_spec=count, known=saved)
    else:
        source.set_token_costs(saved)
    _COUNTED_BY[source] = None


@contextmanager
def counting(
    plan: Plan,
    source: WorkSource,
    options: RuntimeOptions,
    tokenizers: Mapping[physical.MakesTokens, Tokenizer],
) -> Generator[Count | None, None, None]:
    """Make what counts the tokens of rows; None if neither the plan nor the user can.

    Its threads and what it decoded are gone at the end.
    """
    datasets = {
        c.dataset.name: (number, c.dataset) for number, c in enumerate(source.components) if c.read
    }
    estimation = source.token_estimation
    measure = None if estimation is None else estimation.measure
    budget = options.memory_budget
    size = DEFAULT_MEMORY_BUDGET if budget is None else parse_size(budget)
    stores = StoreOptions.from_any(options.io_options)
    far = FarReading.of(stores)
    cache = GroupCache(size // 2)  # the other half is for texts and tokens
    if measure is not None:
        yield MeasureCount(datasets, cache, measure, far)
    elif assembly_of(plan).layout.tokens_field is None:
        yield None
    else:
        workers = workers_of(plan, options)
        runner = InlineRunner() if workers.runner == "inline" else ThreadsRunner(workers.count)
        try:
            segment = segment_of(plan, source, tokenizers, cache, io_options=stores)
            yield SegmentCount(datasets, cache, runner, segment, _fetch(_steps(plan)), far)
        finally:
            runner.close()
    cache.clear()


def _steps(plan: Plan) -> tuple[physical.Step, ...]:
    """Give the steps that decide how many tokens a row has; equal ones count alike."""
    segments = [n for n in source_first(plan.physical) if isinstance(n, physical.Segment)]
    return tuple(step for segment in segments for step in segment.steps)


def _fetch(steps: tuple[physical.Step, ...]) -> physical.FetchRows:
    return next(step for step in steps if isinstance(step, physical.FetchRows))
