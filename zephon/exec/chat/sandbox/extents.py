"""How large a value is with everything in it, counted before something walks through it.

Templates can put a list into itself many times over (``[x, x]`` again and again), so that a few
kilobytes of memory are a text of any length. Every part counts as often as it would be visited.
"""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple

from jinja2.runtime import Undefined

from zephon.exec.chat.sandbox.budget import READ, TemplateFault

DEEPEST_VALUE = 100
"""Lists and dicts that are inside each other."""

MOST_PARTS = 1 << 20
"""Parts that a value has, with the parts of its parts."""

MOST_BITS = 4096
"""Bits of a whole number; fewer than Python refuses to write in decimals."""

_MOST_DIGITS = 1_000

SCALARS = frozenset({bool, float, int, NoneType})
NUMBERS = frozenset({bool, float, int})
PLAIN = (str, bool, int, float, NoneType, bytes, date, time, timedelta, Decimal, Undefined, range)
"""What is written as it says itself; dates include those with a time."""

_PAIRS = type({}.items())
_MANY = frozenset({list, tuple, set, frozenset, type({}.keys()), type({}.values()), _PAIRS})


class Extent(NamedTuple):
    """A value as it would be walked through.

    parts: values in it, itself included. letters: characters of its texts and large numbers.
    depth: how often it is nested.
    """

    parts: int
    letters: int
    depth: int = 1

    @property
    def written(self) -> int:
        """About so many characters are needed to write it."""
        return self.parts * 32 + self.letters


def extent(value: Any, *, plain: bool = False) -> Extent:
    """Count a value's parts, level by level.

    Args:
        value: anything.
        plain: refuse what is no data, such as a macro.

    Raises:
        TemplateFault: it is nested too deeply, or has too many parts, or is no data.
    """
    parts = letters = depth = 0
    level: list[Any] = [value]
    while level:
        depth += 1
        if depth > DEEPEST_VALUE:
            raise TemplateFault(f"a value is nested more than {DEEPEST_VALUE} times")
        below: list[Any] = []
        for each in level:
            kind = type(each)
            if kind is str:
                letters += len(each)
            elif kind is dict:
                below.extend(each)
                below.extend(each.values())
            elif kind in _MANY:
                below.extend(each)
            elif kind is int:
                if each.bit_length() > 64:
                    letters += whole(each).bit_length()
            elif kind in SCALARS:
                pass
            elif isinstance(each, str):
                letters += len(each)
            elif isinstance(each, dict | list | tuple):
                below.extend(each.values() if isinstance(each, dict) else each)
            elif isinstance(each, Decimal):
                if each.is_finite() and abs(each.adjusted()) > _MOST_DIGITS:
                    raise TemplateFault(f"a number has more than {_MOST_DIGITS:,} digits")
            elif plain and not isinstance(each, PLAIN):
                raise TemplateFault(f"a {kind.__name__} is no data and cannot be written")
        parts += len(level)
        if parts + len(below) > MOST_PARTS:
            raise TemplateFault(f"a value has more than {MOST_PARTS:,} parts")
        level = below
    return Extent(parts, letters, depth)


def whole(value: Any) -> Any:
    """Return a value; a whole number only if it is no larger than numbers may be.

    Raises:
        TemplateFault: it is larger.
    """
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise TemplateFault(f"a whole number has more than {MOST_BITS} bits")
    return value


def key(value: Any) -> Any:
    """Return what is to be looked up in a dict; hashing it walks through all its parts.

    Raises:
        TemplateFault: it has too many.
    """
    if type(value) is tuple:
        extent(value)
    return value


def search_steps(length: int, pattern: int, *, backwards: bool = False) -> int:
    """Return the steps of looking for a pattern in a text, at worst.

    CPython looks for short patterns and in short texts place by place, and always from the end.
    """
    if backwards or length < 2_500 or (5 < pattern < 100 and length < 30_000):
        return 1 + (length >> READ) + (length * pattern >> 10)
    return 1 + (length >> READ)
