"""Operators that were checked before, so that the next iteration does not check them again."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, fields
from typing import Any

from zephon.planner.logical import CustomOp
from zephon.validation.report import Issue

_IDENTITY_COUNTS = ("process_one", "accumulator", "validation_samples")
_VALUE_COUNTS = tuple(
    f.name
    for f in fields(CustomOp)
    if f.name not in (*_IDENTITY_COUNTS, "input", "instance", "process_many")
)


class Memory:
    """What was found of operators, for as long as they are in use.

    An operator is its instance, or its ``process_many``, with all else that ``add_op`` was told.
    """

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def recall(self, node: CustomOp) -> tuple[Issue, ...] | None:
        """Give what was found of an operator; None if it was not checked."""
        subject = _subject(node)
        kept = self._kept.get(id(subject))
        if kept is None or kept.subject() is not subject or kept.told != _told(node):
            return None
        same = all(one is other for one, other in zip(kept.given, _given(node), strict=True))
        return kept.found if same else None

    def keep(self, node: CustomOp, found: tuple[Issue, ...]) -> None:
        """Remember what was found; it is forgotten with the operator."""
        subject = _subject(node)
        number = id(subject)
        try:
            reference = weakref.ref(subject, lambda _gone: self._kept.pop(number, None))
        except TypeError:  # a class with slots alone: it is checked every time
            return
        self._kept[number] = _Kept(reference, _told(node), _given(node), found)


@dataclass(frozen=True, slots=True)
class _Kept:
    """One operator that was checked. told: values; given: functions, the same objects again."""

    subject: weakref.ref[Any]
    told: list[Any]
    given: list[Any]
    found: tuple[Issue, ...]


def _subject(node: CustomOp) -> Any:
    return node.process_many if node.instance is None else node.instance


def _told(node: CustomOp) -> list[Any]:
    return [getattr(node, name) for name in _VALUE_COUNTS]


def _given(node: CustomOp) -> list[Any]:
    return [getattr(node, name) for name in _IDENTITY_COUNTS]
