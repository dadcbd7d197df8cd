"""What a worker raises and warns of, on its way to the process that asked.

An error arrives as one of its own class with its own message, its cause too; one that no pickle
carries arrives as an ``ExecutionError`` that says the same. Where code of the user raised it, the
traceback of the worker comes with it as a note, which Python prints below the message.
"""

from __future__ import annotations

import pickle
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from zephon.errors import ExecutionError, ZephonError
from zephon.exec.runners.bodies import pack_alone

_MOST_CAUSES = 8
_SILENT = ("error", "ignore")


@dataclass(frozen=True, slots=True)
class SentError:
    """An error that crosses.

    pickled: the error; None: it cannot be pickled, or not be made again. text: its class and its
    message. trace: where it was raised, with what the worker can show of these lines; the rest of
    them only the other process may have, as of a notebook. cause: what it was raised from.
    """

    pickled: bytes | None
    text: str
    trace: tuple[traceback.FrameSummary, ...]
    cause: SentError | None

    @classmethod
    def of(cls, error: BaseException, causes: int = _MOST_CAUSES) -> SentError:
        """Take an error down."""
        cause = error.__cause__
        return cls(
            pickled=_pickled(error),
            text=f"{type(error).__name__}: {_message(error)}",
            trace=tuple(map(_to_look_up, traceback.extract_tb(error.__traceback__))),
            cause=None if cause is None or not causes else cls.of(cause, causes - 1),
        )

    def error(self) -> BaseException:
        """Make the error again."""
        same = None if self.pickled is None else _unpickled(self.pickled)
        made = ExecutionError(self.text) if same is None else same
        if self.cause is not None:
            made.__cause__ = self.cause.error()
        elif self.trace and not isinstance(same, ZephonError):
            lines = traceback.StackSummary.from_list(list(self.trace)).format()
            made.add_note(f"In a worker process:\n{''.join(lines).rstrip()}")
        return made


def _to_look_up(frame: traceback.FrameSummary) -> traceback.FrameSummary:
    """Let a line that is not known here be looked up where the frame is shown."""
    return traceback.FrameSummary(
        frame.filename,
        frame.lineno,
        frame.name,
        lookup_line=False,
        line=frame.line or None,
        end_lineno=frame.end_lineno,
        colno=frame.colno,
        end_colno=frame.end_colno,
    )


class SentWarning(NamedTuple):
    """A warning that crosses: its text, its class, and the line that it is about."""

    text: str
    category: type[Warning]
    filename: str
    line: int

    def issue(self) -> None:
        """Warn of it here, as filters here have it."""
        warnings.warn_explicit(self.text, self.category, self.filename, self.line)


def filters_to_send() -> list[tuple[Any, ...]]:
    """Give the filters of this process for a worker: all but those that say how often to show."""
    found = []
    for action, message, category, module, line in warnings.filters:
        sent = action if action in _SILENT else "always"
        patterns = [p.pattern if isinstance(p, re.Pattern) else p for p in (message, module)]
        found.append((sent, patterns[0], category, patterns[1], line))
    return found


def take_warnings(filters: Sequence[tuple[Any, ...]], taker: Callable[[SentWarning], None]) -> None:
    """Hand each different warning of this process to a taker, once.

    Args:
        filters: what ``filters_to_send`` gave in the process that will show them.
        taker: called on the thread that warns.
    """
    warnings.resetwarnings()
    warnings.simplefilter("always")
    for action, message, category, module, line in reversed(filters):
        warnings.filterwarnings(action, message or "", category, module or "", line)
    seen: set[SentWarning] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: object = None,
        line: str | None = None,
    ) -> None:
        warning = SentWarning(str(message), category, filename, lineno)
        if warning not in seen:
            seen.add(warning)
            taker(warning)

    warnings.showwarning = show


def _pickled(error: BaseException) -> bytes | None:
    """Pickle an error, if the same comes out again: many cannot be made of their message."""
    try:
        found = pack_alone(error)
        again = pickle.loads(found)
        same = type(again) is type(error) and str(again) == str(error)
    except Exception:  # the error is the user's, and so is what its copying raises
        return None
    return found if same else None


def _unpickled(pickled: bytes) -> BaseException | None:
    try:
        made = pickle.loads(pickled)
    except Exception:  # likewise
        return None
    return made if isinstance(made, BaseException) else None


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as exc:  # likewise
        return f"its message cannot be made, {type(exc).__name__}"
