"""Words that users give, one of a few, and lists of words that are cut short for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from zephon.errors import PlanError, nearest

MOST_WORDS = 12
"""How long a list may be before it is cut short."""


def one_of(call: str, argument: str, value: object, choices: Sequence[str]) -> str:
    """Check a word from a short list.

    Args:
        call: whose argument it is, for messages.
        argument: its name, for messages.
        value: what came.
        choices: the words.

    Raises:
        PlanError: it is none of them.
    """
    if isinstance(value, str) and value in choices:
        return value
    hint = f"; {nearest(value, choices)}" if isinstance(value, str) else ""
    known = ", ".join(map(repr, choices))
    raise PlanError(f"{call}: {argument} must be one of {known}, got {value!r}{hint}")


def cut_short(words: Iterable[str], count: int, what: str = "") -> list[str]:
    """Take the first of some words, and say how many more there are.

    Args:
        words: made as they are taken.
        count: how many there are.
        what: what they are, for the one that says how many more.

    >>> cut_short(("abcdefghijklmno"), 15, "letters")[-2:]
    ['l', 'and 3 more letters']
    """
    shown = list(islice(words, MOST_WORDS))
    if count > len(shown):
        shown.append(f"and {count - len(shown)} more{what and f' {what}'}")
    return shown
