"""The functions that templates call by name, as transformers and Jinja give them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import TemplateError
from jinja2.sandbox import safe_range
from jinja2.utils import Cycler, Joiner, Namespace

from zephon.exec.chat.sandbox.budget import TemplateFault
from zephon.exec.chat.sandbox.extents import key
from zephon.exec.chat.sandbox.methods import check_date_format

if TYPE_CHECKING:
    from zephon.exec.chat.sandbox.guard import Guard

DATE_VARIABLE = "strftime_now_date"


class Function:
    """A function that only a template's call reaches, with the guard of its rendering."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make templates find it callable; they never come here."""
        raise TypeError("this is called by templates")


def _raise(guard: Guard, /, message: Any) -> None:
    raise TemplateError(guard.text(message))


def _now(guard: Guard, /, format: str) -> str:  # noqa: A002 - transformers' name
    """Write the date that the recipe fixes; the day of today is another one tomorrow."""
    given = guard.variables.get(DATE_VARIABLE)
    if given is None:
        raise TemplateFault(
            "the template asks for the date of today, with which the same row gives another text "
            f"tomorrow; fix it with chat_template_kwargs={{{DATE_VARIABLE!r}: 'YYYY-MM-DD'}}, or "
            "give the variable that the template looks for, often date_string"
        )
    if isinstance(given, str):
        try:
            given = datetime.datetime.fromisoformat(given)
        except ValueError:
            given = None
    if not isinstance(given, datetime.date):
        raise TemplateFault(f"{DATE_VARIABLE} is no date such as '2026-03-31'")
    check_date_format(format)
    return given.strftime(format)


def _range(guard: Guard, /, *bounds: int) -> range:
    guard.charge(1)
    return safe_range(*bounds)


def _dict(guard: Guard, /, *args: Any, **kwargs: Any) -> dict[Any, Any]:
    if len(args) == 1 and not isinstance(args[0], Mapping):
        pairs = [tuple(guard.items(pair)) for pair in guard.items(args[0])]
        guard.make(8 * len(pairs))
        for pair in pairs:
            key(pair[0] if pair else None)
        return dict(pairs, **kwargs)
    guard.make(8 * sum(map(len, args)) + 8 * len(kwargs))
    return dict(*args, **kwargs)


def _namespace(guard: Guard, /, *args: Any, **kwargs: Any) -> Namespace:
    return Namespace(_dict(guard, *args, **kwargs))


def _cycler(guard: Guard, /, *items: Any) -> Cycler:
    guard.charge(1)
    return Cycler(*items)


def _joiner(guard: Guard, /, sep: str = ", ") -> Joiner:
    guard.charge(1)
    return Joiner(sep)


def _lipsum(guard: Guard, /, *_: Any, **__: Any) -> str:
    guard.charge(1)
    raise TemplateFault("lipsum is another text each time")


FUNCTIONS: dict[str, Function] = {
    "cycler": Function(_cycler),
    "dict": Function(_dict),
    "joiner": Function(_joiner),
    "lipsum": Function(_lipsum),
    "namespace": Function(_namespace),
    "raise_exception": Function(_raise),
    "range": Function(_range),
    "strftime_now": Function(_now),
}
