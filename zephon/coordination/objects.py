"""A prefix in an object store: ``s3://``, ``gs://``, ``az://`` and their other spellings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zephon.errors import CoordinationError, MissingExtraError, PlanError

_SPELLED = {"gcs": "gs", "abfss": "abfs"}
SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss")


def is_object_url(path: str) -> bool:
    """Say whether a path names a place in an object store."""
    scheme, found, _ = path.partition("://")
    return bool(found) and scheme in SCHEMES


class ObjectStore:
    """An object a key, with the credentials and endpoints that the environment names."""

    pace = (0.05, 2.0)
    passes = False

    def __init__(self, url: str) -> None:
        # Imported late: an extra that only buckets need.
        try:
            from obstore.store import from_url
        except ImportError:
            raise MissingExtraError(
                f"options: aggregate_dir={_bare(url)!r} needs obstore, which is not installed; "
                "pip install 'zephon[cloud]'"
            ) from None
        self.told = f"aggregate_dir={_bare(url)!r}"
        scheme, _, rest = url.partition("://")
        try:
            self._store: Any = from_url(f"{_SPELLED.get(scheme, scheme)}://{rest}")
        except Exception as error:
            raise PlanError(
                f"options: {self.told} cannot be opened: {_first_line(error)}; name a bucket and a "
                "prefix, and set the credentials in the environment"
            ) from None

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
            f"options: {self.told} does not answer: {_first_line(error)}; every rank needs to "
            "write there"
        )


def _first_line(error: Exception) -> str:
    text = str(error).splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__


def _bare(url: str) -> str:
    """Leave out what may be a secret: a user, and a query."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("?")[0].partition("/")
    return (
        f"{scheme}://{place.rpartition('@')[2] if scheme not in _AT_HOSTS else place}{slash}{path}"
    )


_AT_HOSTS = ("abfs", "abfss")
"""Where what stands before an @ is the container, not a secret."""
