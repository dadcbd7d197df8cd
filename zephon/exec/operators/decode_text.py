"""Fields of a row as clean text: decoded, with one kind of newline."""

from __future__ import annotations

from typing import Any

from zephon.errors import DataTypeError, told
from zephon.exec.bad_row import BadRow
from zephon.planner.logical.functions import DecodeText

_BYTES = (bytes, bytearray, memoryview)


def decoded(row: Any, node: DecodeText) -> dict[str, Any]:
    """Return a row whose text fields are text; the row itself is not changed.

    Bytes are decoded, every other value becomes its ``str``. Fields that are absent stay so.

    Raises:
        BadRow: the row is no dict, or bytes are not text in the encoding.
    """
    if not isinstance(row, dict):
        raise BadRow(
            "decode_text",
            f"a row must be a dict, got a {type(row).__name__}",
            "make dicts of the rows first, with map_transform",
            kind=DataTypeError,
        )
    made = dict(row)
    for name in node.text_fields:
        if name in row:
            made[name] = _text(name, row[name], node)
    return made


def _text(name: str, value: Any, node: DecodeText) -> str:
    try:
        text = _as_str(value, node)
    except UnicodeDecodeError as exc:
        raise BadRow(
            "decode_text",
            f"field {name!r} must be text in {node.encoding!r}, got bytes that are not, at byte "
            f"{exc.start} ({exc.reason})",
            "pass errors='replace' or another encoding, or mend the row",
        ) from None
    except LookupError:
        raise BadRow(
            "decode_text",
            f"no encoding {node.encoding!r} is known to Python, wanted for field {name!r}",
            "name one of the codecs module, such as 'utf-8' or 'latin-1'",
        ) from None
    except Exception as exc:  # the value is the user's object, whose own code may fail
        problem = f"str() of field {name!r} raised {told(exc)}"
        raise BadRow("decode_text", problem, "mend the row") from exc
    if node.normalize_newlines:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.lower() if node.lowercase else text


def _as_str(value: Any, node: DecodeText) -> str:
    if isinstance(value, _BYTES):
        return bytes(value).decode(node.encoding, node.errors)
    return str(value)
