"""Compiled chat templates: variables in, text out, the same each time, within fixed limits.

A template is what a tokenizer brings or a user writes; the variables hold a row. Neither is
trusted: nothing in Python is reachable, no value of the caller is changed, and what a rendering
may take is counted (``budget.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from zephon.errors import PlanError
from zephon.exec.chat.sandbox.budget import TemplateFault

if TYPE_CHECKING:
    from jinja2 import Template as JinjaTemplate

    from zephon.exec.chat.sandbox.environment import ChatContext, ChatEnvironment

__all__ = ["Template", "TemplateFault", "compile_template"]

LONGEST_TEMPLATE = 1 << 18
_LONGEST_PROBLEM = 400
_KEPT = 64
_LOOK = -2  # as turns.py says, which loads Jinja


def compile_template(text: str, *, name: str) -> Template:
    """Compile a Jinja chat template; the last few texts are remembered.

    Args:
        text: the template.
        name: what to call it in messages.

    Raises:
        PlanError: it is no Jinja template, or it needs what a chat template has no use for.
    """
    return Template(name, text)


class Template:
    """A chat template; any number of threads may render it at once.

    name: what to call it in messages.
    has_generation_tags: it says with ``{% generation %}`` what an assistant wrote.
    """

    __slots__ = ("_compiled", "_environment", "_text", "has_generation_tags", "name")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._text = text
        self._environment, self._compiled, self.has_generation_tags = _compile(text, name)

    def render(self, variables: Mapping[str, Any]) -> str:
        """Render plain data: what JSON can say, dates and numbers. Nothing in it is changed.

        Raises:
            TemplateFault: the template refuses it, fails on it, or takes more than the limits.
        """
        context = self._environment.context(variables, self._compiled.blocks)
        return str(self._output(context))

    def render_marked(self, variables: Mapping[str, Any]) -> tuple[str, list[tuple[int, int]]]:
        """Render, and say which characters the ``{% generation %}`` blocks wrote.

        Returns:
            The text that ``render`` gives, and (start, stop) of each block in the text's order;
            a block inside another is part of it.

        Raises:
            TemplateFault: as ``render``, or the place of what a block wrote is not known.
        """
        context = self._environment.context(variables, self._compiled.blocks)
        text = self._output(context)
        return str(text), context.guard.marks.ranges(text)

    def render_turns(self, variables: Mapping[str, Any]) -> tuple[str, list[int], int] | None:
        """Render as ``render`` does, and say where in the text each message begins.

        Returns:
            The text; where each message begins, and where the last ends; and how many of the
            messages there must be for this: the text of fewer messages, but of no fewer than so
            many, is what stands before the next one and what stands behind the last. None: that is
            not so, or is not known.

        Raises:
            TemplateFault: as ``render``.
        """
        found = _compile_by_turns(self._text)
        if found is None:
            return None
        compiled, least = found
        context = self._environment.context(variables, compiled.blocks)
        text = self._output(context, compiled)
        marks = context.guard.marks.of_lines(text)
        places = [offset for line, offset in marks if line != _LOOK]
        if len(places) != len(marks) or len(places) != len(variables["messages"]) + 1:
            return None
        return str(text), places, least

    def _output(self, context: ChatContext, compiled: JinjaTemplate | None = None) -> str:
        try:
            run = (compiled or self._compiled).root_render_func
            pieces = list(run(context))
            context.guard.check_output(pieces)
            marked = self.has_generation_tags or compiled is not None
            return self._environment.joined(pieces) if marked else "".join(pieces)
        except TemplateFault as fault:
            if fault.line is None:
                raise TemplateFault(fault.problem, self._line(fault.__traceback__)) from fault
            raise
        except Exception as exc:
            raise TemplateFault(_problem(exc), self._line(exc.__traceback__)) from exc

    def _line(self, traceback: TracebackType | None) -> int | None:
        """Return the template's line that ran last."""
        line = None
        while traceback is not None:
            if traceback.tb_frame.f_globals.get("__jinja_template__") is self._compiled:
                line = self._compiled.get_corresponding_lineno(traceback.tb_lineno)
            traceback = traceback.tb_next
        return line


def _problem(exc: Exception) -> str:
    """Say in one line what Jinja or Python found."""
    if isinstance(exc, RecursionError):
        return "it is nested too deeply"
    if isinstance(exc, SyntaxError):  # of the Python code that Jinja made
        return f"it is nested too deeply ({exc.msg})"
    if isinstance(exc, MemoryError):
        return "it needs more memory than there is"
    text = " ".join(str(exc).split()) or type(exc).__name__
    return text if len(text) <= _LONGEST_PROBLEM else f"{text[:_LONGEST_PROBLEM]}..."


@functools.lru_cache(maxsize=1)
def _environment() -> ChatEnvironment:
    from zephon.exec.chat.sandbox.environment import (
        ChatEnvironment,  # loads Jinja, so not at the top
    )

    return ChatEnvironment()


@functools.lru_cache(maxsize=_KEPT)
def _compile_by_turns(text: str) -> tuple[JinjaTemplate, int] | None:
    return _environment().compiled_by_turns(text)


@functools.lru_cache(maxsize=_KEPT)
def _compile(text: str, name: str) -> tuple[ChatEnvironment, JinjaTemplate, bool]:
    if len(text) > LONGEST_TEMPLATE:
        raise PlanError(
            f"chat template {name!r}: it has {len(text):,} characters, at most "
            f"{LONGEST_TEMPLATE:,} are allowed"
        )
    environment = _environment()
    try:
        return environment, *environment.compiled(text)
    except Exception as exc:
        line = None if isinstance(exc, SyntaxError) else getattr(exc, "lineno", None)
        where = "" if line is None else f", line {line}"
        raise PlanError(
            f"chat template {name!r}{where}: it does not compile: {_problem(exc)}"
        ) from exc
