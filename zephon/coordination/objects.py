"""A prefix in an object store: ``s3://``, ``gs://``, ``az://`` and their other spellings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zephon.errors import CoordinationError, DatasetError, PlanError
from zephon.io.storage.object_faults import fault_of
from zephon.io.storage.object_stores import open_store
from zephon.io.storage.object_urls import bare, parse
from zephon.io.storage.patience import Patience

_PATIENCE = Patience(attempts=11, seconds=180.0, stall=30.0)


class ObjectStore:
    """An object a key, with the credentials and endpoints that the environment names."""

    pace = (0.05, 2.0)
    passes = False

    def __init__(self, url: str) -> None:
        self.told = f"aggregate_dir={bare(url)!r}"
        try:
            place = parse(url)
        except DatasetError as error:
            raise PlanError(f"options: aggregate_dir: {error}") from None
        self._store: Any = open_store(place, {}, _PATIENCE, f"options: {self.told}").store

    def set(self, key: str, value: bytes) -> None:
        """Put a value; see ``Store``."""
        try:
            self._store.put(key, value)
        except Exception as error:
            raise self._refused(error) from None

    def get(self, key: str) -> bytes | None:
        """Give a value; see ``Store``."""
        try:
            return bytes(self._store.get(key).bytes())
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._refused(error) from None

    def drop(self, keys: Iterable[str]) -> None:
        """Take values away; see ``Store``."""
        gone = list(keys)
        try:
            self._store.delete(gone)
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> CoordinationError:
        # Without its cause: what a client prints of a request may hold a signature.
        return CoordinationError(
            f"options: {self.told} does not answer: {fault_of(error).told}; every rank needs to "
            "write there"
        )
