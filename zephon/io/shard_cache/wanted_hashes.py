"""Which hash of a shard is checked, of those that an index tells."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping


class WantedHashes:
    """Chooses by the algorithm that the user named, if any; for all threads.

    algorithm: as ``hashlib`` knows it; None checks none.
    """

    def __init__(self, algorithm: str | None) -> None:
        self._algorithm = algorithm
        self._lock = threading.Lock()
        self._warned: set[str] = set()

    def of(self, dataset: str, shard: str, told: Mapping[str, str] | None) -> Mapping[str, str]:
        """Give the hash to check, by its algorithm; warn once a dataset where none is told.

        Args:
            dataset: its name.
            shard: its name.
            told: what an index tells of it.
        """
        name = self._algorithm
        if name is None:
            return {}
        if told and name in told:
            return {name: told[name].lower()}
        with self._lock:
            known = dataset in self._warned
            self._warned.add(dataset)
        if not known:
            warnings.warn(
                f"shard cache: dataset {dataset!r}: validate_hash={name!r} asks for a hash that "
                f"no index tells of {shard!r}; its size alone is checked",
                RuntimeWarning,
                stacklevel=2,
            )
        return {}
