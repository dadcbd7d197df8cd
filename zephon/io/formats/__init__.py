"""One reader a file; the table is how the name of a format becomes one.

Read ``format`` and ``file_format`` first: what every format can do; ``registering`` finds them by
name. Then a format from its face down: ``parquet`` → ``parquet_layouts``, ``parquet_footer``,
``parquet_groups``, ``parquet_units``, ``parquet_parts``, ``parquet_statistics``,
``parquet_thrift``, ``parquet_far``; ``jsonl`` → ``line_layouts``, ``line_blocks``, ``line_types``,
``line_groups``, ``line_decoder``, ``line_columns``, ``json_lists``, ``line_rows``; ``memory``. Then
``block_format``, the base of all others → ``blocks``, ``block_layouts``, ``block_groups``,
``block_rows``, ``line_counts``; and ``table_format``, of those that tell their columns:
``arrow_ipc`` → ``arrow_messages``, ``arrow_batches``; ``csv`` → ``csv_records``; ``text``. No
tables are in ``json_file``, and ``web_dataset`` → ``tar_members``.

Several use ``table_schemas``, ``arrow_columns``, ``arrow_rows``, ``arrow_values`` and
``dictionaries`` (tables), ``row_columns`` and ``first_rows`` (Python rows), ``compressed_text``,
``zstd_module``, ``forward_files`` and ``forward_file`` (compressed files).

To add one: a file, and a line here; a program adds its own with ``register``.
"""

from __future__ import annotations

from zephon.io.formats.arrow_ipc import Arrow
from zephon.io.formats.block_format import BlockFormat, RecordFormat
from zephon.io.formats.blocks import Block, Decoded, Problem
from zephon.io.formats.csv import Csv, Tsv
from zephon.io.formats.json_file import JsonFile
from zephon.io.formats.jsonl import Jsonl
from zephon.io.formats.memory import Memory
from zephon.io.formats.parquet import Parquet
from zephon.io.formats.registering import register, registered
from zephon.io.formats.text import Text
from zephon.io.formats.web_dataset import WebDataset

__all__ = [
    "FORMATS",
    "Block",
    "BlockFormat",
    "Decoded",
    "Problem",
    "RecordFormat",
    "register",
]

FORMATS = registered(
    Jsonl(),
    Parquet(),
    Memory(),
    Arrow(),
    Csv(),
    Tsv(),
    JsonFile(),
    Text(),
    WebDataset(),
)
