"""Opening a run, at the beginning or at a checkpoint, and writing down where it stands."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from zephon.errors import CheckpointError, PlanError
from zephon.exec.checkpoint import FORMAT, VERSION, content_digest, lane_from_dict, lane_to_dict
from zephon.exec.delivery import Position
from zephon.exec.engine import Engine, Identity
from zephon.exec.fingerprint import digest, recipe_of
from zephon.exec.lanes import Topology, make_topology
from zephon.exec.launch import assembly_of, launch, tokenizers_of
from zephon.exec.priming import prime
from zephon.exec.recipe_changes import changes, refuse_unless
from zephon.exec.tokenizers import Tokenizer
from zephon.options import RuntimeOptions
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.logical.custom import GROUP
from zephon.planner.tree import source_first
from zephon.version import __version__
from zephon.work.chunks.source_description import recipe_of_source
from zephon.work.source import WorkSource


def topology_of(
    plan: Plan, options: RuntimeOptions, restored: Mapping[str, Any] | None
) -> Topology:
    """Say who delivers what; lanes that nobody named are the checkpoint's.

    Raises:
        PlanError: the settings do not fit each other.
        CheckpointError: the checkpoint has another number of lanes than the one named.
    """
    dp_degree, dp_group_id = options.data_identity()
    lanes = options.canonical_replicas
    if restored is not None:
        saved = int(restored["lane_count"])
        if lanes is not None and lanes != saved:
            raise CheckpointError(
                f"restore: the checkpoint has canonical_replicas={saved}, options say {lanes}; "
                "lanes are part of the order, leave canonical_replicas out or restore its value"
            )
        lanes = saved
    if options.global_batch_size is not None and not assembly_of(plan).drop_last:
        raise PlanError(
            "batch: drop_last=False cannot go with global_batch_size, since ranks cannot share an "
            "incomplete step; leave one of them out"
        )
    return make_topology(
        global_batch_size=options.global_batch_size,
        canonical_replicas=lanes,
        dp_degree=dp_degree,
        dp_group_id=dp_group_id,
        mapping_strategy=options.mapping_strategy or "contiguous",
    )


def identity_of(
    plan: Plan,
    source: WorkSource,
    options: RuntimeOptions,
    tokenizers: Sequence[Tokenizer],
    lanes: int,
) -> Identity:
    """Describe everything that decides what is delivered, as JSON values."""
    datasets = {c.dataset.name: c.dataset for c in source.components if c.read}
    recipe = recipe_of(
        plan.logical,
        source=recipe_of_source(source),
        manifest={name: d.recorded_manifest() for name, d in datasets.items()},
        tokenizers=[
            {
                "digest": t.digest,
                "bos_token_id": t.bos_token_id,
                "eos_token_id": t.eos_token_id,
                "pad_token_id": t.pad_token_id,
            }
            for t in tokenizers
        ],
        lanes=lanes,
        global_batch_size=options.global_batch_size,
        barriers=[
            node.every * GROUP
            for node in source_first(plan.physical)
            if isinstance(node, physical.CallInOrder) and node.every > 1
        ],
    )
    return Identity(recipe, [{"backend": t.backend, "version": t.version} for t in tokenizers])


def open_engine(
    plan: Plan,
    source: WorkSource,
    options: RuntimeOptions,
    topology: Topology,
    restored: Mapping[str, Any] | None,
    allow: frozenset[str] = frozenset(),
) -> Engine:
    """Build an engine at the beginning, or at a checkpoint.

    Args:
        plan: what runs.
        source: where its rows come from.
        options: the settings of the run.
        topology: who delivers what.
        restored: the checkpoint; None: the beginning.
        allow: words of the changes since then that are let through.

    Raises:
        CheckpointError: the checkpoint belongs to another recipe; names what differs.
    """
    tokenizers = tokenizers_of(plan, options)
    prime(plan, source, options, tokenizers, restored)
    identity = identity_of(plan, source, options, [*tokenizers.values()], topology.lanes)
    start = partial(launch, plan, source, options, tokenizers, identity, topology)
    if restored is None:
        return start(Position(), None)
    refuse_unless(changes(restored["recipe"], identity.recipe), allow)
    made_by = restored.get("tokenizer_backends")
    now = list(identity.backends)
    if made_by != now:
        warnings.warn(
            f"restore: the checkpoint was taken with tokenizer back ends {made_by}, this run has "
            f"{now}; they agree on the probe texts, and a document that differs is refused",
            RuntimeWarning,
            stacklevel=4,
        )
    saved = restored["lanes"]
    missing = [lane for lane in topology.own_lanes() if str(lane) not in saved]
    if missing:
        raise CheckpointError(
            f"restore: lanes {missing} are not in this checkpoint, which holds "
            f"{', '.join(saved) or 'none'}; it was taken on a rank that does not run them: restore "
            "it on as many ranks as then, each from its own checkpoint, or take one with all lanes "
            "(dp_degree=1), from which any number of ranks goes on"
        )
    states = {lane: lane_from_dict(lane, saved[str(lane)]) for lane in topology.own_lanes()}
    return start(_position(restored["position"], topology, states), states)


def _position(saved: Mapping[str, Any], topology: Topology, states: Mapping[int, Any]) -> Position:
    if topology.global_batch_size is None:
        return Position(
            rows={lane: state.rows for lane, state in states.items()}, turn=int(saved["turn"])
        )
    delivered = int(saved["delivered"])
    if delivered and int(saved["dp_degree"]) != topology.dp_degree:
        raise CheckpointError(
            f"restore: the checkpoint was taken inside step {saved['step']} with "
            f"dp_degree={saved['dp_degree']}, options say {topology.dp_degree}; restore it with "
            f"dp_degree={saved['dp_degree']}, or take checkpoints at the end of a step"
        )
    return Position(step=int(saved["step"]), delivered=delivered)


def state_of(engine: Engine) -> dict[str, Any]:
    """Write down what was handed to the caller; the caller may change what comes back."""
    position, lanes = engine.state()
    topology = engine.topology
    if topology.global_batch_size is None:
        where: dict[str, Any] = {"turn": position.turn}
    else:
        where = {
            "step": position.step,
            "delivered": position.delivered,
            "dp_degree": topology.dp_degree,
        }
    state = {
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        "fingerprint": digest(engine.identity.recipe),
        "recipe": copy.deepcopy(dict(engine.identity.recipe)),
        "tokenizer_backends": [dict(made) for made in engine.identity.backends],
        "lane_count": topology.lanes,
        "position": where,
        "lanes": {str(lane): lane_to_dict(at) for lane, at in lanes.items()},
    }
    return {**state, "digest": content_digest(state)}
