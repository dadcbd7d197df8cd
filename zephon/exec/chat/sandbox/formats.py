"""Texts with places to fill in: ``%`` and ``str.format``, whose widths can ask for any length."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import TYPE_CHECKING, Any

from jinja2.sandbox import SandboxedFormatter

from zephon.exec.chat.sandbox.budget import LONGEST_TEXT, TemplateFault
from zephon.exec.chat.sandbox.extents import PLAIN, Extent

if TYPE_CHECKING:
    from zephon.exec.chat.sandbox.guard import Guard

WIDEST = 9_999
"""The largest width and precision."""

_PLACE = r"[%)][-#0 +]*(?:\d*|\*)(?:\.(?:\d*|\*))?[hlL]?"
_TOO_WIDE = re.compile(r"[%)][-#0 +]*(?:\d{5,}|(?:\d*|\*)\.\d{5,})")
_QUOTED = re.compile(_PLACE + "[ra]")
_STAR = re.compile(r"[%)][-#0 +]*(?:\*|\d*\.\*)")
_DIGITS = re.compile(r"\d+")


def percent_bounds(text: str, values: Any, parts: Extent) -> int:
    """Return how long ``text % values`` can become.

    Raises:
        TemplateFault: a width or a precision is too large.
    """
    places = text.count("%")
    given = values if isinstance(values, tuple) else (values,)
    if _TOO_WIDE.search(text) or (
        _STAR.search(text) and any(isinstance(each, int) and abs(each) > WIDEST for each in given)
    ):
        raise _too_wide()
    widths = sum(int(digits) for digits in _DIGITS.findall(text) if len(digits) < 5)
    nested = any(not isinstance(each, PLAIN) for each in given)
    each = 10 * parts.written if nested or _QUOTED.search(text) else parts.letters
    times = places if isinstance(values, Mapping) else 1
    stars = places * WIDEST if _STAR.search(text) else 0
    return len(text) + widths + stars + each * times + places * 320


class GuardedFormatter(SandboxedFormatter):
    """``str.format`` with the sandbox's attributes and a guard's limits."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(guard.environment)
        self._guard = guard
        self._length = 0

    def filled(self, text: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Fill in a text."""
        self._guard.make(len(text))
        self._guard.charge(text.count("{"))
        made = str(self.vformat(text, args, kwargs))
        self._guard.make(len(made))
        return made

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, str]:
        """Find one value; every part of its path is a step."""
        self._guard.charge(len(field_name))
        return super().get_field(field_name, args, kwargs)

    def format_field(self, value: Any, format_spec: str) -> str:
        """Write one value; its width is limited."""
        if len(format_spec) > 100:
            raise TemplateFault("the format of a value has more than 100 characters")
        if any(int(digits) > WIDEST for digits in _DIGITS.findall(format_spec)):
            raise _too_wide()
        if not isinstance(value, str):
            parts = self._guard.walk(value, plain=True)
            self._guard.make(parts.written)
            if format_spec and not isinstance(value, int | float):
                raise TemplateFault(f"a {type(value).__name__} has no format {format_spec!r}")
        made = format(value, format_spec)
        self._length += len(made)
        if self._length > LONGEST_TEXT:
            raise TemplateFault(f"a text has more than {LONGEST_TEXT:,} characters")
        self._guard.make(len(made))
        return made

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Quote a value where ``!r`` asks for it."""
        if conversion is not None:
            self._guard.make(self._guard.walk(value, plain=True).written)
        return Formatter.convert_field(self, value, conversion)


def _too_wide() -> TemplateFault:
    return TemplateFault(f"a width or precision is larger than {WIDEST:,}")
