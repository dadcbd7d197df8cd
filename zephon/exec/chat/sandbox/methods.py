"""Which methods and attributes of data a template reaches, and what each call takes.

What is not listed here is out of reach: whatever changes a value, and all of Python's own.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jinja2.runtime import BlockReference, LoopContext, Macro
from jinja2.utils import Cycler, Joiner
from markupsafe import Markup

from zephon.exec.chat.sandbox.budget import CASE, ESCAPED, OBJECT, TemplateFault
from zephon.exec.chat.sandbox.extents import key, search_steps
from zephon.exec.chat.sandbox.formats import GuardedFormatter

if TYPE_CHECKING:
    from zephon.exec.chat.sandbox.guard import Guard

Rule = Callable[["Guard", Any, tuple[Any, ...], dict[str, Any]], Any]
"""Takes what a method needs, then calls it: guard, bound method, its arguments."""

_SMALL = 1 << 20
"""Texts up to this length may be cut in pieces before the pieces are counted."""


def _linear(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    guard.make(len(method.__self__))
    return method(*args, **kwargs)


def _case(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    length = len(method.__self__)
    guard.make(length)
    guard.charge(length >> CASE)
    return guard.lengthened(method(*args, **kwargs), length)


def _ends(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args and type(args[0]) is str:
        guard.scan(len(args[0]))
    else:
        guard.walk(args)
    return method(*args, **kwargs)


def _strip(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    length = len(method.__self__)
    guard.make(length)
    if args and isinstance(args[0], str) and len(args[0]) > 8:
        guard.charge(length * len(args[0]) >> 10)
    return method(*args, **kwargs)


def _search(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    text = method.__self__
    if args and isinstance(args[0], str):
        backwards = method.__name__.startswith("r")
        guard.charge(search_steps(len(text), len(args[0]), backwards=backwards))
    if "partition" in method.__name__:
        guard.make(len(text))
    return method(*args, **kwargs)


def _split(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    text = method.__self__
    separator = args[0] if args else kwargs.get("sep")
    if not isinstance(separator, str):
        return _pieces(guard, method, args, kwargs, lambda part: len(part.split()))
    backwards = method.__name__ == "rsplit"
    guard.charge(search_steps(len(text), len(separator), backwards=backwards))
    return _pieces(guard, method, args, kwargs, lambda part: part.count(separator) + 1)


def _lines(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _pieces(guard, method, args, kwargs, lambda part: len(part.splitlines()))


def _pieces(
    guard: Guard,
    method: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    many: Callable[[str], int],
) -> Any:
    text = str(method.__self__)
    if len(text) > _SMALL:  # the pieces are counted before there are so many
        parts = (text[start : start + _SMALL] for start in range(0, len(text), _SMALL))
        guard.make(OBJECT * sum(map(many, parts)))
        guard.make(len(text))
        return method(*args, **kwargs)
    made = method(*args, **kwargs)
    guard.make(len(text) + OBJECT * len(made))
    return made


def _replace(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    text = method.__self__
    if len(args) >= 2 and isinstance(args[0], str) and isinstance(args[1], str):
        replaced(guard, text, args[0], args[1])
    return method(*args, **kwargs)


def replaced(guard: Guard, text: str, old: str, new: str) -> None:
    """Take what replacing all of ``old`` by ``new`` needs."""
    guard.charge(search_steps(len(text), len(old)))
    grown = len(new) * (ESCAPED if isinstance(text, Markup) else 1) - len(old)
    guard.make(len(text) + (text.count(old) * grown if grown > 0 else 0))


def _join(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1:
        return method(*args, **kwargs)
    parts = guard.items(args[0])
    size = sum(len(part) for part in parts if isinstance(part, str))
    size += len(method.__self__) * len(parts)
    guard.make(size * (ESCAPED if isinstance(method.__self__, Markup) else 1))
    return method(parts)


def _pad(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    width = args[0] if args and isinstance(args[0], int) else 0
    guard.make(max(len(method.__self__), width))
    return method(*args, **kwargs)


def _tabs(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    width = args[0] if args else kwargs.get("tabsize", 8)
    text = method.__self__
    guard.make(len(text) + text.count("\t") * (width if isinstance(width, int) else 8))
    return method(*args, **kwargs)


def _format(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    text = method.__self__
    if isinstance(text, Markup):
        raise TemplateFault("text that was marked safe cannot be filled in with format")
    formatter = GuardedFormatter(guard)
    if method.__name__ == "format":
        return formatter.filled(str(text), args, kwargs)
    if len(args) != 1 or kwargs or not isinstance(args[0], Mapping):
        raise TemplateFault("format_map takes one mapping")
    return formatter.filled(str(text), (), args[0])


def _find(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args:
        guard.within(args[0], method.__self__)
    return method(*args, **kwargs)


def _copy(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    guard.make(8 * len(method.__self__))
    return method(*args, **kwargs)


def _get(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args:
        key(args[0])
    return method(*args, **kwargs)


def _quick(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return method(*args, **kwargs)


def _date_text(guard: Guard, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    check_date_format(args[0] if args else kwargs.get("format"))
    return method(*args, **kwargs)


def check_date_format(pattern: Any) -> None:
    """Refuse a format of a date that is not short."""
    if isinstance(pattern, str) and len(pattern) > 200:
        raise TemplateFault("the format of a date has more than 200 characters")


def _rules(*groups: tuple[str, Rule]) -> dict[str, Rule]:
    """Give each of several names the rule that stands beside them."""
    return {name: rule for names, rule in groups for name in names.split()}


_STR = _rules(
    ("capitalize casefold lower upper title swapcase", _case),
    (
        "removeprefix removesuffix isalnum isalpha isascii isdecimal isdigit isidentifier "
        "islower isnumeric isprintable isspace istitle isupper",
        _linear,
    ),
    ("startswith endswith", _ends),
    ("strip lstrip rstrip", _strip),
    ("find rfind index rindex count partition rpartition", _search),
    ("split rsplit", _split),
    ("splitlines", _lines),
    ("replace", _replace),
    ("join", _join),
    ("center ljust rjust zfill", _pad),
    ("expandtabs", _tabs),
    ("format format_map", _format),
)
_LIST = _rules(("index count", _find), ("copy", _copy))
_DATE = _rules(("isoformat weekday isoweekday date time", _quick), ("strftime", _date_text))

METHODS: dict[type, dict[str, Rule]] = {
    str: _STR,
    Markup: _STR,
    list: _LIST,
    tuple: _rules(("index count", _find)),
    dict: _rules(("get", _get), ("items keys values", _quick), ("copy", _copy)),
    int: _rules(("bit_length", _quick)),
    float: _rules(("is_integer", _quick)),
    datetime.date: _DATE,
    datetime.datetime: _DATE,
    datetime.time: _DATE,
    LoopContext: _rules(("cycle", _quick), ("changed", _ends)),
    Cycler: _rules(("next reset", _quick)),
}

_FACTS: dict[type, str] = {
    LoopContext: "index index0 revindex revindex0 first last length depth depth0 previtem nextitem",
    Cycler: "current",
    Joiner: "sep used",
    Macro: "name arguments catch_kwargs catch_varargs caller",
    BlockReference: "name super",
    range: "start stop step",
    datetime.date: "year month day",
    datetime.datetime: "year month day hour minute second microsecond",
    datetime.time: "hour minute second microsecond",
}
ATTRIBUTES: dict[type, frozenset[str]] = {
    kind: frozenset(METHODS.get(kind, ())) | frozenset(_FACTS.get(kind, "").split())
    for kind in METHODS.keys() | _FACTS.keys()
}
