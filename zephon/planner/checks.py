"""Checks of a call against what is known of the data: fields that are there, and of which kind."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from zephon.batches.token_fields import TOKEN_FIELDS
from zephon.errors import PlanError, nearest
from zephon.io.fields import Column, Seen, widened
from zephon.planner.logical import Fetch, Node, ReadComponent, Tokenize
from zephon.planner.tree import top_first

ALIGNED_FIELDS = ("attention_mask", "loss_mask", "labels", "token_type_ids", "segment_ids")
"""Fields that have one value a token wherever they hold lists of numbers."""


class Probe(Protocol):
    """What can be asked of a dataset: the first rows of its first shard with rows, and the rest."""

    def first_lists(self, names: Sequence[str], /) -> Mapping[str, Seen]:
        """Say what some fields hold; nothing of a field that is missing in a shard."""
        ...

    def held_in(self, name: str, /) -> str:
        """Say what holds the numbers of a field: "list", "tuple", "np" or "pt"."""
        ...


@dataclass(frozen=True, slots=True)
class Aligned:
    """The fields of the source beside the tokens.

    packed: with one value a token, each a name and a kind of ``zephon.io.fields.NUMBERS``.
    left_out: of packed rows, each a name and the reason.
    """

    packed: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]


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


def find_aligned(
    below: Node,
    tokens_field: str,
    asked: str | Sequence[str],
    call: str,
    datasets: Mapping[str, Probe],
    *,
    emit_positions: bool,
) -> Aligned:
    """Say which fields of the source are packed with the tokens, one value a token.

    By "auto" these are the fields of ``ALIGNED_FIELDS`` that hold lists of numbers or booleans,
    and every other such field that in the first rows of each dataset is as long as the tokens.
    Everything else is left out; where that is a list of numbers, a warning says so.

    Args:
        below: the step under the one that packs.
        tokens_field: as ``find_token_field`` found it.
        asked: "auto", or names; these are not compared with the tokens before they are read.
        call: that packs, for messages.
        datasets: of the components, by name; files are looked at only where a field may be packed.
        emit_positions: packing makes a field ``positions``.

    Raises:
        PlanError: a name that was asked for is no such field of every dataset, or the data have
            ``positions`` where packing makes them.
        ShardError: a file cannot be read.
    """
    chosen = _names(asked, call)
    if below.token_fields():
        return _beside_made_tokens(below, chosen, call)
    fetch = next(node for node in top_first(below) if isinstance(node, Fetch))
    components = [c for c in fetch.components if c.rows] or list(fetch.components)
    names = [name for name in _field_names(components) if name != tokens_field]
    if emit_positions and "positions" in names and (chosen is None or "positions" in chosen):
        raise PlanError(
            f"{call}: the data have a field 'positions', which packing makes anew; rename it, pass "
            "emit_positions=False to pack it as it is, or name the fields to pack in aligned_fields"
        )
    reasons = {name: _not_lists(name, components) for name in names}
    wanted = [n for n in names if not reasons[n] and (chosen is None or n in chosen)]
    used = list(dict.fromkeys(c.dataset for c in components)) if wanted else []
    seen = {name: datasets[name].first_lists((tokens_field, *wanted)) for name in used}
    kinds: dict[str, str] = {}
    for name in wanted:
        kind, reasons[name] = _common_kind(name, seen)
        if chosen is None and name not in ALIGNED_FIELDS and not reasons[name]:
            reasons[name] = _not_as_long(name, tokens_field, seen)
        if not reasons[name]:
            kinds[name] = kind
    if chosen is not None:
        _refuse_missing([n for n in chosen if n not in kinds and n != tokens_field], reasons, call)
        reasons = {name: reasons[name] or "aligned_fields does not name it" for name in names}
    left_out = tuple((name, reasons[name]) for name in names if name not in kinds)
    lists = [name for name, _ in left_out if _is_list_somewhere(name, components)]
    if chosen is None and lists:
        told = "; ".join(f"{name!r}: {reasons[name]}" for name in lists)
        warnings.warn(
            f"{call}: lists of numbers in {', '.join(map(repr, lists))} are left out of packed "
            f"rows ({told}); name the fields to pack in aligned_fields, () for none",
            RuntimeWarning,
            stacklevel=5,  # the caller of the pipeline's method
        )
    order = dict.fromkeys([*(name for name in ALIGNED_FIELDS if name in kinds), *kinds])
    return Aligned(tuple((name, kinds[name]) for name in order), left_out)


def container_of(below: Node, tokens_field: str, datasets: Mapping[str, Probe]) -> str:
    """Say what rows of tokens are held in before they are packed: "list", "tuple", "np" or "pt".

    Lists, where datasets differ.
    """
    for node in top_first(below):
        if isinstance(node, Tokenize):
            return node.return_tensors or "list"
    fetch = next(node for node in top_first(below) if isinstance(node, Fetch))
    used = {c.dataset for c in fetch.components if c.rows}
    found = {datasets[name].held_in(tokens_field) for name in used}
    return found.pop() if len(found) == 1 else "list"


def _names(asked: str | Sequence[str], call: str) -> tuple[str, ...] | None:
    """Check names; None for "auto"."""
    if asked == "auto":
        return None
    if isinstance(asked, str) or not all(isinstance(name, str) for name in asked):
        raise PlanError(
            f"{call}: aligned_fields must be 'auto' or a list of field names, got {asked!r}"
        )
    return tuple(dict.fromkeys(asked))


def _refuse_missing(missing: Sequence[str], reasons: Mapping[str, str], call: str) -> None:
    for name in missing:
        problem = reasons.get(name) or f"there is none; {nearest(name, reasons)}"
        raise PlanError(
            f"{call}: aligned_fields names {name!r}, which must hold one number or boolean a token "
            f"in every dataset: {problem}"
        )


def _beside_made_tokens(below: Node, chosen: tuple[str, ...] | None, call: str) -> Aligned:
    made = below.token_fields()
    reason = "tokenize makes the tokens, so no field of the data has one value a token"
    for name in chosen or ():
        if name not in made:
            raise PlanError(
                f"{call}: aligned_fields names {name!r}, but {reason}; leave aligned_fields out"
            )
    return Aligned((), tuple((name, reason) for name in below.outputs() if name not in made))


def _field_names(components: Sequence[ReadComponent]) -> list[str]:
    return list(dict.fromkeys(f.name for c in components for f in c.fields))


def _not_lists(name: str, components: Sequence[ReadComponent]) -> str:
    """Say why a field cannot hold lists of numbers in every component; "" if it can."""
    for component in components:
        kind = _kind_in(name, component)
        if kind is None:
            seen = "has no such field" if component.fields_complete else "is not seen to have it"
            return f"dataset {component.dataset!r} {seen}"
        if kind not in ("tokens", "numbers", "unknown"):
            what = {"text": "text", "scalar": "one value a row"}.get(kind, "other than numbers")
            return f"it holds {what}"
    return ""


def _is_list_somewhere(name: str, components: Sequence[ReadComponent]) -> bool:
    return any(_kind_in(name, component) in ("tokens", "numbers") for component in components)


def _kind_in(name: str, component: ReadComponent) -> str | None:
    return next((field.kind for field in component.fields if field.name == name), None)


def _common_kind(name: str, seen: Mapping[str, Mapping[str, Seen]]) -> tuple[str, str]:
    """Find the kind of column that holds a field of every dataset; or say why there is none."""
    kinds = []
    for dataset, fields in seen.items():
        if name not in fields:
            return "", f"a shard of dataset {dataset!r} does not have it"
        field = fields[name]
        if field.kind is None:
            return "", f"dataset {dataset!r} has more in it than plain lists of one sort of numbers"
        if field.lengths and max(field.lengths) < 0:
            return "", f"the first rows of dataset {dataset!r} have no list in it"
        kinds.append(field.kind)
    kind = widened(kinds)
    if kind is None:
        return "", "it holds booleans in one dataset and numbers in another"
    return kind or "int64", ""


def _not_as_long(name: str, tokens_field: str, seen: Mapping[str, Mapping[str, Seen]]) -> str:
    """Say why a field is not seen to have one value a token; "" if it is."""
    for dataset, fields in seen.items():
        if tokens_field not in fields:
            return f"the first rows of dataset {dataset!r} do not show how long the tokens are"
        tokens = fields[tokens_field].lengths
        for row, (wanted, got) in enumerate(zip(tokens, fields[name].lengths, strict=True)):
            if got != wanted >= 0:
                there = "no list" if got < 0 else f"a list of {got}"
                return f"beside {wanted} tokens, row {row} of dataset {dataset!r} has {there}"
        if max(tokens, default=0) <= 0:
            return f"the first rows of dataset {dataset!r} have no tokens"
    return ""


def check_reads(columns: tuple[Column, ...], below: Node, call: str) -> None:
    """Refuse columns that a component is known not to have, or to have with another type.

    Raises:
        PlanError: names the call, the dataset, and the fields that there are.
    """
    fetch = next(node for node in top_first(below) if isinstance(node, Fetch))
    for column in columns:
        for component in fetch.components:
            _check_column(column, component, call)


def _check_column(column: Column, component: ReadComponent, call: str) -> None:
    fields = {f.name: f for f in component.fields}
    field = fields.get(column.path) or fields.get(column.path.split(".")[0])
    if field is None:
        if component.fields_complete and column.missing == "error":
            raise PlanError(
                f"{call}: no field {column.path!r} in dataset {component.dataset!r}; "
                f"{nearest(column.path, fields)}"
            )
        return
    if not component.fields_complete or field.name != column.path:
        return
    kinds = {"text": "text", "tokens": "lists of integers", "numbers": "lists of numbers"}
    if field.kind not in (column.kind, "unknown"):
        raise PlanError(
            f"{call}: field {column.path!r} of dataset {component.dataset!r} must hold "
            f"{kinds[column.kind]}, it holds {kinds.get(field.kind, field.kind)}"
        )
