"""A conversation as one row for each of its user turns that was answered.

Such a row holds the conversation up to just before the next message of the user: the turn, all that
was said before it, and everything that follows it as an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zephon.batches.own_copies import own_copy
from zephon.errors import DataTypeError, nearest
from zephon.exec.operators.bad_row import BadRow

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def answered_turns(row: Any, field: str) -> list[tuple[int, dict[str, Any]]]:
    """Give, for each answered user turn, which user turn it is and its row.

    Args:
        row: the caller's own; the last row that is given takes its values, the others get copies.
        field: holds the messages, a name or a dotted path; a field of exactly that name wins.

    Raises:
        BadRow: there is no such field, no list in it, or something else than messages in that.
    """
    path = _path(row, field)
    messages = _messages(row, path, field)
    roles = [_role(message, at, field) for at, message in enumerate(messages)]
    users = [at for at, role in enumerate(roles) if role == "user"]
    stops = [*users, len(roles)][1:]
    answered = [
        (turn, stop)
        for turn, (start, stop) in enumerate(zip(users, stops, strict=True))
        if "assistant" in roles[start:stop]
    ]
    made = []
    for number, (turn, stop) in enumerate(answered):
        made_row = _with(row, path, messages[:stop])
        made.append((turn, made_row if number + 1 == len(answered) else own_copy(made_row)))
    return made


def _path(row: Any, field: str) -> tuple[str, ...]:
    if not isinstance(row, Mapping):
        raise _bad(
            f"a row must be a dict with a field {field!r}, got a {type(row).__name__}",
            "make dicts of the rows first, with map_transform",
            kind=DataTypeError,
        )
    return (field,) if field in row else tuple(field.split("."))


def _messages(row: Mapping[str, Any], path: tuple[str, ...], field: str) -> list[Any]:
    value: Any = row
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            names = ", ".join(str(each) for each in list(row)[:20]) or "no fields"
            raise _bad(f"no field {field!r}; the row has {names}", "name another field")
        value = value[name]
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise _bad(
            f"field {field!r} must be a list of messages, got a {type(value).__name__}",
            "name another field, or mend the row",
            kind=DataTypeError,
        )
    return list(value)


def _role(message: Any, at: int, field: str) -> str:
    if not isinstance(message, Mapping):
        raise _bad(
            f"message {at} of field {field!r} must be a dict with a role, got a "
            f"{type(message).__name__}",
            "mend the row",
            kind=DataTypeError,
        )
    role = message.get("role")
    if isinstance(role, str) and role in ROLES:
        return role
    came = f"got {role!r}" if "role" in message else "and it has none"
    hint = nearest(role, ROLES) if isinstance(role, str) else f"roles are {', '.join(ROLES)}"
    raise _bad(f"message {at} of field {field!r} must have a known role, {came}", hint)


def _with(row: Mapping[str, Any], path: tuple[str, ...], messages: list[Any]) -> dict[str, Any]:
    """Give the row with other messages; it shares everything else."""
    name, *rest = path
    return {**row, name: _with(row[name], tuple(rest), messages) if rest else messages}


def _bad(problem: str, way_out: str, **more: Any) -> BadRow:
    return BadRow("expand_chat", problem, way_out, **more)
