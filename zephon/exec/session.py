"""Opening a run, at the beginning or at a checkpoint, and writing down where it stands."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from zephon.errors import CheckpointError, PlanError, ZephonError
from zephon.exec.checkpoint import FORMAT, VERSION, content_digest
from zephon.exec.data_changes import with_null_texts
from zephon.exec.data_check import data_now, manifest_of
from zephon.exec.delivery import Position
from zephon.exec.editing import check_sizes, edited
from zephon.exec.edits import RESIZED, Edit
from zephon.exec.engine import Engine, Identity
from zephon.exec.fingerprint import Told, recipe_of
from zephon.exec.grown_data import grown_datasets
from zephon.exec.lane_states import lane_from_dict, lane_to_dict
from zephon.exec.lane_table import Tree, table_of, trees_of
from zephon.exec.lanes import Topology, make_topology
from zephon.exec.launch import REMOVED, assembly_of, launch, tokenizers_of
from zephon.exec.priming import prime
from zephon.exec.recipe_changes import changes, refuse_unless
from zephon.exec.saved_positions import own_position, position_from_dict, position_to_dict
from zephon.exec.saved_values import flag, whole
from zephon.exec.state_parts import OWN, refuse_missing, with_own
from zephon.exec.tokenizers import Tokenizer
from zephon.io.dataset import Dataset
from zephon.options import RuntimeOptions
from zephon.planner import physical
from zephon.planner.compiler import Plan
from zephon.planner.logical.custom import GROUP
from zephon.planner.tree import source_first
from zephon.version import __version__
from zephon.work.chunks.source_description import recipe_of_source
from zephon.work.source import WorkSource
from zephon.work.static_mixture import StaticMixtureWorkSource

FUNCTIONS = "functions"
"""The word of a change after which what lanes hold is made again."""


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
    topology = make_topology(
        global_batch_size=options.global_batch_size,
        canonical_replicas=lanes,
        dp_degree=dp_degree,
        dp_group_id=dp_group_id,
        mapping_strategy=options.mapping_strategy or "contiguous",
    )
    return topology if restored is None else replace(topology, since=_since(topology, restored))


def _since(topology: Topology, restored: Mapping[str, Any]) -> tuple[int, int]:
    """Say since when steps are of this size, and the rows of each lane before."""
    size, was = topology.global_batch_size, restored["recipe"]["global_batch_size"]
    edits = [Edit.from_dict(saved, topology.lanes) for saved in restored["edits"]]
    changed = [edit for edit in edits if RESIZED in edit.words]
    since = (int(changed[-1].step or 0), int(changed[-1].rows[0])) if changed else (0, 0)
    if size in (None, was):
        return since
    if was is None:  # ranks begin to share steps
        return 0, max(whole(each, "rows") for each in trees_of(restored["lanes"]).values())
    before = replace(topology, global_batch_size=was, since=since)
    step = int(restored["position"]["step"])
    return step, before.rows_before(step)


def identity_of(
    plan: Plan,
    source: WorkSource,
    options: RuntimeOptions,
    tokenizers: Sequence[Tokenizer],
    lanes: int,
    told: Told | None = None,
) -> Identity:
    """Describe everything that decides what is delivered, as JSON values."""
    recipe = recipe_of(
        plan.logical,
        source=recipe_of_source(source, None if told is None else told.source),
        manifest={name: each.recorded_manifest() for name, each in datasets_of(source).items()},
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
        told=told,
    )
    return Identity(recipe, [{"backend": t.backend, "version": t.version} for t in tokenizers])


def datasets_of(source: WorkSource) -> dict[str, Dataset]:
    """Give the datasets that are read, by name."""
    return {c.dataset.name: c.dataset for c in source.components if c.read}


def open_engine(
    plan: Plan,
    source: WorkSource,
    options: RuntimeOptions,
    topology: Topology,
    restored: Mapping[str, Any] | None,
    allow: frozenset[str] = frozenset(),
    told: Told | None = None,
) -> Engine:
    """Build an engine at the beginning, or at a checkpoint.

    Args:
        plan: what runs.
        source: where its rows come from.
        options: the settings of the run.
        topology: who delivers what.
        restored: the checkpoint; None: the beginning.
        allow: words of the changes since then that are let through.
        told: of the code of a pipeline that comes from another process.

    Raises:
        CheckpointError: the checkpoint belongs to another recipe or other data; names what differs.
        ShardError: a data file cannot be looked at.
    """
    if restored is not None and isinstance(source, StaticMixtureWorkSource):
        earlier = [each["source"] for each in restored["edits"]]
        grown = grown_datasets(restored["recipe"]["data"], datasets_of(source))
        source = source.continued([*earlier, restored["recipe"]["source"]], grown)
    tokenizers = tokenizers_of(plan, options)
    gone = "datasets" in allow
    prime(plan, source, options, tokenizers, restored, without_some=gone)
    identity = identity_of(plan, source, options, [*tokenizers.values()], topology.lanes, told)
    start = partial(launch, plan, source, options, tokenizers)
    datasets, verify = datasets_of(source), options.verify_data
    if restored is None:
        identity = replace(identity, manifest=manifest_of(datasets, verify))
        return start(identity, topology, Position(), None)
    data = data_now(restored, datasets, verify)
    saved = trees_of(restored["lanes"])
    before = _recipe_before(restored["recipe"], identity.recipe, saved)
    found = changes(before, identity.recipe, str(restored["library"]), data)
    refuse_unless(found, allow, _other_polars(restored, identity))
    check_sizes(restored, topology, source)
    unchanged = [name for name, change in data.items() if not change]
    manifest = manifest_of(datasets, verify, restored, unchanged)
    identity = replace(identity, manifest=manifest)
    made_by = restored.get("tokenizer_backends")
    now = list(identity.backends)
    if made_by != now:
        warnings.warn(
            f"restore: the checkpoint was taken with tokenizer back ends {made_by}, this run has "
            f"{now}; they agree on the probe texts, and a document that differs is refused",
            RuntimeWarning,
            stacklevel=4,
        )
    own = topology.own_lanes()
    refuse_missing([lane for lane in own if lane not in saved], list(saved))
    states = {lane: lane_from_dict(lane, saved[lane]) for lane in own}
    rows = _rows_of(saved)
    where = position_from_dict(
        restored["position"], topology, states, rows, allow, edited=bool(found)
    )
    if found:
        _refuse_apart(topology, where, [whole(each, "rows") for each in saved.values()])
    words = {each.word for each in found if each.word}
    edits, states = edited(plan, source, topology, restored, states, words - {FUNCTIONS})
    identity = replace(identity, edits=[edit.to_dict() for edit in edits])
    # Data that were added, or other ends, may give an ended run more.
    where = replace(where, ended="ended" in restored and not found)
    anew = REMOVED if len(edits) > len(restored["edits"]) and edits[-1].removed else ""
    if FUNCTIONS in words:
        anew = "functions changed"
    return start(identity, topology, where, states, edits, anew=anew)


def _recipe_before(
    was: Mapping[str, Any], now: Mapping[str, Any], saved: Mapping[int, Tree]
) -> Mapping[str, Any]:
    """Give a checkpoint's recipe, in which nulls mean what they do now if none was met before."""
    data = with_null_texts(was["data"], now["data"])
    if data == was["data"]:
        return was
    lanes = (lane_from_dict(lane, each) for lane, each in saved.items())
    met = any(lane.bottom().counts().bad().any() for lane in lanes)
    return was if met else {**was, "data": data}


def _rows_of(saved: Mapping[int, Tree]) -> dict[int, int]:
    """Give the rows handed out of each lane that goes on."""
    return {lane: whole(each, "rows") for lane, each in saved.items() if not flag(each, "ended")}


def _refuse_apart(topology: Topology, where: Position, rows: Sequence[int]) -> None:
    """Refuse to change a run whose ranks ended at different steps: no one step is its next."""
    if topology.global_batch_size is None or {*rows} == {topology.rows_before(where.step)}:
        return
    raise CheckpointError(
        f"restore: the ranks of this checkpoint ended apart, the first of them at step "
        f"{where.step}, and its lanes stand at rows {min(rows)} to {max(rows)}: "
        "a change has no one step to begin at; restore an earlier checkpoint, or change nothing"
    )


def _other_polars(restored: Mapping[str, Any], identity: Identity) -> str:
    """Say that another release of Polars wrote the checkpoint's expressions, if one did."""
    was, now = restored.get("polars"), identity.polars.get("polars")
    if was is None or now is None or was == now:
        return ""
    return (
        f"expressions are compared as Polars writes them: the checkpoint's were written by {was}, "
        f"this is {now}; where only the release differs, restore it under {was}"
    )


def waiting_state(
    plan: Plan, options: RuntimeOptions, restored: Mapping[str, Any], allow: frozenset[str]
) -> dict[str, Any]:
    """Write down where a run stands that was restored and has not begun; shares values with it.

    It is what was restored, all of it; of several ranks it also says which part is this rank's.
    """
    position, lanes = restored["position"], range(restored["lane_count"])
    try:
        topology = topology_of(plan, options, restored)
        begins_anew = "delivered" in position and position["dp_degree"] != topology.dp_degree
        if topology.dp_degree > 1 or begins_anew:
            rows = _rows_of(trees_of(restored["lanes"]))
            position, lanes = own_position(position, topology, rows, allow), topology.own_lanes()
        if topology.dp_degree == 1 and begins_anew:  # nobody else goes on from there
            state = {name: value for name, value in restored.items() if name != OWN}
            state["position"] = position
            return {**state, "digest": content_digest(state)}
    except ZephonError:
        pass  # it cannot go on from there, so it is no part of it that waits
    return with_own(restored, position, lanes)


def state_of(engine: Engine) -> dict[str, Any]:
    """Write down what was handed to the caller; the caller may change what comes back."""
    position, lanes = engine.state()
    topology, lasting = engine.topology, engine.identity.lasting
    state = {
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        **engine.identity.polars,
        "fingerprint": lasting["recipe"].digest,
        **{name: value.copy() for name, value in lasting.items()},
        "lane_count": topology.lanes,
        "position": position_to_dict(position, topology),
        "lanes": table_of({lane: lane_to_dict(at) for lane, at in lanes.items()}),
        **({"ended": True} if position.ended else {}),
    }
    known = {name: value.digest for name, value in lasting.items()}
    return {**state, "digest": content_digest(state, known)}
