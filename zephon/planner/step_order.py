"""Which steps may not stand in this order, or in this company; asked at every call."""

from __future__ import annotations

from zephon.errors import PlanError
from zephon.planner.logical import EnsureMixture, MakesTokens, Node, Tokenize
from zephon.planner.tree import source_first
from zephon.work.source import WorkSource
from zephon.work.static_mixture import StaticMixtureWorkSource


def check_mixing(top: Node, source: WorkSource) -> None:
    """Refuse steps that would undo what the work source's mixture counts.

    Args:
        top: the last step that was called.
        source: of the pipeline.

    Raises:
        PlanError: names the step and what to do.
    """
    steps = source_first(top)
    tokenize = next((i for i, n in enumerate(steps) if isinstance(n, MakesTokens)), 0)
    early = next((n for n in steps[:tokenize] if n.reorders), None)
    if source.mixture_unit == "tokens" and early is not None:
        raise PlanError(
            f"{early.call}: with mixture_unit='tokens' components are merged where their tokens "
            f"are known, and nothing may reorder rows before; call {early.call} after tokenize"
        )
    if not isinstance(source, StaticMixtureWorkSource) or source.token_estimation is None:
        return
    for number, node in enumerate(steps):
        if not isinstance(node, EnsureMixture):
            continue
        if node.weight_by == "samples":
            raise PlanError(
                "ensure_mixture: weight_by='samples' undoes token_estimation, with which weights "
                "count tokens; use weight_by='auto', or take token_estimation out of the source"
            )
        if number < tokenize:
            raise PlanError(
                "ensure_mixture: it stands before tokenize, and with token_estimation it must "
                "count tokens; call it after tokenize"
            )


def check_measures(top: Node) -> None:
    """Refuse rows that would have to be measured in two ways, or in parts.

    Raises:
        PlanError: names the step and what to do.
    """
    steps = source_first(top)
    earlier: dict[str, tuple[int, Node]] = {}
    for number, node in enumerate(steps):
        measure = node.measure()
        if measure is None:
            continue
        later = steps[number + 1 :]
        if any(isinstance(other, Tokenize) and not other.keeps_rows() for other in later):
            raise PlanError(
                f"{node.call}: what a row measures is not known of its parts, into which a later "
                f"tokenize(split_long_samples=True) splits it; call {node.call} after tokenize"
            )
        first, other = earlier.setdefault(measure.name, (number, node))
        if other.measure() != measure:
            raise PlanError(
                f"{node.call}: an earlier {other.call} weighs rows by something else, and a row "
                "has one weight; pass the same weight_by to both, or 'auto' or 'samples' to one"
            )
        if any(isinstance(between, MakesTokens) for between in steps[first:number]):
            raise PlanError(
                f"{node.call}: an earlier {other.call} weighs rows as they are before tokenize, "
                "and a row has one weight; pass weight_by='auto' or 'samples' to one of them"
            )
