"""What the source of an operator says: writes to itself, and calls that answer differently.

Read are the processing functions, methods of the same object that they call, and functions of the
same module. What cannot be read is passed over.
"""

from __future__ import annotations

import ast
import datetime
import inspect
import os
import time
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from zephon.validation.report import Issue, issue
from zephon.validation.source_reading import Source, calls_in, is_on_self, meaning_of, reached

_CHANGING = (
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop",
    "popitem", "popleft", "remove", "reverse", "setdefault", "sort", "update",
)  # fmt: skip
_UNSTEADY = (
    (hash, "hash()"),
    (os.getpid, "os.getpid()"),
    (os.urandom, "os.urandom()"),
    (time.time, "time.time()"),
    (time.time_ns, "time.time_ns()"),
    (uuid.uuid1, "uuid.uuid1()"),
    (uuid.uuid4, "uuid.uuid4()"),
    *(
        (vars(kind)[name], f"{kind.__name__}.{name}()")
        for kind in (datetime.date, datetime.datetime)
        for name in ("now", "today", "utcnow")
        if name in vars(kind)
    ),
)
_UNSTEADY_MODULES = ("random.", "secrets.", "numpy.random.")
_SEEDED = (
    "Generator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "Random", "RandomState", "SFC64",
    "SeedSequence", "default_rng",
)  # fmt: skip
"""Steady if they are given a seed."""


def check_source(
    name: str, functions: list[Callable[..., Any]], *, remembers: bool
) -> Iterator[Issue]:
    """Read the source of processing functions; yields one issue of a code at most.

    Args:
        remembers: the operator says that it keeps a state, so that it may write to itself.
    """
    sources = list(reached(functions))
    written = None if remembers else next(filter(None, map(_written, sources)), None)
    if written is not None:
        yield issue(
            "OP_WRITES_TO_SELF",
            name,
            f"processing must not assign to the operator, got {written}; keep what must be "
            "remembered in an accumulator, and what is built once in setup()",
        )
    changed = None if remembers else next(filter(None, map(_changed, sources)), None)
    if changed is not None:
        yield issue(
            "OP_MUTATES_SELF",
            name,
            f"processing must not change what the operator holds, got {changed}; keep what must "
            "be remembered in an accumulator",
        )
    unsteady = next(filter(None, map(_unsteady, sources)), None)
    if unsteady is not None:
        yield issue(
            "OP_NONDETERMINISTIC_STDLIB_CALL",
            name,
            f"processing must give the same in every run, got a call of {unsteady}; take random "
            "numbers from a generator that is seeded with the record's sample_id",
        )


def _written(source: Source) -> str | None:
    """Find an assignment to an attribute of self."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(
                ctx=ast.Store() | ast.Del(), value=ast.Name(id=name), attr=attribute
            ):
                if name == source.self_name:
                    return f"self.{attribute} in {source.function.__qualname__}"
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name(id=name), *_]):
                if name == source.self_name:
                    return f"setattr in {source.function.__qualname__}"
    return None


def _changed(source: Source) -> str | None:
    """Find a change of what an attribute of self holds."""
    for node in ast.walk(source.tree):
        match node:
            case (
                ast.Attribute(ctx=ast.Store() | ast.Del())
                | ast.Subscript(ctx=ast.Store() | ast.Del())
            ) if is_on_self(source, node, 2):
                return f"{ast.unparse(node)} in {source.function.__qualname__}"
            case ast.Call(func=ast.Attribute(attr=attribute) as called) if (
                attribute in _CHANGING and is_on_self(source, called, 2)
            ):
                return f"{ast.unparse(called)}() in {source.function.__qualname__}"
    return None


def _unsteady(source: Source) -> str | None:
    """Find a call that gives something else in another run."""
    for call in calls_in(source):
        called = meaning_of(source, call)
        where = f" in {source.function.__qualname__}"
        for known, spelt in _UNSTEADY:
            if called is known:
                return spelt + where
        seeded = getattr(called, "__name__", None) in _SEEDED and (call.args or call.keywords)
        if _comes_from(called).startswith(_UNSTEADY_MODULES) and not seeded:
            return f"{ast.unparse(call.func)}(){where}"
    return None


def _comes_from(called: Any) -> str:
    """Name the module of a function or class, with a dot at its end; of a method, its class's."""
    if isinstance(called, types.BuiltinMethodType | types.MethodType):
        home = called.__self__
        if not isinstance(home, types.ModuleType | type | None):
            return f"{type(home).__module__}."
    if not inspect.isroutine(called) and not isinstance(called, type):
        return ""
    return f"{getattr(called, '__module__', None)}."
