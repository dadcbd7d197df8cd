"""Recipes by name: `file.py:function` runs the user's Python, `job.toml` runs nothing.

A recipe makes the same pipeline anew at every call, so that several can run side by side.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tomllib
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from zephon.errors import PlanError, nearest, told
from zephon.pipeline import Pipeline
from zephon.toml_recipe import TomlRecipe

_executed: dict[str, Path] = {}  # files that were run here, by the name of their module


def load_recipe(name: str | os.PathLike[str]) -> Callable[[], Pipeline]:
    """Find a recipe.

    A Python file is executed once, as an import would, with its directory first on the path of
    modules; its function is called without arguments for each pipeline. A TOML file is only read:
    its tables say which calls are made, and paths in it are those that the calls would get.

    Args:
        name: `file.py:function` or `file.toml`.

    Returns:
        A function that makes a new pipeline at every call, and raises ``PlanError`` where the
        recipe does not.

    Raises:
        PlanError: there is no such file or function, or the file fails; the message says where.
    """
    text = os.fspath(name)
    path, colon, function = text.rpartition(":")
    if text.endswith(".toml"):
        return _toml(text)
    if colon and path.endswith(".py"):
        return _from_python(text, Path(path), function)
    if text.endswith(".py"):
        raise PlanError(
            f"recipe {text!r}: the function that makes the pipeline is missing; write "
            f"'{text}:function'"
        )
    raise PlanError(
        f"recipe {text!r}: expected 'file.py:function' or 'file.toml'; name one of them"
    )


def _toml(text: str) -> TomlRecipe:
    try:
        return TomlRecipe(text, tomllib.loads(_content(text, Path(text))))
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"recipe {text!r}: it is no TOML: {error}; mend it there") from None


def _content(text: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PlanError(f"recipe {text!r}: there is no file {str(path)!r}; name one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            f"recipe {text!r}: {str(path)!r} cannot be read: {error}; name a text file"
        ) from None


def _from_python(text: str, path: Path, name: str) -> Callable[[], Pipeline]:
    _content(text, path)
    module = _module(text, path.resolve())
    function = getattr(module, name, None)
    if not callable(function):
        own = [
            each
            for each, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        raise PlanError(f"recipe {text!r}: {path} has no function {name!r}; {nearest(name, own)}")
    last: list[Any] = []

    def make() -> Pipeline:
        try:
            made = function()
        except (Exception, SystemExit) as error:
            raise PlanError(f"recipe {text!r}: {_where(error, path)}; mend it there") from error
        if not isinstance(made, Pipeline):
            raise PlanError(
                f"recipe {text!r}: expected a Pipeline, got {type(made).__name__}; return what "
                "Pipeline(source) and its calls give"
            )
        if last and last[0] is made:
            raise PlanError(
                f"recipe {text!r}: expected a new Pipeline at every call, got one twice; build it "
                "inside the function"
            )
        last[:] = [made]
        return made

    return make


def _module(text: str, path: Path) -> ModuleType:
    """Run a file as the module of its name, so that functions are called what an import says."""
    name = path.stem
    loaded = sys.modules.get(name)
    if loaded is not None and name not in _executed:
        if Path(getattr(loaded, "__file__", None) or "").resolve() == path:
            return loaded
        raise PlanError(
            f"recipe {text!r}: a module {name!r} is loaded already, from "
            f"{getattr(loaded, '__file__', None) or 'Python itself'}; give the file another name"
        )
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PlanError(f"recipe {text!r}: {path} cannot be imported; name a Python file")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # worker processes, too, import from there
    sys.modules[name] = module
    _executed[name] = path
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name], _executed[name]
        raise PlanError(f"recipe {text!r}: {_where(error, path)}; mend it there") from error
    return module


def _where(error: BaseException, path: Path) -> str:
    """Say what a file of the user raised, and in which of its lines."""
    if isinstance(error, SyntaxError) and error.filename == str(path.resolve()):
        return f"line {error.lineno} raised {told(error)}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == path.resolve()
    ]
    return f"line {lines[-1]} raised {told(error)}" if lines else f"it raised {told(error)}"
