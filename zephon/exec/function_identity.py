"""What a user's function is, as JSON values: the part of a recipe that says which function ran.

Two functions are one when their qualified name, the syntax tree of their source and the simple
values that they close over, or have as defaults, are the same: comments, formatting and the file's
place do not count, and what a function reads from globals is not looked at. An object that is
called, or whose method is, is known by what its class says in its body, and by its attributes as
they were when it was first described: what it keeps while it runs does not make another of it.

What cannot be told is ``opaque``: of a function without source only the name is known, of any other
value its type, and a warning says so once for each.

A text of more than a word may be a secret, or of the data, so it is known by its digest; so is what
would take much room in every checkpoint.

The file is long because functions hold values and values hold functions: each describes the other.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import inspect
import json
import textwrap
import types
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from zephon.qualified_names import qualified_name

_SIMPLE = (type(None), bool, int, float, str, bytes)
_CONSTANT = (*_SIMPLE, tuple, frozenset, functools.partial)
_CONTAINERS = (list, dict, set, np.ndarray)
_UNITS = ("characters", "bytes")
_LONGEST_WORD, _LONGEST_VALUE = 16, 1_000
_warned: set[str] = set()
_first_seen: dict[int, tuple[weakref.ref[Any], dict[str, Any]]] = {}
_trees: dict[int, tuple[weakref.ref[types.CodeType], str | None]] = {}


def identity_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Describe a function.

    >>> identity_of(len)
    {'name': 'builtins.len'}
    >>> def twice(row, by=2): return by * len(row)
    >>> sorted(identity_of(functools.partial(twice, by=3)))
    ['arguments', 'partial']
    """
    return _identity(function, ())


def identity_of_value(value: Any) -> Any:
    """Describe a value that a function of the user goes by; what cannot be told is ``opaque``.

    >>> identity_of_value({"a": (1, 2.5)})
    [["'a'", [1, '2.5']]]
    """
    return _value(value, ())


def members_of(kinds: Iterable[type], around: tuple[object, ...] = ()) -> dict[str, Any]:
    """Describe what classes say in their bodies, by name: functions and values; a later wins."""
    found: dict[str, Any] = {}
    for kind in kinds:
        for name, value in vars(kind).items():
            inner = value.fget if isinstance(value, property) else value
            inner = inner.func if isinstance(inner, functools.cached_property) else inner
            inner = inner.__func__ if isinstance(inner, staticmethod | classmethod) else inner
            if isinstance(inner, types.FunctionType):
                found[name] = _identity(inner, around)
            elif _counts(name, value):
                found[name] = _value(value, around)
    return dict(sorted(found.items()))


def _counts(name: str, value: Any) -> bool:
    """Whether a value in a class body is part of what the class is; a hidden cache is not."""
    if isinstance(value, _CONTAINERS):
        return not name.startswith("_")
    return isinstance(value, _CONSTANT) and not name.startswith("__")


def _identity(function: Callable[..., Any], around: tuple[object, ...]) -> dict[str, Any]:
    """Describe a function that those ``around`` it close over, or are given."""
    if isinstance(function, functools.partial):
        inside = (*around, function)
        return {
            "partial": _identity(function.func, inside),
            "arguments": [_value(v, inside) for v in (function.args, function.keywords)],
        }
    if isinstance(function, types.MethodType):
        found = _identity(function.__func__, around)
        if isinstance(function.__self__, type):
            return found
        return {**found, "object": _object(function.__self__, around)}
    name = qualified_name(function)
    if isinstance(function, types.BuiltinFunctionType | type):
        return {"name": name}
    if any(function is each for each in around):  # it closes over itself
        return {"name": name}
    if not isinstance(function, types.FunctionType):
        return {"name": name, **_object(function, around)}
    tree = _tree(function)
    if tree is None:
        _warn_once(f"the source of {name}", _place(function))
        return {"name": name, "opaque": True}
    inside = (*around, function)
    found: dict[str, Any] = {"name": name, "source": hashlib.sha256(tree.encode()).hexdigest()}
    captured = _captured(function)
    if captured:
        found["closure"] = {each: _value(v, inside) for each, v in sorted(captured.items())}
    defaults = (function.__defaults__ or (), function.__kwdefaults__ or {})
    if any(defaults):
        found["defaults"] = [_value(each, inside) for each in defaults]
    return found


def _object(value: Any, around: tuple[object, ...]) -> dict[str, Any]:
    """Describe an object that is called, or whose method is, as it was when it was first seen."""
    if any(value is each for each in around):
        return {"object": "itself"}
    kept = _first_seen.get(id(value))
    if kept is not None and kept[0]() is value:
        return kept[1]
    kind, inside = type(value), (*around, value)
    package = _package(kind)
    own = [each for each in reversed(kind.__mro__) if _package(each) == package]
    methods, attributes = members_of(own, inside), _attributes(value)
    found: dict[str, Any] = {"methods": methods} if methods else {}
    if attributes:
        found["attributes"] = {name: _value(v, inside) for name, v in sorted(attributes.items())}
    if not found:
        _warn_once(f"the source of {qualified_name(kind)}")
        return {"opaque": True}
    with contextlib.suppress(TypeError):  # of a class without weak references
        key = id(value)
        _first_seen[key] = (weakref.ref(value, lambda _: _first_seen.pop(key, None)), found)
    return found


def _package(kind: type) -> str:
    return qualified_name(kind).partition(".")[0]


def _attributes(value: Any) -> dict[str, Any]:
    """Give what an object holds; of what wraps a function, that function and not its name."""
    found = {}
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with contextlib.suppress(AttributeError):  # it has no value yet
                found[name] = getattr(value, name)
    found.update(getattr(value, "__dict__", {}))
    hidden = ("__dict__", "__weakref__", "__module__", "__name__", "__qualname__", "__doc__")
    hidden += ("__annotations__", "__type_params__")
    return {name: each for name, each in found.items() if name not in hidden}


def _captured(function: types.FunctionType) -> dict[str, Any]:
    """Return what a function closes over, by name."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # it has no value yet
            found[name] = cell.cell_contents
    return found


def _qualified_name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _value(value: Any, around: tuple[object, ...]) -> Any:
    """Describe what a function closes over or is given, as long as that is short."""
    if isinstance(value, str | bytes) and len(value) > _LONGEST_WORD:
        return _digested(f"{len(value):,} {_UNITS[isinstance(value, bytes)]}", value)
    found = _whole_value(value, around)
    if isinstance(found, list) or (isinstance(found, dict) and found.keys() == {"set"}):
        text = json.dumps(found, sort_keys=True)
        if len(text) > _LONGEST_VALUE:
            return _digested(f"{type(value).__name__} of {len(value):,}", text)
    return found


def _digested(what: str, content: str | bytes) -> dict[str, str]:
    """Say how much there is, and the digest of it."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return {"text": what, "sha256": hashlib.sha256(data).hexdigest()}


def _key(key: object) -> str:
    text = repr(key)
    return text if len(text) <= _LONGEST_WORD + 2 else _digested("", text)["sha256"]


def _whole_value(value: Any, around: tuple[object, ...]) -> Any:
    if isinstance(value, float | bytes):
        return repr(value)
    if isinstance(value, _SIMPLE):
        return value
    if any(value is each for each in around) and not callable(value):
        return "itself"
    if isinstance(value, list | tuple):
        return [_value(each, (*around, value)) for each in value]
    if isinstance(value, dict):
        inside = (*around, value)
        return sorted([_key(key), _value(each, inside)] for key, each in value.items())
    if isinstance(value, set | frozenset):
        inside = (*around, value)
        return {"set": sorted(json.dumps(_value(v, inside), sort_keys=True) for v in value)}
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": [str(value.dtype), list(value.shape), content]}
    if callable(value):
        return _identity(value, around)
    kind = qualified_name(type(value))
    users = [_qualified_name(each) for each in around if callable(each)]
    _warn_once(f"a value of type {kind} that {users[-1] if users else 'a function'} uses")
    return {"type": kind, "opaque": True}


def _tree(function: types.FunctionType) -> str | None:
    """Return the syntax tree of a function's source as text; None if there is no telling it.

    It is read once: whoever writes its file anew does not change what runs.
    """
    code = function.__code__  # not the function: a wrapper claims to be what it wraps
    key = id(code)
    kept = _trees.get(key)
    if kept is None or kept[0]() is not code:
        kept = weakref.ref(code, lambda _: _trees.pop(key, None)), _read_tree(code)
        _trees[key] = kept
    return kept[1]


def _read_tree(code: types.CodeType) -> str | None:
    try:
        lines, first = inspect.getsourcelines(code)
        tree = _parsed(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    ends = [end for _, end, _, _ in code.co_positions() if end is not None]
    if tree is None or max(ends, default=first) >= first + len(lines):
        return None  # the lines found may end before a lambda does
    wanted = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    line = code.co_firstlineno - first + 1
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, wanted) and min([node.lineno, *_decorated(node)]) == line
    ]
    return _told(found[0]) if len(found) == 1 else None  # two lambdas on a line are alike


def _told(node: Any) -> str:
    """Write a syntax tree, the same under every version of Python: without what is empty."""
    if isinstance(node, list):
        return f"[{','.join(map(_told, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = [
        f"{name}={_told(value)}"
        for name, value in ast.iter_fields(node)
        if value is not None and value != []
    ]
    return f"{type(node).__name__}({','.join(parts)})"


def _parsed(source: str) -> ast.AST | None:
    """Parse some lines; those of a lambda may begin or end amid a call."""
    inner = source.strip()
    for text in (source, f"({inner})", f"_{inner}", f"_({inner}", f"(_{inner}"):
        try:
            return ast.parse(text)
        except SyntaxError:
            continue
    return None


def _decorated(node: ast.AST) -> list[int]:
    return [each.lineno for each in getattr(node, "decorator_list", [])]


def _place(function: types.FunctionType) -> str:
    """Say where a function stands: two lambdas of one line have one name."""
    code = function.__code__
    columns = [column for _, _, column, _ in code.co_positions() if column is not None]
    return f" ({code.co_filename}, line {code.co_firstlineno}, column {max(columns, default=0)})"


def _warn_once(what: str, where: str = "") -> None:
    if what + where in _warned:
        return
    _warned.add(what + where)
    warnings.warn(
        f"{what} cannot be read, so a checkpoint knows it by its name alone and does not notice "
        f"when it changes{where}",
        RuntimeWarning,
        stacklevel=2,
    )
