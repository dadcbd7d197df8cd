"""What a recipe is: everything that decides a byte of the stream, as JSON values.

Two runs with equal recipes deliver equal rows. Settings of speed (workers, queues, memory, the
microbatch, how many ranks) are not in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from zephon.column_steps import ColumnStep
from zephon.exec.function_identity import identity_of
from zephon.exec.operator_identity import identity_of_operator
from zephon.io.fields import Column
from zephon.ops import BaseOp
from zephon.planner.logical import Node, RowFunction
from zephon.planner.tree import source_first
from zephon.qualified_names import qualified_name
from zephon.seeds import STREAM_VERSION


@dataclass(frozen=True, slots=True)
class Told:
    """What the code of a pipeline is, said in a process that has its source and knows its names.

    A function of a notebook, or of the script that runs, has neither in another process.

    source: the class of the work source. steps: of the first steps, as the recipe lists them, what
    each of their fields is that holds code; steps that were added elsewhere are not among them.
    """

    source: str
    steps: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, plan: Node, source: object, before: Told | None = None) -> Told:
        """Say it here and now, but for what was told ``before``, which stands."""
        nodes, kept = _nodes(plan), () if before is None else before.steps
        name = qualified_name(type(source)) if before is None else before.source
        return cls(name, (*kept, *map(_code, nodes[len(kept) :])))


def recipe_of(
    plan: Node,
    *,
    source: Mapping[str, Any],
    manifest: Mapping[str, Any],
    tokenizers: list[Mapping[str, Any]],
    lanes: int,
    global_batch_size: int | None,
    barriers: Sequence[int] = (),
    told: Told | None = None,
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
        told: of the code of a plan that comes from another process.
    """
    nodes, known = _nodes(plan), () if told is None else told.steps
    known = [*known, *[_NOTHING] * (len(nodes) - len(known))]
    meanings = map(_meaning, nodes, known)
    steps = [{"call": n.call, **said} for n, said in zip(nodes, meanings, strict=True) if said]
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


_NOTHING: Mapping[str, Any] = MappingProxyType({})


def _nodes(plan: Node) -> list[Node]:
    """List the steps that may be part of a recipe, from the source on."""
    return [n for n in source_first(plan) if n.input is not None and not n.on_batches]


def _meaning(node: Node, known: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a step; ``known``: some of its fields, described before."""
    stated = getattr(node, "fingerprint", None)
    if stated is not None:  # the user says what the step is known by
        return {"name": getattr(node, "name", node.call), "fingerprint": stated}
    return {
        name: known[name] if name in known else _described(getattr(node, name))
        for name in _telling(node)
    }


def _telling(node: Node) -> list[str]:
    names = [f.name for f in fields(node)]
    return [name for name in names if name not in node.told_elsewhere and name not in node.how]


def _code(node: Node) -> dict[str, Any]:
    """Describe what a step holds of the user's code, by field."""
    if getattr(node, "fingerprint", None) is not None:
        return {}
    values = {name: getattr(node, name) for name in _telling(node)}
    return {name: _described(value) for name, value in values.items() if _is_code(value)}


def _is_code(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_code, value))
    return isinstance(value, RowFunction | BaseOp) or callable(value)


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
