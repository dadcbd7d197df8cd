"""The source of functions, and what the names in it mean.

Names are looked up where a function would look them up, without running anything of it: an alias is
seen through, and a variable called ``time`` is not taken for the module.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Source:
    """A function that was read. owner: the class of the object whose method it is, if it is one."""

    function: types.FunctionType
    tree: ast.AST
    owner: type | None

    @property
    def self_name(self) -> str | None:
        """What the function calls its object."""
        names = self.function.__code__.co_varnames
        return names[0] if self.owner is not None and names else None


def reached(functions: list[Callable[..., Any]]) -> Iterator[Source]:
    """Read functions and those that they call, as far as that is their own object or module."""
    waiting = [_plain(function) for function in functions]
    seen: set[int] = set()
    while waiting:
        function, owner = waiting.pop(0)
        if not isinstance(function, types.FunctionType) or id(function.__code__) in seen:
            continue
        seen.add(id(function.__code__))
        tree = _tree(function)
        if tree is None:
            continue
        source = Source(function, tree, owner)
        yield source
        for call in calls_in(source):
            called = meaning_of(source, call)
            if isinstance(called, staticmethod):
                waiting.append((called.__func__, None))
            elif owner is not None and is_on_self(source, call.func, 1):
                waiting.append((called, owner))
            elif getattr(called, "__module__", None) == function.__module__:
                waiting.append((called, None))


def _plain(function: Any) -> tuple[Any, type | None]:
    """Find the function behind a callable, and whose method it is."""
    if isinstance(function, functools.partial):
        return _plain(function.func)
    if isinstance(function, types.MethodType):
        return function.__func__, type(function.__self__)
    if isinstance(function, types.FunctionType | type):
        return function, None
    return getattr(type(function), "__call__", None), type(function)  # noqa: B004


def _tree(function: types.FunctionType) -> ast.AST | None:
    """Parse the source of a function; None if there is none, or it begins amid something."""
    code = function.__code__
    try:
        tree = ast.parse(textwrap.dedent("".join(inspect.getsourcelines(code)[0])).strip())
    except (OSError, TypeError, SyntaxError):
        return None
    if code.co_name != "<lambda>":
        return tree
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    return found[0] if len(found) == 1 else None  # several on a line are alike


def calls_in(source: Source) -> Iterator[ast.Call]:
    """Yield the calls in a function."""
    return (node for node in ast.walk(source.tree) if isinstance(node, ast.Call))


def meaning_of(source: Source, call: ast.Call) -> Any:
    """Find what a call calls, without running anything of the user's; None if unknown."""
    path: list[str] = []
    node = call.func
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    if node.id == source.self_name and source.owner is not None:
        return inspect.getattr_static(source.owner, path[-1], None) if len(path) == 1 else None
    found = _named(source, node.id)
    for name in reversed(path):
        found = _member(found, name)
    return found


def _member(owner: Any, name: str) -> Any:
    """Read an attribute of a module or a class as it lies there; None of anything else."""
    if owner is np:  # it loads numpy.random when it is first asked
        return getattr(owner, name, None)
    if isinstance(owner, types.ModuleType):
        return vars(owner).get(name, sys.modules.get(f"{owner.__name__}.{name}"))
    return inspect.getattr_static(owner, name, None) if isinstance(owner, type) else None


def _named(source: Source, name: str) -> Any:
    """Find what a name means in a function; None if it is a variable of its own."""
    imported = _imported(source.tree)
    if name in imported:
        return imported[name]
    function: Any = source.function
    code = function.__code__
    if name in code.co_varnames or name in code.co_cellvars:
        return None
    if name in code.co_freevars and function.__closure__:
        try:
            return function.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:  # it has no value yet
            return None
    return function.__globals__.get(name, getattr(builtins, name, None))


def _imported(tree: ast.AST) -> dict[str, Any]:
    """Read what a function imports itself, as far as that is loaded."""
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    module = each.name if each.asname else each.name.partition(".")[0]
                    found[each.asname or module] = sys.modules.get(module)
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    found[each.asname or each.name] = _member(sys.modules.get(module), each.name)
    return found


def is_on_self(source: Source, node: ast.AST, depth: int) -> bool:
    """Tell whether an expression is at least this many attributes or items below self."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node, depth = node.value, depth - 1
    return depth <= 0 and isinstance(node, ast.Name) and node.id == source.self_name
