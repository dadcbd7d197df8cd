"""What packing and mixing calls say in words, resolved: fields, weights, domains."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zephon.batches.token_fields import TOKEN_FIELDS
from zephon.errors import PlanError, nearest
from zephon.io.fields import Column, merged_kind
from zephon.ops import DomainGroups
from zephon.planner.aligned import Probe, find_aligned
from zephon.planner.checks import check_reads
from zephon.planner.logical import Fetch, MakesTokens, Node, ReadComponent
from zephon.planner.logical.pack import Pack
from zephon.planner.tree import top_first


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFields:
    """What is packed, and how it is held; see ``logical.pack.Pack``."""

    tokens_field: str | None
    aligned: tuple[Column, ...]
    passed_over: tuple[tuple[str, str], ...]
    without: tuple[str, ...] = ()
    container: str


def packed_fields(
    below: Node,
    tokens_field: str,
    aligned_fields: str | Sequence[str] | Mapping[str, str],
    call: str,
    datasets: Mapping[str, Probe],
    *,
    emit_positions: bool,
    loses_fields: bool = True,
    measured: bool,
    payloads: object = None,
) -> PackedFields:
    """Say which fields a packing call packs.

    Args:
        below: the step under it.
        tokens_field: a name, or "auto".
        aligned_fields: names, by name the type of the values, or "auto".
        call: which call, for messages.
        datasets: of the components, by name.
        emit_positions: the call makes a field ``positions``.
        loses_fields: a field that is not packed is lost; see ``logical.pack.Pack``.
        measured: a function measures rows, so there need be no tokens.
        payloads: what becomes of a row's documents, where they stay apart.

    Raises:
        PlanError: there is no token field, or one that cannot be packed was asked for; or
            ``payloads`` joins arrays, and the tokens are known to be in something else.
    """
    if not isinstance(tokens_field, str) or not tokens_field:
        raise PlanError(
            f"{call}: tokens_field must be 'auto' or the name of a field, got {tokens_field!r}"
        )
    if not isinstance(aligned_fields, Iterable):
        raise PlanError(
            f"{call}: aligned_fields must be 'auto', a list of field names, or a dict from names "
            f"to types, got {aligned_fields!r}"
        )
    if not isinstance(aligned_fields, str | Mapping):
        aligned_fields = tuple(aligned_fields)
    nothing_there = tokens_field == "auto" and not any(
        name in below.outputs() for name in TOKEN_FIELDS
    )
    if measured and nothing_there:
        return PackedFields(tokens_field=None, aligned=(), passed_over=(), container="list")
    tokens_field = find_token_field(below, tokens_field, call)
    found = find_aligned(
        below,
        tokens_field,
        aligned_fields,
        call,
        datasets,
        emit_positions=emit_positions,
        loses_fields=loses_fields,
    )
    held = _containers(below, tokens_field, datasets)
    container = held.pop() if len(held) == 1 else None
    if isinstance(payloads, str) and payloads in _JOINED and container is not None:
        _check_joined(payloads, container, tokens_field, call)
    return PackedFields(
        tokens_field=tokens_field,
        aligned=tuple(Column(path=name, kind=kind) for name, kind in found.packed),
        passed_over=found.left_out,
        without=found.without,
        container=container or "list",
    )


def find_token_field(below: Node, asked: str, call: str = "pack_flat") -> str:
    """Say which field holds the tokens that ``below`` delivers.

    Args:
        below: the step under the one that packs.
        asked: a field's name, or "auto": the first of ``TOKEN_FIELDS`` that is there.
        call: that packs, for messages.

    Raises:
        PlanError: there is none, or it does not hold lists of integers.
    """
    known = below.outputs()
    made = below.token_fields()
    if asked == "auto":
        found = next((name for name in TOKEN_FIELDS if name in known), None)
        if found is None:
            raise PlanError(
                f"{call}: no token field ({', '.join(TOKEN_FIELDS)}); the fields are "
                f"{', '.join(known) or 'unknown'}; call tokenize first, or name tokens_field"
            )
        asked = found
    if made:
        if asked != made[0]:
            raise PlanError(
                f"{call}: tokens_field must be {made[0]!r}, which tokenize makes, got "
                f"{asked!r}; leave tokens_field out"
            )
        return asked
    check_reads((Column(path=asked, kind="tokens"),), below, call)
    return asked


def _containers(below: Node, tokens_field: str, datasets: Mapping[str, Probe]) -> set[str]:
    """Say what rows of tokens are held in before they are packed: "list", "tuple", "np", "pt"."""
    for node in top_first(below):
        if isinstance(node, MakesTokens):
            return {node.held_in()}
    used = {c.dataset for c in _components(below) if c.rows}
    return {datasets[name].held_in(tokens_field) for name in used}


_JOINED = {"numpy_array": "np", "torch_tensor": "pt"}
_HELD = {"list": "lists", "tuple": "tuples", "np": "NumPy arrays", "pt": "torch tensors"}


def _check_joined(payloads: str, held: str, tokens_field: str, call: str) -> None:
    wanted = _JOINED[payloads]
    if held != wanted:
        raise PlanError(
            f"{call}: pack_payloads={payloads!r} needs {_HELD[wanted]} in every document, and "
            f"{tokens_field!r} holds {_HELD[held]}; use 'keep_list' or a function, or make them "
            f"{_HELD[wanted]}, which tokenize(return_tensors={wanted!r}) does"
        )


def mixture_weights(below: Node, weight_by: str | Callable[[Any], Any]) -> dict[str, Any]:
    """Say what ``ensure_mixture`` counts: the fields ``weight_by`` and so on of its node.

    Raises:
        PlanError: there is nothing of the name, no tokens, or a function is asked of packed rows.
    """
    call = "ensure_mixture"
    packed = any(isinstance(node, Pack) for node in top_first(below))
    if callable(weight_by):
        if packed:
            raise PlanError(
                f"{call}: weight_by takes no function after packing, since a packed row belongs to "
                "several components; use 'auto' or 'samples', or call it before packing"
            )
        return {"weight_by": "function", "weight_function": weight_by}
    if not isinstance(weight_by, str):
        raise PlanError(
            f"{call}: weight_by must be 'auto', 'samples', the name of a field, or a function, got "
            f"{weight_by!r}"
        )
    if weight_by == "samples":
        return {"weight_by": "samples"}
    made, known = below.token_fields(), below.outputs()
    if weight_by == "auto":
        found = next((name for name in (*made, *TOKEN_FIELDS) if name in known), None)
        if packed and found is None:
            found = made[0] if made else None
        if found is None:
            raise PlanError(
                f"{call}: weight_by='auto' counts tokens, and there is no token field "
                f"({', '.join(TOKEN_FIELDS)}); the fields are {', '.join(known) or 'unknown'}; "
                "call it after tokenize, or pass weight_by='samples'"
            )
        weight_by = found
    if weight_by in made:
        return {"weight_by": "tokens"}
    if packed or (known and weight_by not in known):
        raise PlanError(
            f"{call}: weight_by={weight_by!r} is no field here; "
            f"{nearest(weight_by, {*known, 'auto', 'samples'})}"
        )
    fields = [f for c in _components(below) for f in c.fields if f.name == weight_by]
    kind = merged_kind([field.kind for field in fields])
    column = Column(path=weight_by, kind=kind) if kind in ("text", "tokens") else None
    return {"weight_by": "field", "weight_field": weight_by, "weight_column": column}


def _components(below: Node) -> tuple[ReadComponent, ...]:
    return next(node for node in top_first(below) if isinstance(node, Fetch)).components


def domains_of(
    call: str, homogeneity: str, groups: DomainGroups | None, names: Sequence[str]
) -> tuple[tuple[str, ...], ...] | None:
    """Say which components share rows, each in one set; None: all may.

    Args:
        call: which call, for messages.
        homogeneity: "none", "full" or "group"; anything else is refused by the node.
        groups: which share rows under "group"; else None.
        names: of all components.

    Raises:
        PlanError: groups do not belong to ``homogeneity``, or name what is no component.
    """
    if homogeneity != "group":
        if groups is not None:
            raise PlanError(
                f"{call}: groups needs homogeneity='group', got {homogeneity!r}; leave groups out"
            )
        return tuple((name,) for name in dict.fromkeys(names)) if homogeneity == "full" else None
    if not isinstance(groups, DomainGroups):
        raise PlanError(
            f"{call}: homogeneity='group' needs groups, got {groups!r}; pass "
            "zephon.ops.DomainGroups({'group': ['component', ...]})"
        )
    domains = tuple(tuple(members) for _, members in groups.members)
    grouped = [name for domain in domains for name in domain]
    for name in grouped:
        if name not in names:
            raise PlanError(
                f"{call}: groups name {name!r}, which is no component; {nearest(name, names)}"
            )
    alone = [name for name in dict.fromkeys(names) if name not in grouped]
    if alone:
        warnings.warn(
            f"{call}: {', '.join(map(repr, alone))} {'is' if len(alone) == 1 else 'are'} in no "
            "group, so each shares rows with nothing else",
            RuntimeWarning,
            stacklevel=5,  # the caller of the pipeline's method
        )
    return (*domains, *((name,) for name in alone))
