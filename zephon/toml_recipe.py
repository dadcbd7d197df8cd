"""A recipe in TOML: its tables mirror the calls that describe a pipeline, and nothing is executed.

``[[datasets]]`` are ``Dataset.from_path``, ``[source]`` is ``StaticMixtureWorkSource``, each of
``[[steps]]`` is a call of ``Pipeline`` and ``[options]`` is ``Pipeline.options``. A step is
``call = "pack_flat"`` with its arguments beside it, or the call and its first argument alone:
``batch = 8``. Predicates, and fields that are computed, are SQL, as ``polars.sql_expr`` reads it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from zephon.errors import PlanError, ZephonError, nearest
from zephon.io import Dataset
from zephon.ops import DomainGroups
from zephon.pipeline import Pipeline
from zephon.steps import Steps
from zephon.work import (
    MixtureSchedule,
    StaticMixtureWorkSource,
    TokenEstimation,
    samples,
    tokens,
)

_TABLES = ("datasets", "source", "steps", "options")
_PYTHON_ONLY = ("map_transform", "map_batch", "add_op", "stateful_transform")
_OF_STAGES = ("per_stage_runner", "per_stage_prefetch")
_CALLS = tuple(name for name in dir(Steps) if not name.startswith("_"))

# a query inside an expression opens the files that it names while it is read
_QUERY = re.compile(r"(?<![A-Za-z_])(select|from)(?![A-Za-z0-9_])", re.IGNORECASE)
_LONGEST = (
    2000  # Polars walks expressions recursively, and ends the process where they are too deep
)


class TomlRecipe:
    """Makes the pipeline that some tables describe, anew at every call.

    Datasets are opened by the first call; all pipelines share them.

    Args:
        name: of the file, for messages.
        tables: its content.

    Raises:
        PlanError: from a call: an unknown table, call or argument, with the nearest that is
            known; or a value that the call refuses. The message names the table.
    """

    def __init__(self, name: str, tables: Mapping[str, Any]) -> None:
        self._name = name
        self._tables = tables

    def __call__(self) -> Pipeline:
        """Make the pipeline."""
        pipeline = Pipeline(self._source)
        for number, step in enumerate(self._list_of("steps"), 1):
            where = f"[[steps]] {number}"
            self._made(where, lambda step=step: _add_step(pipeline, step))
        self._made("[options]", lambda: pipeline.options(**_options(self._table("options"))))
        return pipeline

    @cached_property
    def _source(self) -> StaticMixtureWorkSource:
        for key in self._tables:
            if key not in _TABLES:
                raise self._error(f"there is no table {key!r}; {nearest(key, _TABLES)}")
        datasets = [
            self._made(f"[[datasets]] {i}", lambda table=table: _called(Dataset.from_path, table))
            for i, table in enumerate(self._list_of("datasets"), 1)
        ]
        return self._made("[source]", lambda: _source_of(datasets, self._table("source")))

    def _table(self, key: str) -> dict[str, Any]:
        found = self._tables.get(key, {})
        if not isinstance(found, dict):
            raise self._error(f"{key} must be a table, got {found!r:.80}; write [{key}]")
        return found

    def _list_of(self, key: str) -> list[dict[str, Any]]:
        found = self._tables.get(key, [])
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise self._error(f"{key} must be tables, got {found!r:.80}; write [[{key}]]")
        return found

    def _made(self, where: str, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except (ZephonError, TypeError, ValueError) as error:
            raise self._error(f"{where}: {error}") from error

    def _error(self, text: str) -> PlanError:
        return PlanError(f"recipe {self._name!r}: {text}")


def _source_of(datasets: list[Dataset], table: dict[str, Any]) -> StaticMixtureWorkSource:
    given = dict(table)
    if "schedule" in given:
        given["schedule"] = _called(MixtureSchedule, _nested("schedule", given))
    if "token_estimation" in given:
        given["token_estimation"] = _called(TokenEstimation, _nested("token_estimation", given))
    if "budget" in given:
        budget = _nested("budget", given)
        given["budget"] = {name: _amount(name, value) for name, value in budget.items()}
    if "datasets" in given:
        raise PlanError("datasets are tables of their own; write [[datasets]]")
    return _called(StaticMixtureWorkSource, {"datasets": datasets, **given})


def _options(table: dict[str, Any]) -> dict[str, Any]:
    """Give the options; keys of stages are numbers, which TOML writes as text."""
    found = dict(table)
    for name in _OF_STAGES:
        if isinstance(found.get(name), dict):
            found[name] = {int(k) if k.isdecimal() else k: v for k, v in found[name].items()}
    return found


def _nested(key: str, table: dict[str, Any]) -> dict[str, Any]:
    found = table[key]
    if not isinstance(found, dict):
        raise PlanError(f"{key} must be a table, got {found!r:.80}; write [source.{key}]")
    return found


def _amount(name: str, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    units = {"samples": samples, "tokens": tokens}
    if len(value) != 1 or not units.keys() & value.keys():
        raise PlanError(
            f"budget: {name} must be a number or {{tokens = n}}, got {value!r:.80}; write one"
        )
    ((unit, count),) = value.items()
    return units[unit](count)


def _add_step(pipeline: Pipeline, step: dict[str, Any]) -> None:
    """Make the call that a table describes."""
    given = dict(step)
    short = "call" not in given and len(given) == 1
    call = next(iter(given)) if short else given.pop("call", None)
    if not isinstance(call, str):
        raise PlanError(f"expected call = NAME, got {', '.join(step) or 'nothing'}; write one")
    if call not in _CALLS:
        raise PlanError(f"there is no call {call!r}; {nearest(call, _CALLS)}")
    if call in _PYTHON_ONLY:
        raise PlanError(f"{call} takes a function, which TOML does not hold; use a Python recipe")
    parameters = list(inspect.signature(getattr(Steps, call)).parameters.values())[1:]
    if short:
        if not parameters:
            raise PlanError(f"{call} takes no argument; write call = {call!r}")
        given = {parameters[0].name: given[call]}
    if call == "filter" and "predicates" in given:
        given["predicates"] = [_expression(each) for each in _listed(given["predicates"])]
    if "groups" in given:
        given["groups"] = DomainGroups(given["groups"])
    several = next((each for each in parameters if each.kind is each.VAR_POSITIONAL), None)
    named = any(each.kind is each.VAR_KEYWORD for each in parameters)
    first = () if several is None else _listed(given.pop(several.name, []))
    if named:
        known = {each.name for each in parameters}
        given = {key: v if key in known else _expression(v) for key, v in given.items()}
    _called(getattr(pipeline, call), given, *first)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _called(function: Callable[..., Any], given: dict[str, Any], *first: Any) -> Any:
    """Call by name; a word that it does not take, or one that is missing, is named."""
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        known = [each.name for each in parameters]
        for key in given:
            if key not in known:
                raise PlanError(f"there is no argument {key!r}; {nearest(key, known)}")
    try:
        signature.bind(*first, **given)
    except TypeError as error:
        raise PlanError(f"{error}; write it") from None
    return function(*first, **given)


def _expression(text: Any) -> Any:
    """Read an expression.

    Raises:
        PlanError: it is no text, no SQL expression, or holds a query.
    """
    import polars as pl  # late: few recipes compute fields

    if not isinstance(text, str):
        raise PlanError(f"expected an expression in SQL, got {text!r:.80}; write it as text")
    if len(text) > _LONGEST:
        raise PlanError(
            f"an expression must have at most {_LONGEST:,} characters, got {len(text):,}; use a "
            "Python recipe"
        )
    if _QUERY.search(text):
        raise PlanError(
            f"{text!r:.200} has the word SELECT or FROM, and queries are not read here; leave it "
            "out, or use a Python recipe"
        )
    try:
        return pl.sql_expr(text)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise PlanError(f"{text!r:.200} is no expression in SQL: {error}; mend it") from None
