"""An operator as the checks see it, whether it was given as functions or as an instance.

Checks never touch what runs later: they call fresh copies. ``setup()`` is not called, since it
opens what a worker needs; samples of the user's own must do without it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zephon.ops import BaseOp
from zephon.ops.context import OpServices
from zephon.planner.logical import CustomOp
from zephon.types import SampleBatch, SampleRecord
from zephon.validation.comparing import is_plain, picture
from zephon.validation.samples import copies

_NO_LISTS = (str, bytes, Mapping, SampleBatch, SampleRecord)


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of an operator, as a worker has it."""

    process_many: Callable[..., Any]
    process_one: Callable[..., Any] | None

    def call(self, records: Sequence[SampleRecord]) -> Any:
        """Call ``process_many`` with copies of some records; returns a list, or what is none."""
        return listed(self.process_many(copies(records)))

    def state(self) -> Any:
        """Describe what the copy holds."""
        return picture([held_by(f) for f in (self.process_many, self.process_one) if f is not None])


@dataclass(frozen=True, slots=True)
class Subject:
    """An operator to be checked: the node of the plan that holds it."""

    node: CustomOp

    def fresh(self) -> Copy:
        """Copy the operator as it is before its first call."""
        node = self.node
        if node.instance is not None:
            instance = copy.deepcopy(node.instance)
            return Copy(instance.process_many, own_method(instance, "process_one"))
        return Copy(fresh_function(node.process_many), fresh_function(node.process_one))

    def accumulator_factory(self) -> Callable[[], Any] | None:
        """Give what makes the accumulator; None if the operator brings none."""
        node, offered = self.node, {"deterministic": True, "ctx": OpServices().context()}
        if node.instance is not None:
            return functools.partial(copy.deepcopy(node.instance).accumulator, **offered)
        if node.accumulator is None:
            return None
        return functools.partial(node.accumulator, **_accepted(node.accumulator, offered))

    def functions(self) -> list[Callable[..., Any]]:
        """Give the functions whose source says how records are processed."""
        node = self.node
        if node.instance is None:
            return [f for f in (node.process_many, node.process_one) if f is not None]
        one = own_method(node.instance, "process_one")
        return [node.instance.process_many, *([] if one is None else [one])]


def listed(made: Any) -> Any:
    """Make a list of what can be one, such as a generator, as a run does."""
    return made if isinstance(made, _NO_LISTS) or not isinstance(made, Iterable) else list(made)


def fresh_function(function: Any) -> Any:
    """Copy a function with what it holds, as far as that is plain values; else the same one.

    A function that remembers in a variable around it begins anew in the copy. Models, tokenizers
    and the like are shared with the function itself.
    """
    if isinstance(function, types.FunctionType):
        cells = tuple(types.CellType(*_cell(c, fresh=True)) for c in function.__closure__ or ())
        made = types.FunctionType(
            function.__code__, function.__globals__, function.__name__, closure=cells or None
        )
        made.__defaults__ = _copied(function.__defaults__)
        made.__kwdefaults__ = _copied(function.__kwdefaults__)
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        return made
    if isinstance(function, types.MethodType):
        return types.MethodType(function.__func__, _copied(function.__self__))
    if isinstance(function, functools.partial):
        return functools.partial(
            fresh_function(function.func), *_copied(function.args), **_copied(function.keywords)
        )
    return _copied(function)


def held_by(function: Any) -> Any:
    """Gather what a function remembers things in: variables around it, defaults, or its object."""
    if isinstance(function, types.FunctionType):
        cells = [value for cell in function.__closure__ or () for value in _cell(cell, fresh=False)]
        return [cells, function.__defaults__, function.__kwdefaults__]
    if isinstance(function, types.MethodType):
        return getattr(function.__self__, "__dict__", None)
    if isinstance(function, functools.partial):
        return [held_by(function.func), function.args, function.keywords]
    return getattr(function, "__dict__", None)


def own_method(instance: Any, name: str) -> Any:
    """Give a method that the class of an instance writes itself; None where it is inherited."""
    if getattr(type(instance), name, None) is getattr(BaseOp, name, None):
        return None
    return getattr(instance, name, None)


def takes(function: Any, *names: str) -> bool:
    """Tell whether a function takes these keywords."""
    return len(_accepted(function, dict.fromkeys(names))) == len(names)


def _accepted(function: Any, offered: dict[str, Any]) -> dict[str, Any]:
    """Choose the keywords that a function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in without a signature
        return {}
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return offered
    named = {each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY}
    return {name: value for name, value in offered.items() if name in named}


def _copied(value: Any) -> Any:
    """Copy a plain value; anything else is shared, and so is what cannot be copied."""
    if not is_plain(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # of any class: a copy runs code of the user
        return value


def _cell(cell: types.CellType, *, fresh: bool) -> list[Any]:
    """Give what a variable around a function holds; nothing if it holds nothing yet."""
    try:
        value = cell.cell_contents
    except ValueError:
        return []
    return [_copied(value) if fresh else value]
