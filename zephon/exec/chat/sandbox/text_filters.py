"""Filters that make a text or a number of one value, each taking from the budget what it needs."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from jinja2.filters import FILTERS as DEFAULT_FILTERS
from jinja2.runtime import Context, Undefined
from jinja2.utils import pass_context

from zephon.exec.chat.sandbox.budget import CASE, ESCAPED, LONGEST_TEXT, READ, TemplateFault
from zephon.exec.chat.sandbox.extents import whole
from zephon.exec.chat.sandbox.guarded_calls import Filter, called, guard_of, soft
from zephon.exec.chat.sandbox.methods import replaced

_encode = json.JSONEncoder(ensure_ascii=False).encode


def _on_text(name: str, growth: int = 1, slow: int = 0) -> Filter:
    """A filter that reads a text once; its other arguments are looked at as well.

    growth: characters that one becomes at most. slow: logarithm of how many times more steps
        reading takes than copying.
    """
    original = DEFAULT_FILTERS[name]

    @pass_context
    def guarded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        guard = guard_of(context)
        text = soft(guard, value)
        if len(text) * growth > LONGEST_TEXT:
            guard.make(len(text) * growth)  # raises
        guard.make(len(text))
        if slow:
            guard.charge(len(text) << slow >> READ)
        if args or kwargs:
            for each in (*args, *kwargs.values()):
                if isinstance(each, str) and len(each) > 8:  # trim compares each with each
                    guard.charge(len(text) * len(each) >> 10)
        made = called(context, original, text, *args, **kwargs)
        return guard.lengthened(made, len(text)) if isinstance(made, str) else made

    return guarded


def _on_number(name: str) -> Filter:
    """A filter that reads a number, which may be written in a text."""
    original = DEFAULT_FILTERS[name]

    @pass_context
    def guarded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, str):
            guard_of(context).make(len(value))
        return original(value, *args, **kwargs)

    return guarded


@pass_context
def _center(context: Context, value: Any, width: int = 80) -> str:
    guard = guard_of(context)
    text = soft(guard, value)
    guard.make(max(len(text), width))
    return text.center(width)


@pass_context
def _format(context: Context, value: Any, *args: Any, **kwargs: Any) -> str:
    guard = guard_of(context)
    text = soft(guard, value)
    guard.formatted(text, kwargs or args)
    return DEFAULT_FILTERS["format"](text, *args, **kwargs)


@pass_context
def _indent(
    context: Context, s: Any, width: int | str = 4, first: bool = False, blank: bool = False
) -> str:
    guard = guard_of(context)
    if not isinstance(s, str):  # Jinja's own would change a list
        if isinstance(s, Undefined):
            return s + ""
        raise TemplateFault(f"indent is for a text, not for a {type(s).__name__}")
    guard.make(len(s))
    by = len(width) if isinstance(width, str) else width
    guard.make(len(s) + (len(s.splitlines()) + 1) * max(by, 0))
    return DEFAULT_FILTERS["indent"](s, width, first, blank)


@pass_context
def _int(context: Context, value: Any, default: int = 0, base: int = 10) -> int:
    guard = guard_of(context)
    if isinstance(value, str):
        guard.make(len(value))
    elif isinstance(value, Decimal) and value.is_finite() and value.adjusted() > 1_000:
        raise TemplateFault("a whole number would have more than 1,000 digits")
    return whole(DEFAULT_FILTERS["int"](value, default, base))


@pass_context
def _replace(context: Context, s: Any, old: Any, new: Any, count: int | None = None) -> str:
    guard = guard_of(context)
    text, old, new = str(guard.text(s)), str(guard.text(old)), str(guard.text(new))
    replaced(guard, text, old, new)
    return text.replace(old, new, -1 if count is None else count)


@pass_context
def _round(context: Context, value: Any, precision: int = 0, method: str = "common") -> Any:
    if isinstance(precision, int) and abs(precision) > 400:
        raise TemplateFault("round is for at most 400 digits")
    guard_of(context).charge(1)
    return whole(DEFAULT_FILTERS["round"](value, precision, method))


@pass_context
def _to_json(
    context: Context,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON as it is, without HTML's escapes."""
    guard = guard_of(context)
    extent = guard.walk(value)
    guard.make(extent.written)
    if indent is None and separators is None and not ensure_ascii and not sort_keys:
        return guard.made_text(_encode(value))
    wide = indent if isinstance(indent, int) else len(indent or "")
    wide = max(wide, *map(len, separators or ("",)), 0)
    if wide > 64:
        raise TemplateFault("tojson indents and separates by at most 64 characters")
    guard.make(extent.parts * wide * (extent.depth if indent is not None else 2))
    guard.charge(8 * extent.parts)
    return guard.made_text(
        json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )
    )


@pass_context
def _truncate(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
    guard_of(context).make(8 * len(value))  # of a list as well
    return called(context, DEFAULT_FILTERS["truncate"], value, *args, **kwargs)


_quote = _on_text("urlencode", 12, slow=3)


@pass_context
def _url_encode(context: Context, value: Any) -> str:
    if isinstance(value, str):
        return _quote(context, value)
    guard = guard_of(context)
    guard.make(12 * guard.walk(value, plain=True).written)
    return DEFAULT_FILTERS["urlencode"](value)


TEXT_FILTERS: dict[str, Filter] = {
    **{name: _on_text(name) for name in ("string", "safe", "trim")},
    **{name: _on_text(name, slow=READ - CASE) for name in ("capitalize", "lower", "upper")},
    **{name: _on_text(name, ESCAPED) for name in ("e", "escape", "forceescape")},
    **{name: _on_number(name) for name in ("filesizeformat", "float")},
    "center": _center,
    "format": _format,
    "indent": _indent,
    "int": _int,
    "replace": _replace,
    "round": _round,
    "tojson": _to_json,
    "title": _on_text("title", slow=4),
    "truncate": _truncate,
    "urlencode": _url_encode,
    "wordcount": _on_text("wordcount", slow=7),
}
