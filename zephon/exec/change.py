"""One part in which a checkpoint's recipe and the present one differ, in words for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 200
"""Characters of a value that are shown; what is longer says how long it is."""

_DIGEST = re.compile(r"[0-9a-f]{40,}")
_SHORT = 12


@dataclass(frozen=True, slots=True)
class Change:
    """One part in which two recipes differ.

    part: which. was, now: what the checkpoint's and the present recipe have there, as text of at
    most ``LONGEST`` characters; None where there is nothing. word: of ``restore(allow=...)``, that
    lets it through; None: nothing does. why: what to do where nothing does.
    """

    part: str
    was: str | None
    now: str | None
    word: str | None
    why: str = ""

    def __str__(self) -> str:
        if self.was is None:
            return f"{self.part}: was not there, is {self.now}"
        return f"{self.part}: was {self.was}, is {'gone' if self.now is None else self.now}"


def part_of(*names: str) -> str:
    """Name a part by whose it is, and which.

    >>> part_of("data of 'prose'", "shard '000.jsonl'")
    "data of 'prose', shard '000.jsonl'"
    """
    return cut(", ".join(each for each in names if each))


def cut(text: str) -> str:
    """Shorten what is longer than ``LONGEST`` characters, and say by how much.

    >>> len(cut("x" * 1000)), cut("x" * 1000)[-24:]
    (200, 'xx... (1,000 characters)')
    """
    if len(text) <= LONGEST:
        return text
    end = f"... ({len(text):,} characters)"
    return f"{text[: LONGEST - len(end)]}{end}"


def shown(value: Any) -> str:
    """Write a JSON value for people: column steps as text, digests by how they begin.

    >>> shown({"text": "filter(n > 3)", "sha256": "f96a69b114b244d50e57c6bd948b3bc783d8b0d6"})
    'filter(n > 3)'
    >>> shown(["a", 0.5, "f96a69b114b244d50e57c6bd948b3bc783d8b0d6"])
    "['a', 0.5, f96a69b114b2]"
    """
    return cut(_written(value))


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value[:_SHORT] if _DIGEST.fullmatch(value) else repr(value)
    if _is_step(value):
        return value["text"]
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_written(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return repr(value)


def _is_step(value: Any) -> bool:
    """Say whether a value describes a column step: what it says, shortened, and a digest of all."""
    return isinstance(value, Mapping) and value.keys() == {"text", "sha256"}


def without(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Leave out what is compared by itself."""
    return {name: value for name, value in values.items() if name not in set(names)}


def differences(
    saved: Any, current: Any, path: str = ""
) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield where two JSON values differ, and what each has there; None where it has nothing.

    >>> list(differences({"seed": 1, "steps": [2]}, {"seed": 3, "steps": [2], "more": "x"}))
    [('more', None, "'x'"), ('seed', '1', '3')]
    """
    if saved == current and type(saved) is type(current):
        return
    if _is_step(saved) and _is_step(current):
        now = current["text"]
        if now == saved["text"]:
            was, is_now = (each["sha256"][:_SHORT] for each in (saved, current))
            now = f"another that looks the same in short (digest {was}, now {is_now})"
        yield path, cut(saved["text"]), cut(now)
    elif isinstance(saved, Mapping) and isinstance(current, Mapping):
        for key in sorted({*saved, *current}):
            here = f"{path}.{key}" if path else str(key)
            if key not in saved:
                yield here, None, shown(current[key])
            elif key not in current:
                yield here, shown(saved[key]), None
            else:
                yield from differences(saved[key], current[key], here)
    elif isinstance(saved, list) and isinstance(current, list) and len(saved) == len(current):
        for number, (was, now) in enumerate(zip(saved, current, strict=True)):
            yield from differences(was, now, f"{path}[{number}]")
    elif saved != current:
        yield path, shown(saved), shown(current)
