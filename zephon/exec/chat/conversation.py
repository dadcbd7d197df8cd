"""A row as a conversation: its messages, its tools, and what else a template is told of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zephon.errors import DataTypeError
from zephon.exec.chat.faults import CALL, ChatFault
from zephon.exec.chat.struct_nulls import without_null_keys
from zephon.exec.message_fields import checked_row, found, messages_at

ASSISTANT, USER = "assistant", "user"
LOSS_WEIGHT = "loss_weight"
THOUGHT = "reasoning_content"
THOUGHTS = (THOUGHT, "thinking", "reasoning")  # what stands first is taken


@dataclass(frozen=True, slots=True)
class Conversation:
    """What of a row is rendered; nobody changes it.

    messages: dicts with a role. tools: None: there are none. told: further
    variables of the template. weights: of each message in the loss.
    """

    messages: list[Any]
    tools: Any = None
    told: Mapping[str, Any] = field(default_factory=dict)
    weights: Sequence[float] = ()

    @property
    def answers(self) -> list[int]:
        """Which messages are the assistant's."""
        return [n for n, message in enumerate(self.messages) if message["role"] == ASSISTANT]

    @property
    def last_user(self) -> int:
        """Which message is the user's last; -1: there is none."""
        users = (n for n, message in enumerate(self.messages) if message["role"] == USER)
        return max(users, default=-1)

    def with_messages(self, messages: list[Any]) -> Conversation:
        """Give the same conversation with other messages, or with fewer."""
        return Conversation(messages, self.tools, self.told)


@dataclass(frozen=True, slots=True)
class ConversationFields:
    """Which fields of a row make a conversation; names or dotted paths, None: not asked for."""

    messages: str
    tools: str | None
    enable_thinking: str | None
    weighted: bool = False

    def of(self, row: Any, *, padded: bool) -> tuple[Conversation, bool]:
        """Read the conversation of a row.

        Args:
            row: as it was read, or as a function made it; it is not changed.
            padded: keys with null values are only there because other rows have them.

        Returns:
            It, and whether such keys were left out.

        Raises:
            BadRow: there are no messages, or something else is in their place.
        """
        row = checked_row(CALL, row, self.messages)
        messages, tools = messages_at(CALL, row, self.messages), self._tools(row)
        left_out = False
        if padded:
            without, fewer = without_null_keys(messages), without_null_keys(tools)
            left_out = without is not messages or fewer is not tools
            messages, tools = without, fewer
        messages = [_prepared(message, n, self.messages) for n, message in enumerate(messages)]
        told: dict[str, Any] = {}
        if self.enable_thinking is not None:
            there, thinking = found(row, self.enable_thinking)
            if there and thinking is not None:
                told["enable_thinking"] = thinking
        weights: list[float] = []
        if self.weighted:
            weights = [_weight(m, number) for number, m in enumerate(messages)]
        return Conversation(messages, tools, told, weights), left_out

    def _tools(self, row: Mapping[str, Any]) -> Any:
        if self.tools is None:
            return None
        there, value = found(row, self.tools)
        if not there or value is None or isinstance(value, list):
            return value
        text = isinstance(value, str)
        raise ChatFault(
            f"field {self.tools!r} must be a list of tools, got a {type(value).__name__}",
            "read its JSON with map_transform first"
            if text
            else "mend the row, or pass tools_field=None",
            kind=DataTypeError,
        )


def _prepared(message: Any, number: int, field_: str) -> Any:
    """Give a message as transformers gives it to templates.

    Without keys that are null; and with what was thought under the two names that templates ask
    for, whichever of three it has.
    """
    if isinstance(message, dict) and isinstance(message.get("role"), str):
        if any(value is None for value in message.values()):
            message = {name: value for name, value in message.items() if value is not None}
        thought = next((message[name] for name in THOUGHTS if name in message), None)
        if thought is None:
            return message
        return {"thinking": thought, **message, THOUGHT: thought}
    if not isinstance(message, Mapping):
        came = f"got a {type(message).__name__}"
    elif "role" in message:
        came = f"got role {message['role']!r}"
    else:
        came = f"and it has {', '.join(map(str, message)) or 'no keys'}"
    raise ChatFault(
        f"message {number} of field {field_!r} must be a dict with a role, {came}",
        "mend the row, or make messages of it with normalize_chat",
        kind=DataTypeError,
    )


def _weight(message: Mapping[str, Any], number: int) -> float:
    weight = message.get(LOSS_WEIGHT)
    if weight is None:
        return 1.0
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not is_number or not 0 <= weight < math.inf:
        raise ChatFault(
            f"message {number} must have a finite {LOSS_WEIGHT} of at least 0, got {weight!r}",
            "mend the row, or pass loss_weights=False",
        )
    return float(weight)
