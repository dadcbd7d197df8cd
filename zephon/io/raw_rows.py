"""A row as it lies in its file, for whoever writes down what is wrong with it.

Lines are given as they are. Of other formats a row is its values as JSON: bytes in base64, numbers
that JSON does not have and values of other types as text.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row. line, byte: where it begins in the decoded text of its file, where that has lines;
    lines count from 1.
    """  # noqa: D205

    raw: bytes
    line: int | None = None
    byte: int | None = None


def json_of(value: Any) -> bytes:
    """Write a value as JSON, whatever it is.

    >>> json_of({"a": b"hi", "b": [float("nan"), 1]})
    b'{"a": {"base64": "aGk="}, "b": ["nan", 1]}'
    """
    plain = _plain(value)
    text = json.dumps(plain, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which escapes can say
        return json.dumps(plain).encode()


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes() | bytearray() | memoryview():
            return {"base64": base64.b64encode(value).decode("ascii")}
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy, tensors
        return _plain(value.tolist())
    return str(value)
