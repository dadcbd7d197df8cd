"""JSON values that every state of a run repeats: digested once, copied fast, never given away."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from zephon.exec.fingerprint import digest

_INNER = (dict, list)


class Lasting:
    """JSON values that stay; whoever gets a copy may change it.

    A list of plain values (such as the names of 100,000 shards) is copied as a whole, without
    looking at each.

    Args:
        value: dicts, lists and plain values; nobody changes it from here on.
    """

    def __init__(self, value: dict[str, Any] | list[Any]) -> None:
        self._value = value
        self._plain = set[int]()  # lists and dicts without any within
        self._of_plain = set[int]()  # lists of such lists, such as what is known of each shard
        self._look_at(value)

    @cached_property
    def digest(self) -> str:
        """Its SHA-256, as ``fingerprint.digest`` has it."""
        return digest(self._value)

    def copy(self) -> Any:
        """Return equal values that share nothing with these."""
        return self._copied(self._value)

    def _look_at(self, value: Any) -> None:
        inner = [each for each in _parts(value) if isinstance(each, _INNER)]
        if not inner:
            self._plain.add(id(value))
        for each in inner:
            self._look_at(each)
        lists = inner and len(inner) == len(value) and all(isinstance(v, list) for v in inner)
        if lists and isinstance(value, list) and all(id(each) in self._plain for each in inner):
            self._of_plain.add(id(value))

    def _copied(self, value: Any) -> Any:
        if not isinstance(value, _INNER):
            return value
        if id(value) in self._plain:
            return value.copy()
        if id(value) in self._of_plain:
            return list(map(list.copy, value))
        if isinstance(value, dict):
            return {key: self._copied(each) for key, each in value.items()}
        return [self._copied(each) for each in value]


def _parts(value: dict[str, Any] | list[Any]) -> Any:
    return value.values() if isinstance(value, dict) else value
