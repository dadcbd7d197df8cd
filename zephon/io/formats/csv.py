"""CSV and TSV: every value is the text that stands there, but in columns that ``schema=`` types.

"007", "NA", "null", "1e5" and dates stay what they are; an empty field is "", with quotes or
without. A column that ``schema=`` types is parsed where expressions read it: there an empty field
is null, and text that is no such value is bad. Blank lines are no rows. A record with more or fewer
fields than the header is a bad row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import DatasetError
from zephon.io.column_types import is_text
from zephon.io.faults import Faults
from zephon.io.fields import TEXT, Column
from zephon.io.formats.arrow_columns import converted_column
from zephon.io.formats.blocks import Block, Decoded, Problem
from zephon.io.formats.compressed_text import COMPRESSED
from zephon.io.formats.csv_records import pieces_of
from zephon.io.formats.line_blocks import BYTE_ORDER_MARK
from zephon.io.formats.table_format import TableFormat
from zephon.io.formats.table_schemas import check_column

_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


class Csv(TableFormat):
    """Files that end in .csv.

    Options: ``header`` (True: the first record has the names; False: they are f0, f1, ...; or a
    list of the names, where no record has them), ``delimiter``, ``quote`` (None: quotes are signs
    like others).
    """

    kind = "csv"
    suffixes = tuple(".csv" + end for end in ("", *COMPRESSED))
    gives_way = True
    has_lines = True
    option_defaults = MappingProxyType({"header": True, "delimiter": ",", "quote": '"'})
    options = option_defaults

    def option_problem(self) -> str:
        """Check all three."""
        header, delimiter, quote = (self.options[each] for each in ("header", "delimiter", "quote"))
        names = isinstance(header, list | tuple) and all(isinstance(n, str) for n in header)
        if not (isinstance(header, bool) or (names and header)):
            return f"must have True, False or a list of names as header, got {header!r}"
        if not _is_sign(delimiter):
            return f"must have one ASCII character as delimiter, got {delimiter!r}"
        if quote is not None and (not _is_sign(quote) or quote == delimiter):
            return f"must have another ASCII character, or None, as quote, got {quote!r}"
        return ""

    def split(self, file: BinaryIO, facts: dict[str, Any]) -> Iterator[Block]:
        """Read the whole file; find the header, and where each piece of records begins."""
        delimiter, quote = ord(self.options["delimiter"]), self.options["quote"]
        header, place, names = self.options["header"], 0, None
        if isinstance(header, list | tuple):
            names = list(header)
        for text, ends in pieces_of(file, delimiter, quote and ord(quote)):
            start = 0
            if not place:
                if text.startswith(_OTHER_MARKS):
                    raise ValueError("it begins with the mark of UTF-16 or UTF-32")
                start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
            spans = _spans(text, ends, start)
            if names is None and len(spans):
                begin, end = spans[0].tolist()
                first = self._fields(text[begin:end])
                if header:
                    "".join(first).encode()  # raises where it is not UTF-8
                    names, spans, start = first, spans[1:], int(ends[ends > begin][0])
                else:
                    names = [f"f{number}" for number in range(len(first))]
            if len(spans):
                yield Block(place + start, len(spans))
            place += len(text)
        facts["columns"] = names or []

    def decode(self, text: bytes, facts: Mapping[str, Any]) -> Decoded:
        """Parse all records at once; where one is odd, each by itself."""
        names = facts["columns"]
        spans = self._record_spans(text)
        columns = self._at_once(text, names, len(spans))
        bad: dict[int, Problem] = {}
        if columns is None:
            columns, bad = self._one_by_one(text, spans, names)
        return Decoded(bad=bad, table=pa.Table.from_arrays(columns, names=names))

    def spans(self, text: bytes, facts: Mapping[str, Any]) -> Sequence[tuple[int, int]]:
        """Find the records."""
        return [(begin, end) for begin, end in self._record_spans(text).tolist()]

    def schema(self, facts: Mapping[str, Any]) -> pa.Schema:
        """Give a column of text for each name."""
        return pa.schema([(name, TEXT) for name in facts["columns"]])

    def check_column(self, dataset: str, shard: str, schema: pa.Schema, column: Column) -> None:
        """Take any type that text can be parsed as, where ``schema=`` says so."""
        dtype = column.type
        if column.kind != "any" or is_text(dtype):
            check_column(dataset, shard, schema, column)
            return
        check_column(dataset, shard, schema, Column(column.path, "any", values=TEXT))
        if pa.types.is_nested(dtype) or not _parses(dtype):
            raise DatasetError(
                f"dataset {dataset!r}, shard {shard!r}: column {column.path!r} must be of a type "
                f"that text can be parsed as, such as int64, double, bool, date32 or timestamp, "
                f"got {dtype}; leave it out of schema=, and convert it with an expression"
            )

    def convert(self, table: pa.Table, column: Column) -> tuple[pa.Array, Faults]:
        """Take text as it is, or parse it."""
        if column.kind != "any" or is_text(column.type):
            return converted_column(table, column)
        return _parsed(table.column(column.path), column)

    def _record_spans(self, text: bytes) -> NDArray[np.int64]:
        quote = self.options["quote"]
        pieces = list(
            pieces_of(io.BytesIO(text), ord(self.options["delimiter"]), quote and ord(quote))
        )
        starts = np.cumsum([0, *(len(piece) for piece, _ in pieces)])
        ends = np.concatenate(
            [np.empty(0, np.int64), *(e + at for (_, e), at in zip(pieces, starts, strict=False))]
        )
        return _spans(text, ends, 0)

    def _at_once(self, text: bytes, names: Sequence[str], rows: int) -> list[pa.Array] | None:
        from pyarrow import csv as arrow_csv  # late: only CSV needs it

        numbers = [str(number) for number in range(len(names))]
        quote = self.options["quote"]
        odd: list[int] = []

        def note(row: Any) -> str:
            odd.append(row.number)
            return "skip"

        if not rows:
            return [pa.array([], TEXT) for _ in names]
        if text.count(b"\r") > text.count(b"\r\n"):
            return None  # Arrow ends a record at each of the others, where no quotes enclose it
        if text.startswith(BYTE_ORDER_MARK):
            text = BYTE_ORDER_MARK + text  # Arrow drops one, and this one is a value's
        try:
            table = arrow_csv.read_csv(
                io.BytesIO(text),
                read_options=arrow_csv.ReadOptions(
                    use_threads=False, block_size=len(text) + 1, column_names=numbers
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self.options["delimiter"],
                    quote_char=quote or False,
                    newlines_in_values=True,
                    invalid_row_handler=note,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    check_utf8=False,
                    column_types=dict.fromkeys(numbers, TEXT),
                    null_values=[],
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid:
            return None
        if odd or table.num_rows != rows:
            return None
        return [column.combine_chunks() for column in table.columns]

    def _one_by_one(
        self, text: bytes, spans: NDArray[np.int64], names: Sequence[str]
    ) -> tuple[list[pa.Array], dict[int, Problem]]:
        values: list[list[bytes]] = []
        bad: dict[int, Problem] = {}
        blank = [b""] * len(names)
        for row, (begin, end) in enumerate(spans.tolist()):
            record = text[begin:end]
            try:
                fields = self._fields(record)
                if len(fields) != len(names):
                    raise ValueError(
                        f"a record must have {len(names)} fields, as the header, got {len(fields)}"
                    )
                values.append([field.encode("utf-8", "surrogateescape") for field in fields])
            except ValueError as exc:
                bad[row] = Problem(str(exc), begin, record)
                values.append(blank)
        made = [
            pa.array([row[at] for row in values], pa.large_binary()).view(TEXT)
            for at in range(len(names))
        ]
        return made, bad

    def _fields(self, record: bytes) -> list[str]:
        quote = self.options["quote"]
        lines = io.StringIO(record.decode("utf-8", "surrogateescape"), newline="")
        reader = csv.reader(
            lines,
            delimiter=self.options["delimiter"],
            quotechar=quote,
            quoting=csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL,
        )
        if csv.field_size_limit() < len(record):
            csv.field_size_limit(len(record))  # of the process; other threads may read as well
        try:
            rows = list(reader)
        except csv.Error as exc:
            raise ValueError(f"a record must be CSV, this one is not ({exc})") from exc
        if len(rows) != 1:
            raise ValueError("a record must hold no carriage return outside of quotes, got one")
        return rows[0]


class Tsv(Csv):
    """Files that end in .tsv: fields lie between tabs."""

    kind = "tsv"
    suffixes = tuple(".tsv" + end for end in ("", *COMPRESSED))
    option_defaults = MappingProxyType({"header": True, "delimiter": "\t", "quote": '"'})
    options = option_defaults


def _is_sign(value: object) -> bool:
    return isinstance(value, str) and len(value) == 1 and value.isascii() and value not in "\r\n\0"


def _spans(text: bytes, ends: NDArray[np.int64], start: int) -> NDArray[np.int64]:
    """Give where records begin and end, shape [records, 2], without blank lines."""
    starts = np.concatenate([np.array([start], np.int64), ends[:-1]])[: len(ends)]
    sizes = ends - starts
    solid = sizes > 2
    for place in np.flatnonzero(~solid).tolist():
        solid[place] = text[starts[place] : ends[place]] not in (b"\n", b"\r\n", b"\r", b"")
    return np.stack([starts[solid], ends[solid]], axis=1)


def _parses(dtype: pa.DataType) -> bool:
    try:
        pa.array([], TEXT).cast(dtype)
    except pa.ArrowException:
        return False
    return True


def _parsed(column: pa.ChunkedArray, wanted: Column) -> tuple[pa.Array, Faults]:
    """Parse text; an empty one is null, and one that cannot be is a fault of its row."""
    raw = list(
        chain.from_iterable(chunk.view(pa.large_binary()).to_pylist() for chunk in column.chunks)
    )
    texts = [value.decode("utf-8", "replace") or None for value in raw]
    try:
        return pa.array(texts, TEXT).cast(wanted.type), Faults.of({}, wanted)
    except pa.ArrowInvalid:
        pass
    problems: dict[int, str] = {}
    for row, value in enumerate(texts):
        try:
            pa.scalar(value, TEXT).cast(wanted.type)
        except pa.ArrowInvalid:
            problems[row] = (
                f": field {wanted.path!r} must be {wanted.wanted}, got text {value!r:.60}; mend or "
                f"remove the row"
            )
            texts[row] = None
    return pa.array(texts, TEXT).cast(wanted.type), Faults.of(problems, wanted)
