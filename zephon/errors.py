"""Every error that Zephon raises; each is also the builtin that callers expect to catch.

A message has four parts on one line: where, what was wanted, what came, what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


class ZephonError(Exception):
    """Base of everything that Zephon raises on purpose."""


class PlanError(ZephonError, ValueError):
    """A pipeline was described wrongly; raised where the call was made, before any I/O."""


class NotYetError(PlanError, NotImplementedError):
    """A documented feature that this version does not have yet."""


class WrongKindError(PlanError, TypeError):
    """A call was given a value of another kind than it takes, such as no function."""


class SerialStateError(PlanError, RuntimeError):
    """An operator that remembers was to be called by several threads at once."""


class LineageError(ZephonError, ValueError):
    """What an operator of the user says of a record cannot be."""


class UnboundSourceError(PlanError, AssertionError):
    """A work source was asked for a chunk before it was bound to a lane."""


class RepeatedCallError(PlanError, RuntimeError):
    """A call that may be made once was made again."""


class OptimizerError(ZephonError, RuntimeError):
    """A rewrite rule broke its promise; the message names the rule."""


class DatasetError(ZephonError, ValueError):
    """A dataset was described wrongly, or holds nothing that can be read."""


class DatasetNotFoundError(ZephonError, FileNotFoundError):
    """The path of a dataset does not exist."""


class DataError(ZephonError, ValueError):
    """One row is bad; the message names dataset, shard and row."""


class DataTypeError(DataError, TypeError):
    """One row is bad: it holds something of a type that no step there takes."""


class ShardError(ZephonError, OSError):
    """A whole shard cannot be read."""


class StorageError(ZephonError, OSError):
    """A store did not answer, or answered what it must not; the message names the object."""


class AccessError(StorageError, PermissionError):
    """A store refused to be read; the message says what is needed, and never a secret."""


class CacheError(ZephonError, OSError):
    """The shard cache cannot be used; the message names the path, what was needed and what is."""


class InsufficientCacheSpaceError(CacheError):
    """The shard cache has no room for what must lie there."""


class CacheInUseError(CacheError, RuntimeError):
    """A living process uses the shard cache with other options."""


class TokenizerError(ZephonError, ValueError):
    """A tokenizer cannot be loaded, or does not fit what was asked of it."""


class ValidationError(ZephonError, ValueError):
    """Operators or tokenizers fail their checks; ``report`` is the list of what was found."""

    def __init__(self, report: Sequence[Any]) -> None:
        self.report = report
        errors = [each for each in report if each.severity == "error"]
        more = f"; and {len(errors) - 1} more, see report" if len(errors) > 1 else ""
        super().__init__(f"{errors[0] if errors else 'no error'}{more}")

    def __reduce__(self) -> tuple[type[ValidationError], tuple[Sequence[Any]]]:
        return (type(self), (self.report,))


class ExecutionError(ZephonError, RuntimeError):
    """A step failed while the plan ran; the message names the step and the row."""


class ForkedError(ZephonError, RuntimeError):
    """What is needed was not copied into a forked process; the message says what to do."""


class CheckpointError(ZephonError, RuntimeError):
    """A checkpoint does not belong to this pipeline, or cannot be read."""


class CoordinationError(ZephonError, RuntimeError):
    """Ranks did not meet: one is missing, failed, or did something else; the message names it."""


class StateElsewhereError(ZephonError, NotImplementedError):
    """A state was asked for in a process that does not know it; the message says who does."""


class MissingExtraError(ZephonError, ImportError):
    """An optional package is needed; the message names the extra that brings it."""


class MissingTorchError(MissingExtraError, RuntimeError):
    """torch is needed, by a call that is of no use without it."""


def told(error: BaseException) -> str:
    """Say in a message what was raised: its class, and its text where it has one.

    >>> told(ValueError("no text")), told(StopIteration())
    ('ValueError: no text', 'StopIteration')
    """
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known words come closest to ``word``, as a clause for an error message.

    >>> nearest("trucation", ["truncation", "padding"])
    "did you mean 'truncation'?"
    >>> nearest("x", ["b", "a"])
    'known are: a, b'
    """
    names = sorted(known)
    if not names:
        return "there are none to choose from"
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(names)}"
