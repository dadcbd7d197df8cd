"""One reader a file; the table is how the name of a format becomes one.

Read ``format`` and ``file_format`` first: what every format can do. Then a format from its face
down: ``parquet`` → ``parquet_layouts``, ``parquet_schema``, ``parquet_groups``,
``parquet_statistics``, ``arrow_columns``, ``arrow_rows``; ``jsonl`` → ``line_layouts``,
``line_blocks``, ``line_types``, ``line_groups``, ``line_decoder``, ``line_columns``,
``line_rows``, ``forward_file``, ``compressed_text``; ``memory``. To add one: a file, and a line
here.
"""

from __future__ import annotations

from zephon.io.formats.jsonl import Jsonl
from zephon.io.formats.memory import Memory
from zephon.io.formats.parquet import Parquet
from zephon.io.formats.registering import register, registered

__all__ = ["FORMATS", "register"]

FORMATS = registered(
    Jsonl(),
    Parquet(),
    Memory(),
)
