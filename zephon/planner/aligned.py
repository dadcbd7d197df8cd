"""Which fields of the source are packed with the tokens, one value a token.

The names of ``ALIGNED_FIELDS`` mean that a model is trained on some tokens and not on others, or on
other labels: where one of them cannot be packed, the call fails, and nothing is left out silently.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from zephon.errors import PlanError, nearest
from zephon.io.fields import NUMBERS, Seen, can_hold, widened
from zephon.planner.logical import Fetch, Node, ReadComponent
from zephon.planner.tree import top_first

ALIGNED_FIELDS = ("attention_mask", "loss_mask", "labels", "token_type_ids", "segment_ids")
"""Fields that have one value a token wherever they hold lists of numbers."""

_IN_ALL_OR_NONE = ("loss_mask", "labels")
"""Fields without which all tokens are trained on, so no dataset may lack what another has."""


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
    without: fields that no row may have, since they would be lost: none was seen, and later rows of
        some dataset may have them.
    """

    packed: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]
    without: tuple[str, ...] = ()


def find_aligned(
    below: Node,
    tokens_field: str,
    asked: str | Sequence[str] | Mapping[str, str],
    call: str,
    datasets: Mapping[str, Probe],
    *,
    emit_positions: bool,
    loses_fields: bool = True,
) -> Aligned:
    """Say which fields of the source are packed with the tokens, one value a token.

    By "auto" these are the fields of ``ALIGNED_FIELDS``, and every other list of numbers or
    booleans that in the first rows of each dataset is as long as the tokens. Everything else is
    left out; where that is a list of numbers, a warning says so.

    Args:
        below: the step under the one that packs.
        tokens_field: that holds the tokens.
        asked: "auto", or names; these are not compared with the tokens before they are read. Or
            names with their kinds: then no row need be seen to have them.
        call: that packs, for messages.
        datasets: of the components, by name; files are looked at only where a field may be packed.
        emit_positions: packing makes a field ``positions``.
        loses_fields: a field that is not packed is lost, if only where a document is cut.

    Raises:
        PlanError: a name that was asked for is no such field of every dataset; or none was, and a
            field of ``ALIGNED_FIELDS`` holds anything else, would be lost beside tokens that
            tokenize makes, or is ``loss_mask`` or ``labels`` and in some datasets only; or the data
            have ``positions`` where packing makes them.
        ShardError: a file cannot be read.
    """
    chosen, stated = _names(asked, call)
    if below.token_fields():
        return _beside_made_tokens(below, chosen, call, loses_fields=loses_fields)
    if tokens_field in stated:
        raise PlanError(
            f"{call}: aligned_fields must name fields beside the tokens, got {tokens_field!r}, "
            "which holds them as int32; leave it out"
        )
    fetch = next(node for node in top_first(below) if isinstance(node, Fetch))
    components = [c for c in fetch.components if c.rows] or list(fetch.components)
    names = [name for name in _field_names(components, stated) if name != tokens_field]
    if emit_positions and "positions" in names and (chosen is None or "positions" in chosen):
        raise PlanError(
            f"{call}: the data have a field 'positions', which packing makes anew; rename it, pass "
            "emit_positions=False to pack it as it is, or name the fields to pack in aligned_fields"
        )
    lacking = {name: _lacking(name, components, seen_enough=name in stated) for name in names}
    known = (*ALIGNED_FIELDS, *(chosen or ()))  # of these, the rows say what is wrong with them
    reasons = {name: lacking[name] or _no_lists(name, components, known) for name in names}
    wanted = [n for n in names if not reasons[n] and (chosen is None or n in chosen)]
    used = list(dict.fromkeys(c.dataset for c in components)) if wanted else []
    seen = {name: datasets[name].first_lists((tokens_field, *wanted)) for name in used}
    kinds: dict[str, str] = {}
    for name in wanted:
        lacking[name] = reasons[name] = _lacking_shard(name, seen)
        if reasons[name]:
            continue
        kind, reasons[name] = _common_kind(name, seen, stated.get(name))
        if chosen is None and name not in ALIGNED_FIELDS and not reasons[name]:
            reasons[name] = _not_as_long(name, tokens_field, seen)
        if not reasons[name]:
            kinds[name] = kind
    if chosen is not None:
        _refuse_missing([n for n in chosen if n not in kinds and n != tokens_field], reasons, call)
        reasons = {name: reasons[name] or "aligned_fields does not name it" for name in names}
    left_out = tuple((name, reasons[name]) for name in names if name not in kinds)
    order = dict.fromkeys([*(name for name in ALIGNED_FIELDS if name in kinds), *kinds])
    if chosen is None:
        _refuse_to_lose(left_out, lacking, list(order), call)
        _warn_of_lists([pair for pair in left_out if _is_list(pair[0], components)], call)
    without: tuple[str, ...] = ()
    if chosen is None and not all(component.fields_complete for component in components):
        without = tuple(n for n in _IN_ALL_OR_NONE if n not in names and n != tokens_field)
    return Aligned(tuple((name, kinds[name]) for name in order), left_out, without)


def _names(
    asked: str | Sequence[str] | Mapping[str, str], call: str
) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    """Check names, None for "auto"; and give the kinds that were stated."""
    if asked == "auto":
        return None, {}
    if isinstance(asked, str) or not all(isinstance(name, str) for name in asked):
        raise PlanError(
            f"{call}: aligned_fields must be 'auto', a list of field names, or a dict from names "
            f"to types, got {asked!r}"
        )
    stated = dict(asked) if isinstance(asked, Mapping) else {}
    for name, kind in stated.items():
        if kind not in NUMBERS:
            raise PlanError(
                f"{call}: aligned_fields must give {name!r} one of the types {', '.join(NUMBERS)}, "
                f"got {kind!r}; {nearest(str(kind), NUMBERS)}"
            )
    return tuple(dict.fromkeys(asked)), stated


def _refuse_missing(missing: Sequence[str], reasons: Mapping[str, str], call: str) -> None:
    for name in missing:
        problem = reasons.get(name) or f"there is none; {nearest(name, reasons)}"
        raise PlanError(
            f"{call}: aligned_fields names {name!r}, which must hold one number or boolean a token "
            f"in every dataset: {problem}"
        )


def _refuse_to_lose(
    left_out: Sequence[tuple[str, str]],
    lacking: Mapping[str, str],
    packed: Sequence[str],
    call: str,
) -> None:
    """Refuse to leave out what says which tokens are trained on.

    Args:
        left_out: each a name and the reason.
        lacking: by name, where there is no such field; "" where there is.
        packed: names.
        call: that packs.
    """
    for name, reason in left_out:
        if name not in ALIGNED_FIELDS or (lacking[name] and name not in _IN_ALL_OR_NONE):
            continue
        mend = "add it there" if lacking[name] else "mend the data"
        raise PlanError(
            f"{call}: field {name!r} must hold one number or boolean a token in every dataset, but "
            f"{reason}; {mend}, or pass aligned_fields={packed!r} to pack without it"
        )


def _warn_of_lists(left_out: Sequence[tuple[str, str]], call: str) -> None:
    if not left_out:
        return
    told = "; ".join(f"{name!r}: {reason}" for name, reason in left_out)
    warnings.warn(
        f"{call}: lists of numbers in {', '.join(repr(name) for name, _ in left_out)} are left out "
        f"of packed rows ({told}); name the fields to pack in aligned_fields, () for none",
        RuntimeWarning,
        stacklevel=7,  # the caller of the pipeline's method
    )


def _beside_made_tokens(
    below: Node, chosen: tuple[str, ...] | None, call: str, *, loses_fields: bool
) -> Aligned:
    made = below.token_fields()
    beside = [name for name in below.outputs() if name not in made]
    reason = "tokenize makes the tokens, so no field of the data has one value a token"
    for name in chosen or ():
        if name not in made:
            raise PlanError(
                f"{call}: aligned_fields names {name!r}, but {reason}; fit it to the tokens in a "
                "map_transform after tokenize, or leave aligned_fields out"
            )
    lost = next((name for name in beside if name in ALIGNED_FIELDS), None)
    if chosen is None and lost is not None and loses_fields:
        raise PlanError(
            f"{call}: field {lost!r} must hold one number or boolean a token, but {reason}; fit it "
            "to them in a map_transform after tokenize, or pass aligned_fields=[] to pack without "
            "it"
        )
    return Aligned((), tuple((name, reason) for name in beside))


def _field_names(components: Sequence[ReadComponent], stated: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys([*(f.name for c in components for f in c.fields), *stated]))


def _lacking(name: str, components: Sequence[ReadComponent], *, seen_enough: bool) -> str:
    """Say which component has no such field; "" if all have it.

    Args:
        name: of the field.
        components: that are drawn.
        seen_enough: a component that is not seen to have it may have it.
    """
    for component in components:
        if _kind_in(name, component) is not None:
            continue
        if component.fields_complete:
            return f"dataset {component.dataset!r} has no such field"
        if not seen_enough:
            return f"dataset {component.dataset!r} is not seen to have it"
    return ""


def _no_lists(name: str, components: Sequence[ReadComponent], known: Sequence[str]) -> str:
    """Say why a field holds no lists of numbers; "" if it may.

    Args:
        name: of the field.
        components: that are drawn.
        known: names that are looked at more closely if they hold something else.
    """
    for component in components:
        kind = _kind_in(name, component)
        if kind in ("text", "bytes", "scalar") or (kind == "other" and name not in known):
            what = {"text": "text", "bytes": "bytes", "scalar": "one value a row"}.get(
                kind, "other than numbers"
            )
            return f"dataset {component.dataset!r} has {what} in it"
    return ""


def _is_list(name: str, components: Sequence[ReadComponent]) -> bool:
    return name in ALIGNED_FIELDS or any(
        _kind_in(name, component) in ("tokens", "numbers") for component in components
    )


def _kind_in(name: str, component: ReadComponent) -> str | None:
    return next((field.kind for field in component.fields if field.name == name), None)


def _lacking_shard(name: str, seen: Mapping[str, Mapping[str, Seen]]) -> str:
    for dataset, fields in seen.items():
        if name not in fields:
            return f"a shard of dataset {dataset!r} does not have it"
    return ""


def _common_kind(
    name: str, seen: Mapping[str, Mapping[str, Seen]], stated: str | None
) -> tuple[str, str]:
    """Find the kind of column that holds a field of every dataset; or say why there is none."""
    kinds: dict[str, str] = {}
    for dataset, fields in seen.items():
        field = fields[name]
        if field.kind is None:
            what = field.odd or "it is more than plain lists of one sort of numbers"
            return "", f"in dataset {dataset!r} {what}"
        if stated is not None and not can_hold(stated, field.kind):
            return "", f"dataset {dataset!r} has lists of {field.kind} in it, not of {stated}"
        if stated is None and field.lengths and max(field.lengths) < 0:
            return "", f"the first rows of dataset {dataset!r} have no list in it"
        kinds[dataset] = field.kind
    if stated is not None:
        return stated, ""
    kind = widened(kinds.values())
    if kind is None:
        flags = next(dataset for dataset, each in kinds.items() if each == "bool")
        other = next(dataset for dataset, each in kinds.items() if each not in ("", "bool"))
        return "", f"dataset {flags!r} has booleans in it and dataset {other!r} numbers"
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
