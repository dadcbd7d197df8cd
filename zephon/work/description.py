"""What a mixture says of itself in words: what weights count, how they change, when it ends."""

from __future__ import annotations

from collections.abc import Iterator

from zephon.errors import ExecutionError
from zephon.work.budget import Amount
from zephon.work.component import Rules
from zephon.work.mixture import MixtureSpec
from zephon.work.mixture_plan import MixturePlan, Reading
from zephon.work.words import cut_short

MOST_LANES = 1024
"""Lanes whose lengths are worked out for a line of text."""


def describe(plan: MixturePlan, lengths: list[int | None] | ExecutionError | None) -> Iterator[str]:
    """Give the lines that ``explain`` prints of a mixture.

    Args:
        plan: the mixture.
        lengths: draws of each lane, why they are not known, or None where there are too many.
    """
    yield f"weights count {plan.counted}"
    yield from _schedule_lines(plan)
    budgets = [(each, amount) for each in plan.reading if (amount := each.rules.budget)]
    yield from cut_short(map(_budget, budgets), len(budgets), "budgets")
    yield from _end_lines(plan)
    yield from _order_lines(plan)
    yield _length_line(plan, lengths)


def _budget(budget: tuple[Reading, Amount]) -> str:
    each, amount = budget
    return f"budget of {each.component.name}: {amount.count:,.0f} {amount.unit}"


def _schedule_lines(plan: MixturePlan) -> Iterator[str]:
    schedule = plan.schedule
    if schedule is None:
        return
    how = "along lines between points" if schedule.interpolation == "linear" else "in jumps"
    yield f"weights change {how}; at the beginning {_shares(plan.mixture)}"
    points = (f"from {at:,.10g} {schedule.unit}: {_shares(spec)}" for at, spec in schedule.points)
    for line in cut_short(points, len(schedule.points), "points"):
        yield f"  {line}"
    last = schedule.points[-1][1].weights
    gone = [each.component.name for each in plan.reading if not last[each.component.name]]
    if gone:
        shown = ", ".join(cut_short(gone, len(gone)))
        yield f"  no weight in the end: {shown}; nothing waits for rows not drawn by then"


def _end_lines(plan: MixturePlan) -> Iterator[str]:
    ends: dict[str, list[Reading]] = {}
    for each in plan.reading:
        ends.setdefault(_end(each.rules), []).append(each)
    for words, who in ends.items():
        names = ", ".join(cut_short((each.component.name for each in who), len(who)))
        yield f"{names}: {words}"


def _end(rules: Rules) -> str:
    if rules.must is not None:
        passes = "a pass" if rules.must == 1 else f"{rules.must} passes"
        return f"repeats until each has made {passes}"
    if rules.policy == "redistribute":
        return "one pass, then its weight goes to the others"
    if rules.policy == "stop":
        return "one pass; the source stops where a row of it is missing"
    if rules.passes is None:
        return "repeats without end"
    return f"at most {rules.passes} passes; the source stops where a row of it is missing"


def _order_lines(plan: MixturePlan) -> Iterator[str]:
    settings = plan.settings
    words = ["shards in random order" if settings.shuffle_shards else "shards in order"]
    if settings.shuffle_within_shard:
        words.append("rows of each shard in random order")
    sizes = sorted({size for each in plan.reading if (size := each.rules.block_size)})
    if all((each.rules.block_size or 0) >= each.passes.rows for each in plan.reading):
        words = ["all rows of each dataset in random order"]
    elif sizes:
        shown = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        words.append(f"then rows in random order within blocks of {shown}")
    same = [each.component.name for each in plan.reading if not each.rules.fresh]
    if same:
        words.append(f"the same in every pass of {', '.join(cut_short(same, len(same)))}")
    yield f"order: {', '.join(words)}; seed {settings.seed}"


def _length_line(plan: MixturePlan, lengths: list[int | None] | ExecutionError | None) -> str:
    if plan.counted == "tokens":
        return "draws: known once the data are read, since tokens decide"
    if isinstance(lengths, ExecutionError):
        if plan.schedule is not None and plan.schedule.unit == "steps":
            return "draws: known with options(global_batch_size=...), which says what a step is"
        return "draws: known once the run begins, when the tokens of a mean row are estimated"
    if lengths is None:
        return f"draws: not worked out for more than {MOST_LANES:,} lanes"
    finite = [length for length in lengths if length is not None]
    if len(finite) < len(lengths):
        return "draws: without end"
    total = sum(finite)
    if len(finite) == 1:
        return f"draws: {total:,}"
    return f"draws: {total:,} in {len(finite)} lanes, {min(finite):,} to {max(finite):,} in each"


def _shares(spec: MixtureSpec) -> str:
    shares = spec.normalized
    shown = (f"{name} {share:.4g}" for name, share in shares.items())
    return ", ".join(cut_short(shown, len(shares)))
