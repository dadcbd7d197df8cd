"""Which format the conversation of a row is in, and what is said of one that is in no format.

By the fields that a row has, and by the keys of its messages; what is not sure is refused, never
guessed. A field or key whose value is null is as good as absent: rows of several forms in one
Parquet file have all fields of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zephon.errors import DataTypeError
from zephon.exec.bad_row import BadRow
from zephon.exec.message_fields import messages_at

CALL = "normalize_chat"

MARKS = {
    "messages": ("messages",),
    "sharegpt": ("conversations",),
    "alpaca": ("instruction",),
    "prompt_completion": ("prompt", "completion"),
}
"""Fields by which a row is known to be of a format."""

_KEYS = {"messages": ("role", "content"), "sharegpt": ("from", "value")}


def found_format(row: Mapping[str, Any], field: str | None) -> tuple[str, str | None]:
    """Say which format a row is of, and where its messages lie.

    Args:
        row: any.
        field: where they do; None: it is to be found.

    Raises:
        BadRow: the row is of no format, or of more than one.
    """
    if field is not None:
        return _form_of_all(row, field, "messages"), field
    there = {
        name: form for form, names in MARKS.items() for name in names if row.get(name) is not None
    }
    if not there:
        wanted = ", ".join(name for names in MARKS.values() for name in names)
        raise bad(
            f"format='auto' must find one of {wanted}; the row has {names_in(row)}",
            "pass format= and field=, or make such fields with map_transform",
        )
    forms, first = list(dict.fromkeys(there.values())), next(iter(there))
    if len(forms) == 1 and first in ("messages", "conversations"):
        forms = [_form_of_all(row, first, forms[0])]
    system = row.get("system")
    empty = system is None or (isinstance(system, str) and not system)
    if forms in (["messages"], ["prompt_completion"]) and not empty:
        there["system"] = "sharegpt"  # or alpaca, where the row has nothing else of that
        forms.append("sharegpt")
    if len(forms) > 1:
        told = ", ".join(f"{name} ({form})" for name, form in there.items())
        raise bad(
            f"format='auto' must find the fields of one format, got {told}",
            "pass the right one: " + " or ".join(f"format={each!r}" for each in forms),
        )
    return forms[0], first if forms[0] in _KEYS else None


def check_keys(turn: Any, at: int, field: str, form: str) -> None:
    """Refuse what is no message of a format."""
    # The type is asked first: a check against Mapping takes longer than all else.
    if type(turn) is not dict and not isinstance(turn, Mapping):
        raise wrong(f"{place(at, field)} must be a dict with {keys_of(form)}", turn)
    if turn.get(_KEYS[form][0]) is not None:
        return
    other = next(each for each in _KEYS if each != form)
    problem = f"{place(at, field)} must have {keys_of(form)}, got {names_in(turn)}"
    if turn.get(_KEYS[other][0]) is None:
        raise bad(problem)
    raise bad(problem, f"pass format={other!r}, field={field!r}")


def _form_of_all(row: Mapping[str, Any], field: str, if_empty: str) -> str:
    """Say which keys all messages of a field have."""
    turns = messages_at(CALL, row, field)
    found = [_form(turn, at, field) for at, turn in enumerate(turns)]
    for at, form in enumerate(found):
        if form != found[0]:
            raise bad(
                f"all messages of field {field!r} must have the same keys, got "
                f"{keys_of(found[0])} in message 0, and {keys_of(form)} in message {at}"
            )
    return found[0] if found else if_empty


def _form(turn: Any, at: int, field: str) -> str:
    if type(turn) is not dict and not isinstance(turn, Mapping):
        raise wrong(f"{place(at, field)} must be a dict with {keys_of('messages')}", turn)
    here, there = turn.get("role") is not None, turn.get("from") is not None
    if here is there:
        wanted = " or ".join(map(keys_of, _KEYS))
        raise bad(f"{place(at, field)} must have either {wanted}, got {names_in(turn)}")
    return "messages" if here else "sharegpt"


def place(at: int, field: str) -> str:
    """Say which message is meant."""
    return f"message {at} of field {field!r}"


def keys_of(form: str) -> str:
    """Say which keys a message of a format has."""
    return " and ".join(_KEYS[form])


def names_in(found: Mapping[str, Any]) -> str:
    """Say which fields or keys there are, but for those that are null."""
    names = [str(name) for name, value in found.items() if value is not None]
    return ", ".join(names[:20]) or "none"


def wrong(problem: str, value: object) -> BadRow:
    """Say that a value is of another type."""
    return bad(f"{problem}, got a {type(value).__name__}", kind=DataTypeError)


def bad(problem: str, way_out: str = "mend the row, or name another field", **more: Any) -> BadRow:
    """Say what is wrong with a row."""
    return BadRow(CALL, problem, way_out, **more)
