"""What differs between a checkpoint's recipe and the present one, and which of it may pass.

A change has the word of ``restore(allow=...)`` that lets it through, or none: nothing does then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zephon.errors import CheckpointError, NotYetError, PlanError, nearest
from zephon.exec.fingerprint import differences

WORDS = ("weights", "datasets", "data", "functions", "global_batch_size", "partial_step")
"""What ``allow`` may name; ``partial_step`` is about where a run stands, not about its recipe."""

_NOT_YET = frozenset(WORDS) - {"partial_step"}
_MOST_PARTS = 12


@dataclass(frozen=True, slots=True)
class Change:
    """One part in which two recipes differ.

    part: which, in words. was, now: JSON values of the checkpoint's and the present recipe; None
    where there is none. word: of ``allow`` that lets it through; None: nothing does. why: what
    letting it through means, or why nothing does and what to do.
    """

    part: str
    was: Any
    now: Any
    word: str | None
    why: str


def checked_words(allow: Iterable[str]) -> frozenset[str]:
    """Return the changes that a restore lets through; a single word may stand for itself.

    Raises:
        PlanError: a word names no change; names the nearest right one.
        NotYetError: a change that cannot be let through yet.
    """
    words = (allow,) if isinstance(allow, str) else tuple(allow)
    for word in words:
        if word not in WORDS:
            closest = nearest(str(word), WORDS)
            raise PlanError(f"restore: allow={word!r} names no change; {closest}")
        if word in _NOT_YET:
            raise NotYetError(f"restore: allow={word!r} is not there yet; leave it out")
    return frozenset(words)


def changes(saved: Mapping[str, Any], current: Mapping[str, Any]) -> list[Change]:
    """List the parts in which a checkpoint's recipe and the present one differ."""
    return [
        Change(line, None, None, None, "restore it with the recipe that it was taken from")
        for line in differences(saved, current)
    ]


def refuse_unless(found: Sequence[Change], allow: frozenset[str]) -> None:
    """Refuse a checkpoint of another recipe, unless each change is one that may pass.

    Raises:
        CheckpointError: some may not; names them.
    """
    refused = [each for each in found if each.word not in allow]
    if not refused:
        return
    shown = "; ".join(each.part for each in refused[:_MOST_PARTS])
    more = f"; and {len(refused) - _MOST_PARTS} more" if len(refused) > _MOST_PARTS else ""
    raise CheckpointError(
        f"restore: the checkpoint belongs to another recipe: {shown}{more}; {refused[0].why}"
    )
