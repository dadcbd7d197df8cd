"""What became of a pipeline's steps since a checkpoint was taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from zephon.exec.change import Change, differences, part_of, shown, without

FUNCTIONS = frozenset(
    {
        *("filter", "select", "with_columns", "rename", "drop"),
        *("map_transform", "decode_text", "normalize_chat", "expand_chat"),
        *("add_op", "stateful_transform"),
    }
)
"""Calls that say which rows there are and what they hold; the others place what they are given."""

_WHY = {
    "tokenize": "the tokens would be others; tokenize as then",
    "tokenize_chat": "the tokens would be others; tokenize as then",
    "pack_flat": "rows are half packed by it; pack as then",
    "pack_sequences": "rows are half packed by it; pack as then",
}
_OTHERWISE = "the order depends on it; call it as then"

Step = Mapping[str, Any]


def step_changes(
    saved: Sequence[Step],
    current: Sequence[Step],
    unchanged: Callable[[str, Any, Any], bool] = lambda name, was, now: was == now,
) -> Iterator[Change]:
    """List what differs between two chains of steps.

    Args:
        saved: the checkpoint's.
        current: the present ones.
        unchanged: tells of an argument, its old value and its new one whether it means the same.
    """
    for label, before, after in _aligned(saved, current):
        call = (before or after or {})["call"]
        word = "functions" if call in FUNCTIONS else None
        why = "" if word else _WHY.get(call, _OTHERWISE)
        if before is None or after is None:
            was, now = (None if step is None else _told(step) for step in (before, after))
            yield Change(label, was, now, word, why)
            continue
        same = {n for n in before if n in after and unchanged(n, before[n], after[n])}
        for path, was, now in differences(without(before, same), without(after, same)):
            yield Change(part_of(label, path), was, now, word, why)


def _aligned(
    saved: Sequence[Step], current: Sequence[Step]
) -> Iterator[tuple[str, Step | None, Step | None]]:
    """Pair steps that differ, in order, with their labels; None where one has no partner."""
    texts = [[json.dumps(step, sort_keys=True) for step in chain] for chain in (saved, current)]
    before = list(zip(_labels(saved), saved, strict=True))
    after = list(zip(_labels(current), current, strict=True))
    for tag, i, j, k, n in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        old, new = before[i:j], after[k:n]
        calls = [[step["call"] for _, step in chain] for chain in (old, new)]
        for what, a, b, c, d in SequenceMatcher(None, *calls, autojunk=False).get_opcodes():
            if what == "equal":
                for (_, was), (label, now) in zip(old[a:b], new[c:d], strict=True):
                    yield label, was, now
            else:
                yield from ((label, step, None) for label, step in old[a:b])
                yield from ((label, None, step) for label, step in new[c:d])


def _labels(chain: Sequence[Step]) -> list[str]:
    """Name steps by their call, and by which of several such calls they are.

    >>> _labels([{"call": "filter"}, {"call": "batch"}, {"call": "filter"}])
    ['filter', 'batch', 'filter 2']
    """
    seen: dict[str, int] = {}
    labels = []
    for step in chain:
        call = step["call"]
        seen[call] = seen.get(call, 0) + 1
        labels.append(call if seen[call] == 1 else f"{call} {seen[call]}")
    return labels


def _told(step: Step) -> str:
    """Write a step that has no partner by its arguments, column steps as they were called."""
    if "steps" in step:
        return ", ".join(shown(each) for each in step["steps"])
    return shown(without(step, ["call"]))
