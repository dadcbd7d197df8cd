"""Calls on one row, one after the other: functions of the user, and what Zephon does in Python.

What a function returns may be shared between rows, such as a default that its module holds; so the
next function gets a copy. That takes a third of a microsecond for a row of five plain values, and
thirty where one is a list of a thousand numbers. Nothing is copied before the first or after the
last, which the caller does where it must.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from zephon.batches.identity import LineagePath
from zephon.batches.own_copies import own_copy
from zephon.errors import told
from zephon.exec.bad_row import BadRow, name_of_function
from zephon.exec.operators.decode_text import decoded
from zephon.exec.operators.expand_chat import answered_turns
from zephon.exec.operators.normalize_chat import Normalizer
from zephon.planner.logical.functions import (
    DecodeText,
    ExpandChat,
    MapTransform,
    NormalizeChat,
    RowFunction,
    RowStep,
)

DROPPED: Any = object()
"""What a call returns for a row that is no more."""

_UNFINISHED = (GeneratorType, CoroutineType, AsyncGeneratorType)


class RowCalls:
    """What some plan nodes do to a row; any number of threads may call it at once.

    expands: a row may become several. only: does what ``one`` does, where there is but one call.
    """

    only: Callable[[Any], Any] | None

    def __init__(self, nodes: Sequence[RowStep]) -> None:
        self._calls: list[Callable[[Any], Any] | _Expand] = []
        for node in nodes:
            match node:
                case MapTransform():
                    for function in node.functions:
                        self._calls.append(_Function(function, first=not self._calls))
                case DecodeText():
                    self._calls.append(partial(decoded, node=node))
                case NormalizeChat():
                    self._calls.append(Normalizer(node))
                case ExpandChat():
                    self._calls.append(_Expand(node.field))
        self.expands = any(isinstance(call, _Expand) for call in self._calls)
        self.only = self._calls[0] if len(self._calls) == 1 and not self.expands else None

    def one(self, row: Any) -> Any:
        """Give what becomes of a row, or ``DROPPED``; only where nothing ``expands``.

        Args:
            row: the caller's own, and given away.

        Raises:
            BadRow: a call cannot take the row; with the cause, where code of the user failed.
        """
        for call in self._calls:
            row = call(row)
            if row is DROPPED:
                break
        return row

    def several(self, row: Any) -> list[tuple[LineagePath, Any]]:
        """Give the rows that become of a row, each with its lineage below that; raises as ``one``.

        A row that stays one has no lineage of its own.
        """
        made: list[tuple[LineagePath, Any]] = [((), row)]
        for call in self._calls:
            if isinstance(call, _Expand):
                made = [(path + more, part) for path, each in made for more, part in call(each)]
            else:
                made = [(path, call(each)) for path, each in made]
                made = [(path, each) for path, each in made if each is not DROPPED]
        return made


class _Function:
    """A function of the user, as a call; ``first``: what it gets is nobody else's."""

    def __init__(self, function: RowFunction, *, first: bool) -> None:
        self._call = function.function
        self._drop_none = function.drop_none
        # What the function does to a row before it returns None must not show.
        self._copies = not first or not function.drop_none
        self._name = name_of_function(function.function)

    def __call__(self, row: Any) -> Any:
        given = own_copy(row) if self._copies else row
        try:
            made = self._call(given)
        except Exception as exc:  # the function is the user's, and so is what it raises
            problem = f"the function {self._name!r} raised {told(exc)}"
            raise BadRow("map_transform", problem, "mend the function or the row") from exc
        if made is None:
            return DROPPED if self._drop_none else row
        if isinstance(made, _UNFINISHED):
            raise self._unfinished(made)
        return made

    def _unfinished(self, made: Any) -> BadRow:
        """Blame the function for something that still waits to be run."""
        if isinstance(made, GeneratorType | CoroutineType):
            made.close()  # else Python warns that nobody awaits it
        kind = type(made).__name__.replace("_", " ")
        problem = f"the function {self._name!r} must return a row, got a {kind}"
        error = BadRow("map_transform", problem, "return the row itself")
        error.__cause__ = TypeError(problem)
        return error


class _Expand:
    """``expand_chat``, as a call; says once that conversations give nothing."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._said = threading.Lock()  # taken by the first, and never given back

    def __call__(self, row: Any) -> list[tuple[LineagePath, Any]]:
        turns = answered_turns(row, self._field)
        if not turns and self._said.acquire(blocking=False):
            warnings.warn(
                f"expand_chat: a conversation in field {self._field!r} has no user message that is "
                "answered, so it gives no row; such rows are counted as dropped, and this is said "
                "once",
                stacklevel=2,
            )
        if len(turns) == 1:
            return [((), turns[0][1])]
        return [((turn,), part) for turn, part in turns]
