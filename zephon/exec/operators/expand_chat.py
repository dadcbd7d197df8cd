"""A conversation as one row for each of its user turns that was answered.

Such a row holds the conversation up to just before the next message of the user: the turn, all that
was said before it, and everything that follows it as an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zephon.batches.own_copies import own_copy
from zephon.errors import DataTypeError, nearest
from zephon.exec.bad_row import BadRow
from zephon.exec.message_fields import messages_at, path_of, with_messages
from zephon.planner.logical.functions import ROLES


def answered_turns(row: Any, field: str) -> list[tuple[int, dict[str, Any]]]:
    """Give, for each answered user turn, which user turn it is and its row.

    Args:
        row: the caller's own; the last row that is given takes its values, the others get copies.
        field: holds the messages, a name or a dotted path; a field of exactly that name wins.

    Raises:
        BadRow: there is no such field, no list in it, or something else than messages in that.
    """
    path = path_of("expand_chat", row, field)
    messages = messages_at("expand_chat", row, field)
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
        made_row = with_messages(row, path, messages[:stop])
        made.append((turn, made_row if number + 1 == len(answered) else own_copy(made_row)))
    return made


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


def _bad(problem: str, way_out: str, **more: Any) -> BadRow:
    return BadRow("expand_chat", problem, way_out, **more)
