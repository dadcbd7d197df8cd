"""The policies of a plan, built from its physical nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import OptimizerError
from zephon.exec.floors import Floor
from zephon.exec.policies import (
    Apart,
    BestFit,
    BestFitDecreasing,
    BestFitWrap,
    BlockShuffle,
    Chain,
    Domains,
    EnsureMixture,
    FirstFit,
    Policy,
    Reservoir,
    Together,
    Windows,
    Wrap,
)
from zephon.planner import physical


def chain_of(floor: Floor, names: Sequence[str]) -> Chain:
    """Build the policies of a floor, for components of these names; all lanes share them."""
    return Chain([_policy(node, tuple(names)) for node in floor.policies])


def floor_then(floor: Floor, steps: Sequence[Mapping[str, Any]]) -> Floor:
    """Give a floor whose policies know the components that a recipe's steps name.

    Args:
        floor: the first of the plan of now.
        steps: of the recipe; they have the same calls that place documents.
    """
    mixtures = iter([step["mixture"] for step in steps if step["call"] == "ensure_mixture"])
    domains = iter([step["domains"] for step in steps if "domains" in step])
    policies: list[physical.PhysicalNode] = []
    for node in floor.policies:
        match node:
            case physical.KeepMixture():
                policies.append(replace(node, mixture=next(mixtures)))
            case physical.PackRows():
                policies.append(replace(node, domains=next(domains)))
            case _:
                policies.append(node)
    return replace(floor, policies=tuple(policies))


def measures_of(floor: Floor) -> tuple[str, ...]:
    """Name what functions of the user make of each row for the policies."""
    return tuple(step.name for step in floor.steps() if isinstance(step, physical.MeasureRows))


def _policy(node: physical.PhysicalNode, names: tuple[str, ...]) -> Policy[Any]:
    match node:
        case physical.JoinSplits():
            return Together()
        case physical.PartSplits():
            return Apart()
        case physical.ShuffleUnits(algorithm="streaming"):
            return Reservoir(buffer_size=node.buffer_size, seed=node.seed, stage=node.stage)
        case physical.ShuffleUnits():
            return BlockShuffle(
                buffer_size=node.buffer_size,
                seed=node.seed,
                stage=node.stage,
                warmup_growth=node.warmup_growth if node.algorithm == "block_warmup" else None,
            )
        case physical.ReorderWindows():
            return Windows(
                order=node.order, seed=node.seed, stage=node.stage, by_length=node.by_length
            )
        case physical.KeepMixture():
            return _keep_mixture(node, names)
        case physical.PackRows():
            packer = _packer(node, len(names))
            return (
                packer if node.domains is None else Domains(packer, _domains(node.domains, names))
            )
        case _:
            raise OptimizerError(f"launch: no policy for {type(node).__name__}")


def _packer(node: physical.PackRows, components: int) -> Policy[Any]:
    length, cap = node.max_length, node.max_sequences_per_bin
    match node.algorithm:
        case "wrap":
            return Wrap(max_length=length, max_sequences_per_bin=cap)
        case "best_fit_wrap":
            return BestFitWrap(
                max_length=length,
                max_sequences_per_bin=cap,
                min_sequence_length=node.min_sequence_length,
                **_pool(node),
            )
        case "best_fit_decreasing":
            return BestFitDecreasing(
                max_length=length,
                max_sequences_per_bin=cap,
                min_sequence_length=node.min_sequence_length,
                components=components,
                by_length=node.by_length,
                **_pool(node),
            )
        case _:
            packer = FirstFit if node.algorithm == "first_fit" else BestFit
            return packer(
                max_length=length,
                num_bins=node.num_bins or 1,
                max_sequences_per_bin=cap,
                min_sequence_length=node.min_sequence_length,
                flush_strategy=node.flush_strategy,
                components=components,
                by_length=node.by_length,
            )


def _pool(node: physical.PackRows) -> dict[str, int]:
    """Give the sizes of the pool that the call named; the policy has its own for the others."""
    sizes = {name: getattr(node, name) for name in ("candidate_pool_size", "max_candidate_age")}
    return {name: size for name, size in sizes.items() if size is not None}


def _keep_mixture(node: physical.KeepMixture, names: tuple[str, ...]) -> EnsureMixture:
    groups = list(dict.fromkeys(names))  # a component may span datasets, which are counted apart
    target: NDArray[np.float64] | None = None
    if node.mixture is not None:
        wanted = dict(node.mixture)
        target = np.array([wanted.get(name, 0.0) for name in groups], np.float64)
    return EnsureMixture(
        groups=[groups.index(name) for name in names],
        names=groups,
        target=target,
        max_buffer_size=node.max_buffer_size,
        drain_target_ratio=node.drain_target_ratio,
        obsolete_drain_rate=node.obsolete_drain_rate,
        weight_by=node.weight_by,
        warn_tolerance=node.warn_tolerance,
    )


def _domains(domains: Iterable[Iterable[str]], names: tuple[str, ...]) -> list[int]:
    """Number the domain of each component; each is in one, but -1 for those that are gone."""
    number = {name: place for place, domain in enumerate(domains) for name in domain}
    return [number.get(name, -1) for name in names]
