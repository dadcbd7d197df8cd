"""What a recipe is: everything that decides a byte of the stream, as JSON values.

Two runs with equal recipes deliver equal rows. Settings of speed (workers, queues, memory, the
microbatch, how many ranks) are not in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from zephon.column_steps import ColumnStep
from zephon.exec.function_identity import identity_of
from zephon.exec.operator_identity import identity_of_operator
from zephon.io.fields import Column
from zephon.ops import BaseOp
from zephon.planner.logical import Node, RowFunction
from zephon.planner.tree import source_first
from zephon.seeds import STREAM_VERSION


def recipe_of(
    plan: Node,
    *,
    source: Mapping[str, Any],
    manifest: Mapping[str, Any],
    tokenizers: list[Mapping[str, Any]],
    lanes: int,
    global_batch_size: int | None,
    barriers: Sequence[int] = (),
) -> dict[str, Any]:
    """Describe a run.

    Args:
        plan: the logical plan as it was called, not as it was optimized.
        source: what the work source says of itself.
        manifest: per dataset, its shards by name, rows and bytes.
        tokenizers: digest and special ids of each tokenizer of the plan.
        lanes: L.
        global_batch_size: R, or None.
        barriers: rows after which each operator that remembers begins anew.
    """
    steps = [
        {"call": node.call, **_meaning(node)}
        for node in source_first(plan)
        if node.input is not None and not node.on_batches and _meaning(node)
    ]
    recipe = {
        "stream_version": STREAM_VERSION,
        "source": dict(source),
        "data": dict(manifest),
        "steps": steps,
        "tokenizers": [dict(t) for t in tokenizers],
        "canonical_replicas": lanes,
        "global_batch_size": global_batch_size,
    }
    if barriers:
        recipe["flush_every_rows"] = list(barriers)
    return json.loads(json.dumps(recipe))  # tuples become lists, as in a checkpoint


def digest(recipe: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return the SHA-256 of JSON values, such as a recipe; the order of keys does not matter."""
    text = json.dumps(recipe, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _meaning(node: Node) -> dict[str, Any]:
    stated = getattr(node, "fingerprint", None)
    if stated is not None:  # the user says what the step is known by
        return {"name": getattr(node, "name", node.call), "fingerprint": stated}
    return {
        f.name: _described(getattr(node, f.name))
        for f in fields(node)
        if f.name not in node.told_elsewhere and f.name not in node.how
    }


def _described(value: Any) -> Any:
    if isinstance(value, RowFunction):
        return {
            "function": _function(value.function, value.fingerprint),
            "drop_none": value.drop_none,
        }
    if isinstance(value, BaseOp):
        return identity_of_operator(value)
    if isinstance(value, ColumnStep):
        data = [hashlib.sha256(each.data).hexdigest() for each in value.expressions]
        names = [each.name for each in value.expressions]
        return {"text": str(value), "sha256": digest([value.kind, data, names, value.names])}
    if callable(value):
        return identity_of(value)
    if isinstance(value, tuple):
        return [_described(each) for each in value]
    return [value.path, value.kind] if isinstance(value, Column) else value


def _function(function: Any, stated: str | None) -> Any:
    """Describe a function by what the user says it is known by, or by what it is."""
    return {"fingerprint": stated} if stated is not None else identity_of(function)
