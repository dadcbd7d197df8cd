"""Jinja's filters, each taking from the budget what it needs.

All of them get the context, so none is computed when a template is compiled. What gives another
text each time, or takes unforeseeable time for no use in a chat, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from jinja2.filters import FILTERS as DEFAULT_FILTERS
from jinja2.runtime import Context, Undefined
from jinja2.utils import pass_context

from zephon.exec.chat.budget import LONGEST_TEXT, TemplateFault
from zephon.exec.chat.extents import whole
from zephon.exec.chat.generated_code import SPREAD
from zephon.exec.chat.guard import Guard
from zephon.exec.chat.methods import replaced

Filter = Callable[..., Any]

_LONGEST_PATH = 200
_encode = json.JSONEncoder(ensure_ascii=False).encode


def guard_of(context: Context) -> Guard:
    """Return the guard of the rendering that a filter runs in."""
    return context.guard  # type: ignore[attr-defined]


def soft(guard: Guard, value: Any) -> str:
    """Make a value a text; text that was marked safe stays so."""
    return value if isinstance(value, str) else guard.text(value)


def _called(context: Context, original: Filter, *args: Any, **kwargs: Any) -> Any:
    """Call one of Jinja's own filters with what it wants beside its arguments."""
    wants = getattr(getattr(original, "jinja_pass_arg", None), "name", "")
    first = {
        "context": (context,),
        "eval_context": (context.eval_ctx,),
        "environment": (context.environment,),
    }
    return original(*first.get(wants, ()), *args, **kwargs)


def _on_text(name: str, growth: int = 1) -> Filter:
    """A filter that reads a text once; its other arguments are looked at as well."""
    original = DEFAULT_FILTERS[name]

    @pass_context
    def guarded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        guard = guard_of(context)
        text = soft(guard, value)
        if len(text) * growth > LONGEST_TEXT:
            guard.make(len(text) * growth)  # raises
        guard.make(len(text))
        if args or kwargs:
            for each in (*args, *kwargs.values()):
                if isinstance(each, str) and len(each) > 8:  # trim compares each with each
                    guard.charge(len(text) * len(each) >> 10)
        return _called(context, original, text, *args, **kwargs)

    return guarded


def _late(name: str) -> Filter:
    """A filter that makes its values one by one, when they are asked for."""
    original = DEFAULT_FILTERS[name]

    @pass_context
    def guarded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        guard = guard_of(context)
        guard.charge(1)
        _path(kwargs.get("attribute"), *(args[:1] if "attr" in name else ()))
        return guard.late(iter(_called(context, original, value, *args, **kwargs)))

    return guarded


def _on_all(name: str) -> Filter:
    """A filter that compares all values with each other."""
    original = DEFAULT_FILTERS[name]

    @pass_context
    def guarded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        guard = guard_of(context)
        _path(kwargs.get("attribute"), *args)
        given = value if isinstance(value, Mapping) else guard.items(value)
        extent = guard.walk(given)
        guard.charge((extent.parts + (extent.letters >> 7)) * (1 + len(given).bit_length()))
        guard.make(16 * len(given))
        made = _called(context, original, given, *args, **kwargs)
        return guard.late(iter(made)) if name == "unique" else made

    return guarded


def _refused(name: str, why: str) -> Filter:
    @pass_context
    def guarded(context: Context, *args: Any, **kwargs: Any) -> Any:
        raise TemplateFault(f"the filter {name!r} is not for chat templates: {why}")

    return guarded


def _path(*attributes: Any) -> None:
    for each in attributes:
        if isinstance(each, str) and len(each) > _LONGEST_PATH:
            raise TemplateFault(f"an attribute has more than {_LONGEST_PATH} characters")


@pass_context
def _attr(context: Context, value: Any, name: str) -> Any:
    return context.environment.attribute_only(value, name)  # type: ignore[attr-defined]


@pass_context
def _batch(context: Context, value: Any, linecount: int, fill_with: Any = None) -> Any:
    guard = guard_of(context)
    if fill_with is not None and isinstance(linecount, int):
        guard.make(8 * linecount)
    made = DEFAULT_FILTERS["batch"](value, linecount, fill_with)
    return guard.late(iter(made))


@pass_context
def _slice(context: Context, value: Any, slices: int, fill_with: Any = None) -> Any:
    guard = guard_of(context)
    given = guard.items(value)
    guard.make(8 * len(given))
    return guard.late(_called(context, DEFAULT_FILTERS["slice"], given, slices, fill_with))


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
def _join(context: Context, value: Any, d: Any = "", attribute: Any = None) -> str:
    guard = guard_of(context)
    _path(attribute)
    separator = soft(guard, d)
    given = guard.items(value)
    if attribute is not None:
        given = list(_called(context, DEFAULT_FILTERS["map"], given, attribute=attribute))
    texts = [guard.text(each) for each in given]
    guard.make(sum(map(len, texts)) + len(separator) * len(texts))
    return str(separator).join(texts)


@pass_context
def _list(context: Context, value: Any) -> list[Any]:
    guard = guard_of(context)
    guard.charge(1)
    return list(guard.items(value))


@pass_context
def _replace(context: Context, s: Any, old: Any, new: Any, count: int | None = None) -> str:
    guard = guard_of(context)
    text, old, new = str(guard.text(s)), str(guard.text(old)), str(guard.text(new))
    replaced(guard, text, old, new)
    return text.replace(old, new, -1 if count is None else count)


@pass_context
def _reverse(context: Context, value: Any) -> Any:
    guard = guard_of(context)
    if isinstance(value, str):
        guard.make(len(value))
        return value[::-1]
    if not hasattr(value, "__len__"):
        value = guard.items(value)
    guard.make(8 * len(value))
    made = DEFAULT_FILTERS["reverse"](value)
    return made if isinstance(made, list) else guard.late(iter(made))


@pass_context
def _round(context: Context, value: Any, precision: int = 0, method: str = "common") -> Any:
    if isinstance(precision, int) and abs(precision) > 400:
        raise TemplateFault("round is for at most 400 digits")
    guard_of(context).charge(1)
    return whole(DEFAULT_FILTERS["round"](value, precision, method))


@pass_context
def _sum(context: Context, iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
    guard = guard_of(context)
    _path(attribute)
    given = guard.items(iterable)
    if attribute is not None:
        given = list(_called(context, DEFAULT_FILTERS["map"], given, attribute=attribute))
    if isinstance(start, str):
        raise TypeError("sum() can't sum strings")
    return whole(guard.added(start, *given)) if given else start


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
def _spread(context: Context, values: Any) -> Any:
    """Count what ``*values`` and ``**values`` hand to a call."""
    if isinstance(values, Mapping):
        guard_of(context).make(8 * len(values))
        return values
    return guard_of(context).items(values)


_TIME = "its time is not foreseeable"

FILTERS: dict[str, Filter] = {
    **{name: DEFAULT_FILTERS[name] for name in ("abs", "count", "length", "d", "default")},
    **{name: DEFAULT_FILTERS[name] for name in ("first", "last")},
    **{name: _on_text(name) for name in ("capitalize", "lower", "upper", "title", "trim")},
    **{name: _on_text(name) for name in ("string", "safe", "wordcount", "truncate")},
    **{name: _on_text(name, 6) for name in ("e", "escape", "forceescape")},
    **{name: _late(name) for name in ("items", "map", "select", "reject")},
    **{name: _late(name) for name in ("selectattr", "rejectattr")},
    **{name: _on_all(name) for name in ("dictsort", "sort", "groupby", "unique", "min", "max")},
    **{name: _refused(name, _TIME) for name in ("pprint", "striptags", "urlize", "wordwrap")},
    "attr": _attr,
    "batch": _batch,
    "center": _center,
    "filesizeformat": _on_text("filesizeformat"),
    "float": _on_text("float"),
    "format": _format,
    "indent": _indent,
    "int": _int,
    "join": _join,
    "list": _list,
    "random": _refused("random", "it gives another value each time"),
    "replace": _replace,
    "reverse": _reverse,
    "round": _round,
    "slice": _slice,
    "sum": _sum,
    "tojson": _to_json,
    "urlencode": _on_text("urlencode", 12),
    "xmlattr": _refused("xmlattr", "it writes HTML"),
    SPREAD: _spread,
}
