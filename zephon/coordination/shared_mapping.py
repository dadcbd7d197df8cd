"""Any mapping that all ranks reach: a hosted dictionary, a manager's, or a dict among threads."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any

from zephon.errors import CoordinationError, ZephonError, told


class MappingStore:
    """A mapping from text to bytes.

    Only ``mapping[key] = value``, ``mapping.get(key)`` and ``mapping.pop(key)`` are called, since
    hosted ones may offer little more. Keys begin with ``prefix``.
    """

    pace = (0.001, 0.2)
    passes = False

    def __init__(self, mapping: MutableMapping[str, Any], prefix: str = "zephon/") -> None:
        self._mapping = mapping
        self._prefix = prefix
        self.told = f"aggregate_store={type(mapping).__name__}"

    def set(self, key: str, value: bytes) -> None:
        """Put a value; see ``Store``."""
        try:
            self._mapping[self._prefix + key] = value
        except Exception as error:
            raise self._refused(error) from error

    def get(self, key: str) -> bytes | None:
        """Give a value; see ``Store``."""
        try:
            value = self._mapping.get(self._prefix + key)
        except KeyError:
            return None
        except Exception as error:
            raise self._refused(error) from error
        if value is None or isinstance(value, bytes):
            return value
        raise CoordinationError(
            f"options: {self.told} holds {type(value).__name__} under {self._prefix + key!r}, "
            "expected bytes; give ranks a mapping in which nobody else writes"
        )

    def drop(self, keys: Iterable[str]) -> None:
        """Take values away; see ``Store``."""
        for key in keys:
            try:
                self._mapping.pop(self._prefix + key)
            except KeyError:
                continue
            except Exception as error:
                raise self._refused(error) from error

    def _refused(self, error: Exception) -> ZephonError:
        return CoordinationError(
            f"options: {self.told} does not answer: {told(error)}; ranks need a mapping that "
            "lives as long as they do"
        )
