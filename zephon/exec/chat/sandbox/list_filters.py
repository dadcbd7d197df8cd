"""Filters over many values, each taking from the budget what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2.filters import FILTERS as DEFAULT_FILTERS
from jinja2.runtime import Context
from jinja2.utils import pass_context

from zephon.exec.chat.sandbox.budget import READ
from zephon.exec.chat.sandbox.extents import NUMBERS, whole
from zephon.exec.chat.sandbox.guarded_calls import Filter, called, check_path, guard_of, soft


def _late(name: str) -> Filter:
    """A filter that makes its values one by one, when they are asked for."""
    original = DEFAULT_FILTERS[name]

    @pass_context
    def guarded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        guard = guard_of(context)
        guard.charge(1)
        check_path(kwargs.get("attribute"), *(args[:1] if "attr" in name else ()))
        return guard.late(iter(called(context, original, value, *args, **kwargs)))

    return guarded


def _on_all(name: str) -> Filter:
    """A filter that compares all values with each other."""
    original = DEFAULT_FILTERS[name]

    @pass_context
    def guarded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        guard = guard_of(context)
        check_path(kwargs.get("attribute"), *args)
        given = value if isinstance(value, Mapping) else guard.items(value)
        extent = guard.walk(given)
        guard.charge((extent.parts + (extent.letters >> READ)) * (1 + len(given).bit_length()))
        guard.make(16 * len(given))
        made = called(context, original, given, *args, **kwargs)
        return guard.late(iter(made)) if name == "unique" else made

    return guarded


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
    return guard.late(called(context, DEFAULT_FILTERS["slice"], given, slices, fill_with))


@pass_context
def _join(context: Context, value: Any, d: Any = "", attribute: Any = None) -> str:
    guard = guard_of(context)
    check_path(attribute)
    separator = soft(guard, d)
    given = guard.items(value)
    if attribute is not None:
        given = list(called(context, DEFAULT_FILTERS["map"], given, attribute=attribute))
    texts = [guard.text(each) for each in given]
    guard.make(sum(map(len, texts)) + len(separator) * len(texts))
    return str(separator).join(texts)


@pass_context
def _list(context: Context, value: Any) -> list[Any]:
    guard = guard_of(context)
    guard.charge(1)
    return list(guard.items(value))


@pass_context
def _reverse(context: Context, value: Any) -> Any:
    guard = guard_of(context)
    if isinstance(value, str):
        guard.make(len(value))
        return value[::-1]
    if not hasattr(value, "__len__"):
        given = guard.items(value)
        guard.make(8 * len(given))
        return given[::-1]
    guard.make(8 * len(value))
    made = DEFAULT_FILTERS["reverse"](value)
    return made if isinstance(made, list) else guard.late(iter(made))


@pass_context
def _sum(context: Context, iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
    guard = guard_of(context)
    check_path(attribute)
    given = guard.items(iterable)
    if attribute is not None:
        given = list(called(context, DEFAULT_FILTERS["map"], given, attribute=attribute))
    if isinstance(start, str):
        raise TypeError("sum() can't sum strings")
    if all(type(each) in NUMBERS for each in given) and type(start) in NUMBERS:
        return whole(sum(given, start))
    return guard.added(start, *given) if given else start


LIST_FILTERS: dict[str, Filter] = {
    **{name: _late(name) for name in ("items", "map", "select", "reject")},
    **{name: _late(name) for name in ("selectattr", "rejectattr")},
    **{name: _on_all(name) for name in ("dictsort", "sort", "groupby", "unique", "min", "max")},
    "attr": _attr,
    "batch": _batch,
    "join": _join,
    "list": _list,
    "reverse": _reverse,
    "slice": _slice,
    "sum": _sum,
}
