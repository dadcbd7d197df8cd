"""Jinja's tests (``is odd``, ``is in``), each taking from the budget what it needs."""

from __future__ import annotations

from typing import Any

from jinja2.runtime import Context
from jinja2.tests import TESTS as DEFAULT_TESTS
from jinja2.utils import pass_context

from zephon.exec.chat.sandbox.extents import key
from zephon.exec.chat.sandbox.filters import FILTERS
from zephon.exec.chat.sandbox.guarded_calls import Filter, guard_of, soft


def _comparing(how: str) -> Filter:
    @pass_context
    def guarded(context: Context, value: Any, other: Any) -> Any:
        return guard_of(context).compared(how, value, other)

    return guarded


@pass_context
def _in(context: Context, value: Any, seq: Any) -> bool:
    return guard_of(context).within(value, seq)


@pass_context
def _odd(context: Context, value: Any) -> bool:
    return guard_of(context).modulo(value, 2) == 1


@pass_context
def _even(context: Context, value: Any) -> bool:
    return guard_of(context).modulo(value, 2) == 0


@pass_context
def _divisible(context: Context, value: Any, num: Any) -> bool:
    return guard_of(context).modulo(value, num) == 0


@pass_context
def _is_lower(context: Context, value: Any) -> bool:
    return soft(guard_of(context), value).islower()


@pass_context
def _is_upper(context: Context, value: Any) -> bool:
    return soft(guard_of(context), value).isupper()


@pass_context
def _is_filter(context: Context, value: Any) -> bool:
    return key(value) in FILTERS


@pass_context
def _is_test(context: Context, value: Any) -> bool:
    return key(value) in TESTS


_NAMES = {
    "eq": ("==", "eq", "equalto"),
    "ne": ("!=", "ne"),
    "gt": (">", "gt", "greaterthan"),
    "gteq": (">=", "ge"),
    "lt": ("<", "lt", "lessthan"),
    "lteq": ("<=", "le"),
}

TESTS: dict[str, Filter] = {
    **DEFAULT_TESTS,
    **{name: _comparing(how) for how, names in _NAMES.items() for name in names},
    "divisibleby": _divisible,
    "even": _even,
    "filter": _is_filter,
    "in": _in,
    "lower": _is_lower,
    "odd": _odd,
    "test": _is_test,
    "upper": _is_upper,
}
