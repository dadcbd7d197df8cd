"""What filters and conditions share: the guard of a rendering, and Jinja's own as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2.runtime import Context

from zephon.exec.chat.sandbox.budget import TemplateFault
from zephon.exec.chat.sandbox.guard import Guard

Filter = Callable[..., Any]

_LONGEST_PATH = 100
_MOST_PARTS = 16


def guard_of(context: Context) -> Guard:
    """Return the guard of the rendering that a filter runs in."""
    return context.guard  # type: ignore[attr-defined]


def soft(guard: Guard, value: Any) -> str:
    """Make a value a text; text that was marked safe stays so."""
    return value if isinstance(value, str) else guard.text(value)


def called(context: Context, original: Filter, *args: Any, **kwargs: Any) -> Any:
    """Call one of Jinja's own filters with what it wants beside its arguments."""
    wants = getattr(original, "jinja_pass_arg", None)
    if wants is None:
        return original(*args, **kwargs)
    first = {
        "context": context,
        "eval_context": context.eval_ctx,
        "environment": context.environment,
    }
    return original(first[wants.name], *args, **kwargs)


def check_path(*attributes: Any) -> None:
    """Refuse a path such as ``a.b.c`` that takes many steps for each value."""
    for each in attributes:
        if isinstance(each, str) and (
            len(each) > _LONGEST_PATH or each.count(".") + each.count(",") >= _MOST_PARTS
        ):
            raise TemplateFault(
                f"an attribute has more than {_LONGEST_PATH} characters or {_MOST_PARTS} parts"
            )
