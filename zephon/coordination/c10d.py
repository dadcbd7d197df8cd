"""The store of torch.distributed, by its address: ``torch://`` or ``torch://host:port``."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from typing import Any

from zephon.errors import CoordinationError, MissingExtraError, PlanError

SCHEME = "torch://"
_PIECE = 4 << 20
"""Bytes of a value at most; the servers of torch refuse some more."""


class C10dStore:
    """Values in a ``TCPStore``. Whoever leads hosts it, unless the address answers already.

    Args:
        address: `torch://`, which means MASTER_ADDR and MASTER_PORT, or `torch://host:port`.
        leads: this process may host it.
        seconds: how long the address may take to answer.

    Raises:
        PlanError: it is no such address.
        CoordinationError: it does not answer.
        MissingExtraError: torch is not there.
    """

    pace = (0.0002, 0.02)

    def __init__(self, address: str, *, leads: bool, seconds: float) -> None:
        host, port = _place(address)
        self.told = f"aggregate_store='{SCHEME}{host}:{port}'"
        self._store, self.passes = _connect(host, port, leads, seconds, os.getpid())
        self._pieces: dict[str, int] = {}  # of the values in several that were seen here

    def set(self, key: str, value: bytes) -> None:
        """Put a value; see ``Store``. Long ones go in pieces, of which the last is the first."""
        pieces = [value[at : at + _PIECE] for at in range(0, len(value), _PIECE)] or [b""]
        self._note(key, len(pieces))
        with _told(self.told):
            for number, piece in enumerate(pieces[1:], 1):
                self._store.set(f"{key}/{number}", piece)
            self._store.set(key, len(pieces).to_bytes(4, "big") + pieces[0])
            self._store.check([key])  # the server does not answer a set, but in order

    def get(self, key: str) -> bytes | None:
        """Give a value; see ``Store``."""
        with _told(self.told):
            if not self._store.check([key]):
                return None
            first = self._store.get(key)
            count = int.from_bytes(first[:4], "big")
            self._note(key, count)
            rest = [self._store.get(f"{key}/{number}") for number in range(1, count)]
        return b"".join([first[4:], *rest])

    def drop(self, keys: Iterable[str]) -> None:
        """Take values away; see ``Store``."""
        with _told(self.told):
            for key in keys:
                for number in range(1, self._pieces.pop(key, 1)):
                    self._store.delete_key(f"{key}/{number}")
                self._store.delete_key(key)

    def _note(self, key: str, pieces: int) -> None:
        if pieces > 1:
            self._pieces[key] = max(pieces, self._pieces.get(key, 1))


class _told:
    """Says which store failed, when one does."""

    def __init__(self, told: str) -> None:
        self._store = told

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if isinstance(error, RuntimeError):
            raise CoordinationError(
                f"options: {self._store} does not answer any more; the process that hosts it has "
                "ended, or the network is gone"
            ) from error


def _place(address: str) -> tuple[str, int]:
    named = address.removeprefix(SCHEME).strip("/")
    if not named:
        host, text = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
        if not host or not text:
            raise PlanError(
                "options: aggregate_store='torch://' needs MASTER_ADDR and MASTER_PORT, which "
                "torchrun sets; write torch://host:port"
            )
    else:
        host, _, text = named.rpartition(":")
        host = host.strip("[]")
    if not host or not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise PlanError(
            f"options: aggregate_store={address!r} is no address; write torch://host:port"
        )
    return host, int(text)


@cache
def _connect(host: str, port: int, leads: bool, seconds: float, process: int) -> tuple[Any, bool]:
    """Connect once a process; pipelines share it, but for forked ones: they would mix their words.

    Say whether it is hosted here, too.
    """
    # Imported late: torch is optional, and only this way to meet needs it here.
    try:
        from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]
    except ImportError:
        raise MissingExtraError(
            "options: aggregate_store='torch://' needs torch, which is not installed; "
            "pip install 'zephon[torch]'"
        ) from None
    hosts = leads and not _answers(host, port)
    try:
        store = TCPStore(
            host,
            port,
            is_master=hosts,
            wait_for_workers=False,
            timeout=timedelta(seconds=seconds),
            multi_tenant=hosts,
        )
    except (RuntimeError, ValueError) as error:
        raise CoordinationError(
            f"options: aggregate_store='{SCHEME}{host}:{port}' does not answer within "
            f"{seconds:g} s; rank 0 hosts it there, or torchrun does"
        ) from error
    return store, not _hosted_apart(hosts)


def _hosted_apart(hosts: bool) -> bool:
    """Say whether the store outlives the ranks; torchrun's agent says that it hosts it."""
    return not hosts and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
