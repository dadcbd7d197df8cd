"""What differs between a checkpoint's recipe and the present one, and which of it may pass.

A change has the word of ``restore(allow=...)`` that lets it through, or none: nothing does then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from zephon.errors import CheckpointError, PlanError, nearest
from zephon.exec.change import Change, differences
from zephon.exec.data_change import DataChange
from zephon.exec.source_changes import Kept, source_changes
from zephon.exec.step_changes import step_changes

__all__ = ["WORDS", "Change", "changes", "checked_words", "lines", "refuse_unless"]

WORDS = ("weights", "datasets", "data", "functions", "global_batch_size", "partial_step")
"""What ``allow`` may name; ``partial_step`` is about where a run stands, not about its recipe."""

_MEANING = {
    "weights": "draws follow them from here on, each dataset goes on where it stands",
    "datasets": "a new one begins, what is held of one that goes is dropped and counted, the "
    "others go on where they stand",
    "data": "the old shards finish their pass, new rows join at the next",
    "functions": "held documents are made again; those that are gone or others are dropped and "
    "counted",
    "global_batch_size": "steps have so many rows from here on; none is lost or repeated",
}
_MOST_PARTS = 12
_LEAST_OF_EITHER = 6
"""So many parts of each kind are shown, however many there are of the other."""

_TOLD = {"stream_version", "source", "data", "steps"}
_WHY = {
    "tokenizers": "other token ids; restore with the tokenizer of then",
    "canonical_replicas": "lanes are part of the order; leave it out, or set it back",
    "flush_every_rows": "operators that remember begin anew there; set flush_every_k_chunks back",
}
_OTHERWISE = "it decides what is delivered; set it back"


def checked_words(allow: Iterable[str]) -> frozenset[str]:
    """Return the changes that a restore lets through; a single word may stand for itself.

    Raises:
        PlanError: a word names no change; names the nearest right one.
    """
    words = (allow,) if isinstance(allow, str) else tuple(allow or ())
    for word in words:
        if word not in WORDS:
            closest = nearest(str(word), WORDS)
            raise PlanError(f"restore: allow={word!r} names no change; {closest}")
    return frozenset(words)


def changes(
    saved: Mapping[str, Any],
    current: Mapping[str, Any],
    library: str = "",
    data: Mapping[str, DataChange] | None = None,
) -> list[Change]:
    """List the parts in which a checkpoint's recipe and the present one differ, data too.

    Args:
        saved: the checkpoint's recipe.
        current: the present one.
        library: the release that wrote the checkpoint, for the advice to install it.
        data: how the shards of datasets differ, where they were looked at.
    """
    data = data or {}
    if saved == current and not any(data.values()):
        return []
    found = list(_changes(saved, current, library, data))
    return found or [Change(*each, None, _OTHERWISE) for each in differences(saved, current)]


def _changes(
    saved: Mapping[str, Any],
    current: Mapping[str, Any],
    library: str,
    data: Mapping[str, DataChange],
) -> Iterator[Change]:
    release = f"zephon {library}" if library else "the release"
    for part, was, now in _parts(saved, current, "stream_version"):
        why = f"releases differ in an order; install {release}, which wrote the checkpoint"
        yield Change(part, was, now, None, why)
    yield from source_changes(saved, current, data)
    kept = Kept.of(saved, current)
    steps = list(step_changes(saved["steps"], current["steps"], kept.same_argument))
    yield from steps
    functions = any(change.word == "functions" for change in steps)
    for name in sorted({*saved, *current} - _TOLD):
        word = "global_batch_size" if name == "global_batch_size" else None
        if name == "flush_every_rows" and functions and _same_barriers(saved, current):
            word = "functions"
        for part, was, now in _parts(saved, current, name):
            yield Change(part, was, now, word, "" if word else _WHY.get(name, _OTHERWISE))


def _parts(
    saved: Mapping[str, Any], current: Mapping[str, Any], name: str
) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield what differs under one name."""
    before, after = ({name: each[name]} if name in each else {} for each in (saved, current))
    return differences(before, after)


def _same_barriers(saved: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
    """Whether operators that remember begin anew as often as before, however many there are."""
    before, after = (set(each.get("flush_every_rows", ())) for each in (saved, current))
    return before == after or not before or not after


def refuse_unless(found: Sequence[Change], allow: frozenset[str], note: str = "") -> None:
    """Refuse a checkpoint of another recipe, unless each change is one that may pass.

    Args:
        found: what changed.
        allow: words of the changes that may pass.
        note: what else is to be said where functions are among those that may not.

    Raises:
        CheckpointError: some may not; names them, a line each.
    """
    refused = [change for change in found if change.word not in allow]
    if refused:
        functions = any(change.word == "functions" for change in refused)
        told = "\n".join([*lines(refused), *([f"  {note}"] if note and functions else [])])
        raise CheckpointError(f"restore: the checkpoint belongs to another recipe\n{told}")


def lines(found: Sequence[Change]) -> list[str]:
    """Write changes for people: those that a word lets through, then those that nothing does.

    Each takes a line, at most twelve are shown.
    """
    may = [change for change in found if change.word is not None]
    never = [change for change in found if change.word is None]
    room = max(_MOST_PARTS - len(never), _LEAST_OF_EITHER)
    shown = may[:room]
    written = []
    for word in WORDS:
        group = [change for change in shown if change.word == word]
        if group:
            written.append(f"  allow={{{word!r}}} lets through ({_MEANING[word]}):")
            written += [f"    {change}" for change in group]
    if len(may) > len(shown):
        words = {change.word for change in may[room:]}
        named = ", ".join(word for word in WORDS if word in words)
        written.append(f"    and {len(may) - len(shown):,} more, of {named}")
    room = _MOST_PARTS - len(shown)
    if never:
        written.append("  nothing lets through:")
        written += [f"    {change}: {change.why}" for change in never[:room]]
    if len(never) > room:
        written.append(f"    and {len(never) - room:,} more")
    return written
