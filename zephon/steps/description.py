"""A description that grows: a work source, and the steps that were called so far."""

from __future__ import annotations

import functools
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self

from zephon.errors import NotYetError, PlanError, WrongKindError, nearest
from zephon.planner import logical, step_order
from zephon.planner.checks import fields_unknown
from zephon.planner.fetching import fetch_node
from zephon.planner.tree import top_first, transform_up
from zephon.work import WorkSource
from zephon.work.cut_chunks import CutChunks

if TYPE_CHECKING:
    from zephon.exec.fingerprint import Told

_OURS = "zephon."
_PLACEMENTS = ("auto", "local")


class Description(ABC):
    """What all calls share: the chain of nodes, how one is added, and that words are checked."""

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if cls.__module__.startswith(_OURS):
            for name, call in list(vars(cls).items()):
                if isinstance(call, FunctionType) and not name.startswith("_"):
                    setattr(cls, name, _with_words_checked(call))

    def __init__(self, work_source: WorkSource) -> None:
        if not isinstance(work_source, WorkSource):
            raise PlanError(
                f"Pipeline: expected a work source, got {type(work_source).__name__}; make a "
                "StaticMixtureWorkSource of datasets and a mixture, or derive one from WorkSource"
            )
        if work_source.lane_id is not None:
            raise PlanError(
                f"Pipeline: expected a work source of no lane, got the copy of a "
                f"{type(work_source).__name__} for lane {work_source.lane_id}; pass the source "
                "that it was made of"
            )
        if isinstance(work_source, CutChunks) and (
            type(work_source).next_chunk is not CutChunks.next_chunk
        ):
            raise PlanError(
                f"Pipeline: {type(work_source).__name__} overrides next_chunk(), and a mixture is "
                "drawn by position, so it would not be asked; derive from WorkSource instead"
            )
        self._source = work_source
        self._node: logical.Node = fetch_node(work_source)
        self._told: Told | None = None  # of the code, where this comes from another process

    @abstractmethod
    def _changed(self) -> Self:
        """Forget what was made of the description as it was."""

    @staticmethod
    def _runs():  # noqa: ANN205 (the module itself, with its types)
        """Give what compiles, checks and runs, which is loaded by the first call that needs it."""
        from zephon import running  # late: it takes as long to import as numpy and pyarrow together

        return running

    def _add(self, node: logical.Node) -> Self:
        if self._has(logical.Take):
            raise PlanError(f"{node.call}: it cannot come after take, which stands last")
        step_order.check_mixing(node, self._source)
        step_order.check_measures(node)
        self._node = node
        return self._changed()

    def _fetch_node(self) -> logical.Fetch:
        return next(node for node in top_first(self._node) if isinstance(node, logical.Fetch))

    def _looked_at(self) -> tuple[logical.Node, Mapping[str, Any]]:
        """Give the last step, and what is asked about the fields that leave it, by dataset.

        Where functions or expressions made them, the steps run now on the first rows of each.
        """
        if not fields_unknown(self._node):
            return self._node, {c.dataset.name: c.dataset for c in self._source.components}
        return self._runs().seen_after(self._node, self._source, self._told)

    def _has(self, *kinds: type[logical.Node]) -> bool:
        return any(isinstance(node, kinds) for node in top_first(self._node))

    def _refuse_after(self, call: str, *kinds: type[logical.Node]) -> None:
        for node in top_first(self._node):
            if isinstance(node, kinds):
                raise PlanError(
                    f"{call}: it cannot come after {node.call}; call {call} earlier"
                    if node.call != call
                    else f"{call}: it was called before; call it once"
                )


def with_source(plan: logical.Node, source: logical.Node) -> logical.Node:
    """Put ``source`` in the place of the chain's Fetch."""
    return transform_up(plan, lambda node: source if isinstance(node, logical.Fetch) else node)


def check_placement(call: str, placement: str) -> None:
    """Refuse a place that is not known, or not there yet."""
    if placement == "remote":
        raise NotYetError(f"{call}: placement='remote' is not there yet; use 'auto'")
    if placement not in _PLACEMENTS:
        closest = nearest(str(placement), (*_PLACEMENTS, "remote"))
        raise PlanError(f"{call}: placement={placement!r} is unknown; {closest}")


def check_fingerprint(call: str, fingerprint: object) -> None:
    """Refuse what is no text."""
    if fingerprint is not None and not isinstance(fingerprint, str):
        raise WrongKindError(
            f"{call}: fingerprint must be a string, got {fingerprint!r:.80}; pass one, and another "
            "one when the function changes"
        )


def check_function(call: str, fn: object, name: str = "fn") -> None:
    """Refuse what cannot be called, or what gives something that must still be run."""
    if not callable(fn):
        raise WrongKindError(f"{call}: {name} must be a function, got {fn!r:.80}; pass one")
    for each in (fn, inspect.getattr_static(type(fn), "__call__", None)):
        unfit = inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        if unfit or inspect.isgeneratorfunction(each):
            word, way_out = ("yield", "return") if not unfit else ("async def", "def")
            raise WrongKindError(
                f"{call}: {name} must return what it makes, got {fn!r:.80} with {word!r}; write it "
                f"with {way_out!r}"
            )


def _with_words_checked(call: FunctionType) -> Callable[..., Any]:
    """Make a call name the nearest right word where it is given one that it does not take."""
    parameters = inspect.signature(call).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return call
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    words = {each.name: None for each in parameters if each.kind in kinds and each.name != "self"}

    @functools.wraps(call)
    def checked(self: Any, *given: Any, **named: Any) -> Any:
        for word in named:
            if word not in words:
                raise WrongKindError(
                    f"{call.__name__}: there is no argument {word!r}; {nearest(word, words)}"
                )
        return call(self, *given, **named)

    return checked


def path_text(call: str, path: Any) -> str | None:
    """Give the path of a tokenizer as text; refuse anything else."""
    if path is None or isinstance(path, str | os.PathLike):
        return None if path is None else os.fspath(path)
    raise PlanError(
        f"{call}: tokenizer_id must be a path, got {type(path).__name__}; pass a tokenizer "
        "object as tokenizer="
    )


def whole(value: Any) -> Any:
    """Turn an integer of NumPy's into Python's; leave everything else to the checks."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def real(value: Any) -> Any:
    """Turn a number of NumPy's into Python's; leave everything else to the checks."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value
