"""Functions of the user, and what Zephon does in Python, row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from zephon.errors import PlanError
from zephon.io.fields import Field
from zephon.planner.logical.node import Node, at_least, field_name, flags, one_of

ENCODING_ERRORS = ("strict", "ignore", "replace", "backslashreplace", "surrogateescape")

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""Who may say a message of a conversation."""

ROLE_WORDS = {
    **{role: role for role in ROLES},
    **{"human": "user", "gpt": "assistant", "chatgpt": "assistant"},
    **{"function_call": "assistant", "observation": "tool"},
}
"""What data call those who say something, and which role each is."""

CHAT_FORMATS = ("messages", "sharegpt", "alpaca", "prompt_completion", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFunction:
    """A function of one row.

    drop_none: a row for which it returns None is dropped; else it passes as it was.
    fingerprint: what a checkpoint knows it by; None: its name, source and closure.
    """

    function: Callable[[Any], Any]
    drop_none: bool = True
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InPython(Node):
    """A step that takes whole rows as Python values, and gives rows of fields that nobody knows."""

    how: ClassVar[frozenset[str]] = frozenset({"parallelism"})
    takes_rows: ClassVar[bool] = True
    parallelism: int = 4

    def __post_init__(self) -> None:
        at_least(self.call, "parallelism", self.parallelism, 1)

    def fields(self) -> tuple[Field, ...]:
        """None that are known."""
        return ()

    def token_fields(self) -> tuple[str, ...]:
        """None: tokens are values of rows like any other afterwards."""
        return ()

    def knows_all_fields(self) -> bool:
        """Never."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class MapTransform(InPython):
    """Call functions on each row, one after the other."""

    call: ClassVar[str] = "map_transform"
    functions: tuple[RowFunction, ...]

    def keeps_rows(self) -> bool:
        """Never sure: None drops a row."""
        return not any(each.drop_none for each in self.functions)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeText(InPython):
    """Turn bytes into text, and everything else into its text, in some fields."""

    call: ClassVar[str] = "decode_text"
    text_fields: tuple[str, ...] = ("text",)
    encoding: str = "utf-8"
    errors: str = "strict"
    normalize_newlines: bool = True
    lowercase: bool = False
    parallelism: int = 2

    def __post_init__(self) -> None:
        super(DecodeText, self).__post_init__()
        flags("decode_text", self, "normalize_newlines", "lowercase")
        one_of("decode_text", "errors", self.errors, ENCODING_ERRORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandChat(InPython):
    """Make a row of every answered user turn of a conversation."""

    call: ClassVar[str] = "expand_chat"
    makes_metas: ClassVar[bool] = True
    field: str = "messages"

    def __post_init__(self) -> None:
        super(ExpandChat, self).__post_init__()
        field_name("expand_chat", "field", self.field)

    def keeps_rows(self) -> bool:
        """Never: a conversation gives as many rows as it has answered turns."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizeChat(InPython):
    """Make a list of messages of what a row holds as a conversation.

    format: one of ``CHAT_FORMATS``. field: where its messages lie; None: where they do by custom.
    roles: words of the user beside ``ROLE_WORDS``, each with its role. on_block: makes something
    else of blocks that are not text. keep_source: the fields that messages are made of stay, too.
    """

    call: ClassVar[str] = "normalize_chat"
    format: str
    field: str | None = None
    field_out: str = "messages"
    roles: tuple[tuple[str, str], ...] = ()
    on_block: RowFunction | None = None
    keep_source: bool = False

    def __post_init__(self) -> None:
        super(NormalizeChat, self).__post_init__()
        call = "normalize_chat"
        one_of(call, "format", self.format, CHAT_FORMATS)
        flags(call, self, "keep_source")
        field_name(call, "field_out", self.field_out)
        if self.field is not None:
            field_name(call, "field", self.field)
            if self.format in ("alpaca", "prompt_completion"):
                raise PlanError(
                    f"{call}: format={self.format!r} has no one field of messages, got "
                    f"field={self.field!r}; rename the fields that it has, or leave field out"
                )
        for _, role in self.roles:
            one_of(call, "roles: a role", role, ROLES)


RowStep: TypeAlias = MapTransform | DecodeText | NormalizeChat | ExpandChat
"""A step that takes rows one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialize(Node):
    """Do nothing; no rule joins or moves steps across it."""

    call: ClassVar[str] = "materialize"
    how: ClassVar[frozenset[str]] = frozenset({"parallelism"})
    is_barrier: ClassVar[bool] = True
    parallelism: int = 1

    def __post_init__(self) -> None:
        at_least("materialize", "parallelism", self.parallelism, 1)
