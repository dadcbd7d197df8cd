"""Every value that a row can hold as bytes: two are equal only where type and every bit are."""

from __future__ import annotations

import dataclasses
import functools
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def bytes_of(value: Any) -> bytes:
    """Write a value down.

    Floats are written bit by bit, so that one that is not a number equals itself; arrays and
    tensors with their type and shape; dicts in their order. Of an object that is nothing known,
    what it says of itself, or the values of its attributes.

    >>> bytes_of([1, 2]) == bytes_of((1, 2)), bytes_of(float("nan")) == bytes_of(float("nan"))
    (False, True)
    """
    out = bytearray()
    _write(out, value)
    return bytes(out)


def _write(out: bytearray, value: Any) -> None:
    write = _KINDS.get(type(value))  # first: most values are of one of these, and many are written
    if write is not None:
        write(out, value)
    else:
        _write_other(out, value)


def _write_other(out: bytearray, value: Any) -> None:
    match value:
        case np.generic():
            _put(out, b"g", value.dtype.str.encode() + b" " + value.tobytes())
        case np.ndarray():
            _write_array(out, value)
        case list() | tuple():
            _write_list(out, value)
        case Mapping():
            _write_mapping(out, value)
        case set() | frozenset():
            _put(out, b"e", b"".join(sorted(map(bytes_of, value))))
        case bytearray() | memoryview():
            _put(out, b"b", bytes(value))
        case _ if hasattr(value, "data_ptr"):  # a torch tensor: torch is loaded where one is
            bits = value.detach().cpu().contiguous().reshape(-1).view(sys.modules["torch"].uint8)
            _put(out, b"t", f"{value.dtype} {tuple(value.shape)}".encode())
            _put(out, b"v", bits.numpy().tobytes())
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            _put(out, b"o", type(value).__qualname__.encode())
            for name in _field_names(type(value)):
                _write(out, getattr(value, name))
        case _ if type(value).__repr__ is not object.__repr__:
            _put(out, b"r", f"{type(value).__qualname__} {value!r}".encode())
        case _:
            _put(out, b"o", type(value).__qualname__.encode())
            _write_mapping(out, getattr(value, "__dict__", {}))


@functools.lru_cache(maxsize=256)
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(kind))


def _write_mapping(out: bytearray, value: Mapping[Any, Any]) -> None:
    _put(out, b"d", f"{type(value).__name__} {len(value)}".encode())
    for key, each in value.items():
        _write(out, key)
        _write(out, each)


def _write_list(out: bytearray, value: list[Any] | tuple[Any, ...]) -> None:
    kinds = set(map(type, value))
    tag = b"l" if isinstance(value, list) else b"u"
    if len(kinds) == 1 and kinds <= _PACKED.keys():  # the tokens of a row, or what goes with them
        letter = _PACKED[kinds.pop()]
        try:
            _put(out, tag + letter.encode(), struct.pack(f"<{len(value)}{letter}", *value))
        except struct.error:  # of more than 64 bits
            pass
        else:
            return
    _put(out, tag, str(len(value)).encode())
    for each in value:
        _write(out, each)


def _write_array(out: bytearray, value: np.ndarray) -> None:
    _put(out, b"a", f"{value.dtype.str} {value.dtype.descr} {value.shape}".encode())
    if value.dtype.hasobject:
        _write(out, value.reshape(-1).tolist())
    else:
        _put(out, b"v", np.ascontiguousarray(value).tobytes())


def _put(out: bytearray, tag: bytes, content: bytes) -> None:
    out += tag
    out += len(content).to_bytes(8, "little")
    out += content


_PACKED: dict[type, str] = {int: "q", float: "d", bool: "?"}

_KINDS: dict[type, Callable[[bytearray, Any], None]] = {
    type(None): lambda out, value: _put(out, b"c", b"None"),
    bool: lambda out, value: _put(out, b"c", b"True" if value else b"False"),
    int: lambda out, value: _put(out, b"i", b"%d" % value),
    float: lambda out, value: _put(out, b"f", struct.pack("<d", value)),
    str: lambda out, value: _put(out, b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda out, value: _put(out, b"b", value),
    list: _write_list,
    tuple: _write_list,
    dict: _write_mapping,
    np.ndarray: _write_array,
}
