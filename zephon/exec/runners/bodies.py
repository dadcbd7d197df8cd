"""Bodies of messages: a pickle, and behind it, out of band, the memory of arrays and tables.

Who has a body in one piece of memory has its arrays without copying them. An array below 4 KiB goes
inside the pickle, so that nothing small keeps a large body.
"""

from __future__ import annotations

import functools
import io
import pickle
import struct
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zephon.io.formats.arrow_rows import TableRows
from zephon.io.payload import RowSource

_PROTOCOL = 5
_OUT_OF_BAND = 4096
_ALIGNED = 64
_BODY = struct.Struct("<QQ")  # bytes of the pickle, how many buffers follow


def laid_out(value: object, pickler: type[pickle.Pickler] | None = None) -> tuple[list[Any], int]:
    """Give the pieces of a body, end to end, and its size; arrays and tables are not copied.

    Functions and classes of the main program go by what they hold.

    Rows that are Python objects are pickled by themselves, so that what is left of a few of them
    does not keep the whole body; tables of rows are not, for they are copied out of it.

    Args:
        value: what the body is of.
        pickler: for values that Python pickles by itself, and faster.

    Raises:
        Exception: something in the value cannot be pickled.
    """
    views: list[memoryview] = []
    stream = io.BytesIO()

    def keep_in(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes < _OUT_OF_BAND:
            return True
        views.append(view)
        return False

    (pickler or _pickler())(stream, protocol=_PROTOCOL, buffer_callback=keep_in).dump(value)
    text = stream.getbuffer()
    table = np.array([(view.nbytes, view.readonly) for view in views], np.int64).tobytes()
    pieces = [_BODY.pack(text.nbytes, len(views)), table, text]
    size = sum(len(piece) for piece in pieces)
    for view in views:
        gap = -size % _ALIGNED
        pieces += [bytes(gap), view]
        size += gap + view.nbytes
    return pieces, size


def pack_alone(value: object) -> bytes:
    """Pickle a value and all of its memory; ``pickle.loads`` makes it again.

    Raises:
        Exception: something in the value cannot be pickled.
    """
    from cloudpickle import dumps  # late: only runs with worker processes need it

    return dumps(value, _PROTOCOL)


def unpack(body: memoryview) -> Any:
    """Make the value of a body; its arrays share the body's memory.

    Arrays may be written exactly where they could be before, and no other process sees it.

    Raises:
        Exception: something in it cannot be made here, such as a class of a missing module.
    """
    length, count = _BODY.unpack_from(body)
    table = np.frombuffer(body, np.int64, 2 * count, _BODY.size).reshape(count, 2).tolist()
    at = _BODY.size + 16 * count + length
    text, views = body[at - length : at], []
    for size, read_only in table:
        at += -at % _ALIGNED
        view = body[at : at + size]
        views.append(view.toreadonly() if read_only else view)
        at += size
    return pickle.loads(text, buffers=views)


@functools.cache
def _pickler() -> type[pickle.Pickler]:
    from cloudpickle import Pickler  # late: only runs with worker processes need it

    class Crossing(Pickler):
        """Pickles rows that are Python objects by themselves, and the file that code stands in."""

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, RowSource) and not isinstance(obj, TableRows):
                return pickle.loads, (pack_alone(obj),)
            if isinstance(obj, types.CodeType):
                make, parts = Pickler.dispatch_table[types.CodeType](obj)[:2]
                return _placed, (make, parts, obj.co_filename)
            return super().reducer_override(obj)

    return Crossing


def _placed(make: Callable[..., Any], parts: Sequence[Any], file: str) -> types.CodeType:
    """Make code that says in tracebacks where it stands, which cloudpickle leaves out."""
    return make(*parts).replace(co_filename=file)
