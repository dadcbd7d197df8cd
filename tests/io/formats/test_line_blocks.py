import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.io.formats.line_blocks import index_lines, is_blank, row_lines

LINE = st.sampled_from(
    [b"", b"{}", b' {"a": 1}', b"\r", b"{}\r", b" \t", "\u3000".encode(), b"\x1c", b"\xff",
     "é".encode(), b"x" * 40, b"\x0b", "\u3000x".encode(), b"\xe3\x80", b"\xef\xbb\xbf",
     b"\xef\xbb\xbf\xef\xbb\xbf \r", b"\xef\xbb\xbf{}", b" \xef\xbb\xbf"]
)  # fmt: skip
TEXTS = st.tuples(st.lists(LINE), st.booleans()).map(
    lambda drawn: b"\n".join(drawn[0]) + b"\n" * drawn[1]
)


def slowly(text):
    """The rows of a text by the definition: (start, stop, line)."""
    rows, start = [], 0
    for number, line in enumerate(text.split(b"\n")):
        try:
            text = line.decode().lstrip("\ufeff")
            blank = not text or text.isspace()
        except UnicodeDecodeError:
            blank = False
        if not blank:
            rows.append((start, start + len(line), number))
        start += len(line) + 1
    return rows


@given(TEXTS)
def test_rows_are_the_lines_that_are_not_white_space(text):
    found = row_lines(text)
    triples = zip(found.starts.tolist(), found.stops.tolist(), found.numbers.tolist(), strict=True)
    assert list(triples) == slowly(text)
    assert found.lines == text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


@given(TEXTS, st.integers(1, 60), st.booleans())
def test_the_index_depends_on_the_block_size_but_no_row_does(text, block_bytes, marked):
    whole = b"\xef\xbb\xbf" * marked + text
    blocks = index_lines(io.BytesIO(whole), block_bytes=block_bytes)
    mark = 3 if whole.startswith(b"\xef\xbb\xbf") else 0
    rows = []
    for block, (start, stop) in enumerate(zip(blocks.offsets, blocks.offsets[1:], strict=False)):
        piece = whole[start:stop]
        found = row_lines(piece)
        assert blocks.first_rows[block] == len(rows)
        assert blocks.first_rows[block + 1] == len(rows) + len(found.starts)
        assert blocks.first_lines[block] == whole[:start].count(b"\n")
        assert piece.endswith(b"\n") or stop == len(whole)
        first_line = int(blocks.first_lines[block])
        rows += [
            (int(a + start), int(b + start), int(n) + first_line)
            for a, b, n in zip(found.starts, found.stops, found.numbers, strict=True)
        ]
    assert [(a - mark, b - mark, n) for a, b, n in rows] == slowly(whole[mark:])
    assert blocks.offsets[-1] == len(whole)
    assert blocks.opening == (whole[rows[0][0] : rows[0][1]][:16] if rows else b"")


@given(st.integers(0, 40))
def test_a_text_split_at_every_byte_has_the_same_two_rows(split):
    text = b'{"text":"a"}\r\n\r\n  \n{"text":"b"}'

    class Halves:
        parts = [text[:split], text[split:]] if 0 < split < len(text) else [text]

        def read(self, size):
            return self.parts.pop(0) if self.parts else b""

    Halves.parts = list(Halves.parts)
    blocks = index_lines(Halves())
    assert blocks.first_rows[-1] == 2


def test_a_long_line_is_one_block():
    text = b"{}\n" + b"x" * 5116 + b"\n{}\n"
    blocks = index_lines(io.BytesIO(text), block_bytes=64)
    assert np.diff(blocks.first_rows).tolist() == [1, 1, 1]
    assert blocks.offsets.tolist() == [0, 3, 5120, 5123]


def test_a_file_of_one_line_without_its_end():
    assert index_lines(io.BytesIO(b"{}")).first_rows.tolist() == [0, 1]


@pytest.mark.parametrize("text", [b"", b"\xef\xbb\xbf", b"\n\n \r\n", b"\xef\xbb\xbf\n"])
def test_texts_without_rows(text):
    assert index_lines(io.BytesIO(text)).first_rows[-1] == 0


@pytest.mark.parametrize("codec", ["utf-16", "utf-32", "utf-16-be"])
def test_other_encodings_are_refused_by_their_mark(codec):
    text = ("\ufeff" if codec == "utf-16-be" else "") + '{"text": "a"}\n'
    with pytest.raises(UnicodeError, match="UTF-16 or UTF-32"):
        index_lines(io.BytesIO(text.encode(codec)))


def test_white_space_is_what_str_says():
    for code in (9, 11, 12, 13, 28, 31, 32, 0x85, 0xA0, 0x3000, 0x200B, 0xFEFF):
        assert is_blank(chr(code).encode()) == (chr(code).isspace() or code == 0xFEFF)
