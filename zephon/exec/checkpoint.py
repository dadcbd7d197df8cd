"""States as documents: a dict of JSON values, or the same as bytes. Never pickle.

What is written of a lane is in ``lane_states``, that of all in ``lane_table``.
"""

from __future__ import annotations

import base64
import binascii
import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec

from zephon.errors import CheckpointError
from zephon.exec.fingerprint import digest
from zephon.io.formats.zstd_module import zstd

__all__ = [
    "FORMAT",
    "VERSION",
    "checked",
    "content_digest",
    "from_any",
    "from_bytes",
    "from_text",
    "to_bytes",
    "to_text",
]

FORMAT = "zephon.checkpoint"
VERSION = 4
_MAGIC = b"ZEPHONCP"
_WIDE, _BROKEN, _PAIRS = 1, 2, 3
"""Extensions: an integer as digits; text that is not UTF-8; a dict with such keys, as pairs."""
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1  # what msgpack writes as integers


def to_bytes(state: Mapping[str, Any]) -> bytes:
    """Return a checkpoint dict as bytes: magic, version, zstd of msgpack."""
    try:
        data = msgspec.msgpack.encode(state)
    except (OverflowError, UnicodeEncodeError):  # what an operator of the user wrote down
        data = msgspec.msgpack.encode(_packable(state))
    return _MAGIC + VERSION.to_bytes(2, "big") + zstd.compress(data)


def to_text(state: Mapping[str, Any]) -> str:
    """Return ``to_bytes`` as text: one plain value, whatever its holder does to dicts and lists."""
    return base64.b64encode(to_bytes(state)).decode("ascii")


def from_text(text: object) -> bytes:
    """Return the bytes of which ``to_text`` made text.

    Raises:
        TypeError: it is no text.
        CheckpointError: it is damaged.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"load_state_dict: 'engine' must be the text of a checkpoint, got "
            f"{type(text).__name__}; pass what state_dict() returned"
        )
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise CheckpointError(
            f"load_state_dict: the text of the checkpoint is damaged: {exc}; load an earlier one"
        ) from exc


def _packable(value: Any) -> Any:
    """Put what JSON knows and msgpack does not into extensions: wide integers, lone surrogates."""
    match value:
        case bool():
            return value
        case int() if not _LEAST <= value <= _MOST:
            return msgspec.msgpack.Ext(_WIDE, str(value).encode())
        case str():
            whole = value.encode("utf-8", "surrogatepass")
            try:
                whole.decode()
            except UnicodeDecodeError:
                return msgspec.msgpack.Ext(_BROKEN, whole)
            return value
        case dict():
            pairs = [(_packable(key), _packable(each)) for key, each in value.items()]
            if all(isinstance(key, str) for key, _ in pairs):
                return dict(pairs)
            return msgspec.msgpack.Ext(_PAIRS, msgspec.msgpack.encode(pairs))
        case list() | tuple():
            return [_packable(each) for each in value]
    return value


def _unpacked(code: int, data: memoryview) -> Any:
    if code == _WIDE:
        return int(bytes(data))
    if code == _PAIRS:
        return dict(msgspec.msgpack.decode(data, ext_hook=_unpacked))
    if code == _BROKEN:
        return bytes(data).decode("utf-8", "surrogatepass")
    raise ValueError(f"an extension of the unknown kind {code}")


def from_any(state: object) -> dict[str, Any]:
    """Return a copy of the checkpoint dict that ``state``, a dict or bytes, stands for.

    Raises:
        TypeError: neither dict nor bytes.
        CheckpointError: it is no checkpoint, is cut off, or is of a newer version.
    """
    return copy.deepcopy(checked(state))


def checked(
    state: object, like: Mapping[str, tuple[Any, str]] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the checkpoint dict that ``state`` stands for, which is sound; not a copy.

    Args:
        state: a dict or bytes.
        like: values of another checkpoint with their digests; equal ones are not digested again.

    Raises:
        TypeError, CheckpointError: as ``from_any``.
    """
    if isinstance(state, bytes | bytearray | memoryview):
        state = from_bytes(bytes(state))
        if not isinstance(state, dict):
            raise CheckpointError(
                "restore: the checkpoint's bytes are damaged: they hold no dict; "
                "restore an earlier one"
            )
    if not isinstance(state, dict):
        raise TypeError(
            f"restore: expected a checkpoint dict or bytes, got {type(state).__name__}; pass what "
            "checkpoint() returned, read from its file: read_bytes(), or json.loads() of JSON"
        )
    if state.get("format") != FORMAT:
        raise CheckpointError(
            f"restore: this is no checkpoint of ours (format {state.get('format')!r}, expected "
            f"{FORMAT!r}); pass what checkpoint() returned; what state_dict() returned goes to "
            "load_state_dict()"
        )
    if state.get("version") != VERSION:
        _refuse_version(state.get("version"), state.get("library"))
    try:
        known = {name: told for name, (value, told) in like.items() if state.get(name) == value}
        sound = state.get("digest") == content_digest(state, known)
    except (TypeError, ValueError):  # values that JSON does not know
        sound = False
    if not sound:
        raise CheckpointError(
            "restore: the checkpoint is damaged: its content does not have the digest that was "
            "written with it; restore an earlier one"
        )
    return state


def _refuse_version(version: object, library: object = None) -> NoReturn:
    what = "older" if isinstance(version, int) and version < VERSION else "newer"
    named = f"zephon {library[:40]}, which wrote it" if isinstance(library, str) else ""
    if what == "older":
        remedy = f"restore it with {named or 'the release that wrote it'}"
    else:
        remedy = f"upgrade to {named or 'the release that wrote it'}"
    raise CheckpointError(
        f"restore: checkpoint version {version!r} is {what} than the supported version {VERSION}; "
        f"{remedy}"
    )


def content_digest(
    state: Mapping[str, Any], known: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the SHA-256 of all of a checkpoint but its own ``digest``.

    Args:
        state: the checkpoint.
        known: digests of some of its values, which need not be found again.
    """
    parts = {
        name: known.get(name) or digest(value) for name, value in state.items() if name != "digest"
    }
    return digest(parts)


def from_bytes(data: bytes) -> object:
    """Read what ``to_bytes`` wrote; what comes out is not checked.

    Raises:
        CheckpointError: these are no such bytes, or of another version.
    """
    head = len(_MAGIC) + 2
    if not data.startswith(_MAGIC) or len(data) < head:
        raise CheckpointError(
            "restore: these bytes are no checkpoint: they lack its first bytes; pass what "
            "checkpoint(as_bytes=True) returned"
        )
    version = int.from_bytes(data[len(_MAGIC) : head], "big")
    if version != VERSION:
        _refuse_version(version)
    try:
        return msgspec.msgpack.decode(zstd.decompress(data[head:]), ext_hook=_unpacked)
    except (zstd.ZstdError, msgspec.DecodeError, ValueError) as exc:
        raise CheckpointError(
            f"restore: the checkpoint's bytes are damaged: {exc}; restore an earlier one"
        ) from exc
