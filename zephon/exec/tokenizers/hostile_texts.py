"""The fixed texts of the probe: what has made tokenizers disagree, and what might."""

# ruff: noqa: RUF001  characters that look like others are what these texts are about
from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Iterator

import numpy as np

VERSION = "2"
"""The version of the texts: it is part of the name of every kept verdict."""

ATOMS = (
    # words, contractions, signs that are letters or numbers
    "Hello, world!",
    "don't you'll I'VE we're THEY'D it’s 's 's'S 'll' ''''''",
    "naïve café Ⅷ ½ x² ª º ① ㊿",
    "Straße ẞ ŉ İstanbul ısı ǅ",
    "ﬁ ﬂ ﬃ Å Å Ω Ω",
    "ＦＵＬＬ ｗｉｄｔｈ １２３",
    "camelCaseHTTPServerID ABCdefGHI aBcDeF snake_case_NAME",
    # scripts without spaces, from right to left, with marks
    "日本語のテキスト、漢字。「はい」",
    "中文文本没有空格也没有标点",
    "한국어 텍스트 각 \u1100\u1161\u11a8",
    "ภาษาไทยไม่มีช่องว่าง",
    "العَرَبِيَّة مِن اليمين ١٢٣",
    "עִבְרִית",
    "\u202eright to left\u202c \u2066isolate\u2069",
    "हिन्दी में लिखा १२३",
    "Русский ελληνικά Việt Nam",
    # emoji: joined, with skin, flags, keycaps, variation selectors, tags
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd",
    "\U0001f1e9\U0001f1ea\U0001f1ef\U0001f1f5 1\ufe0f\u20e3 \u2764\ufe0f",
    "😀😃",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e007f",
    # combining marks, alone, stacked, next to each other across scripts
    "e\u0301 \u00e9 a\u0308\u0323 q\u0307\u0323",
    "Z\u0335\u0321\u0322a\u0315l\u0358g\u0321o",
    "\u0300\u0301 \u0e33\u0eb3 \u0c55a\u0c56 \u20dd\u20e3",
    "[\\w·\u0300-\u036f·\u0387\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]",
    "[\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u0711\u0730-\u074a\u07a6-\u07b0]",
    # controls, invisible, unassigned, private, neighbours of surrogates
    "\x00",
    "a\x00b",
    "\x01\x02\x1b[0m\x7f",
    "\x1c\x1d\x1e\x1f\x85",
    "\u200b\u200c\u200d\ufeff\u2060\u00ad",
    "\ud7ff\ue000\uf8ff\ufffd\uffff",
    "\ufdd0 \ufffe \U00010000\U0001fffe\U0010ffff",
    # white space
    "",
    " ",
    "  ",
    "   x   ",
    "\t",
    "\t\tx",
    "\n",
    "\n\n\n",
    " \n \n",
    "\r\n",
    "a\r\nb\r\n\r\nc",
    "\rx",
    "x \n",
    "x\n\n\ty",
    "a  b   c    d     e",
    " \t \n \r\n ",
    "\v\f",
    "x\u3000y\u00a0z\u2003\u205f",
    "\u2028\u2029",
    # numbers
    "0",
    "12 123 1234",
    "12345678901234567890",
    "3.14159e-10 1,000,000.00 0x1F v1.2.3-rc4",
    # code and punctuation
    "def f(x):\n    return x ** 2  # ok\n",
    "if (a&&b) { c->d[i]++; }\n\t}\n",
    "</div><br/>\n",
    "a_b-c.d/e\\f C:\\x\\y",
    '{"a": [1, null]} $\\frac{a}{b}$',
    "!!!???... -----===== ((((())))) #$%^&*~`|",
    "“quotes” ‘x’ «y» — – …",
    "https://a.b/c?d=e&f=%20#g user@example.com",
    # what tokenizers use inside
    "<s> </s> <unk> <pad>",
    "<|endoftext|>",
    "<|im_start|>user\n[INST] x [/INST]",
    "<0x0A> ▁▁x▁ ĠhelloĊ ##ing @@ Â â‚¬",
)


@functools.cache
def fixed_texts() -> tuple[str, ...]:
    """Return the texts that every tokenizer is asked; whoever changes them raises ``VERSION``."""
    return (
        *ATOMS,
        *(f" {atom}" for atom in ATOMS),
        *(f"{atom} " for atom in ATOMS),
        *(f"a{atom}b" for atom in ATOMS),
        *(f"{atom}\n{after}" for atom, after in itertools.pairwise(ATOMS)),
        *_long_texts(),
        *_all_of_unicode(),
    )


def _long_texts() -> Iterator[str]:
    """Yield runs and words far beyond those of prose."""
    units = (
        "a",
        "A",
        " ",
        "\n",
        "\t",
        "0",
        "!",
        "=",
        "é",
        "漢",
        "😀",
        "\u0301",
        "ab",
        "\r\n",
        "\x00",
    )
    for unit in units:
        yield unit * 2_000
        yield f"x{unit * 301}y"
    letters = np.frombuffer(hashlib.shake_128(b"letters").digest(12_000), np.uint8) % 26 + 97
    yield letters.tobytes().decode()
    yield hashlib.shake_128(b"hexadecimal").hexdigest(4_000)
    words = hashlib.shake_128(b"words").hexdigest(6_000)
    yield " ".join(words[i : i + 7] for i in range(0, len(words), 7))


def _all_of_unicode() -> Iterator[str]:
    """Yield one code point in 61, 40 to a text, with and without letters between them."""
    points = [p for p in range(0, 0xF0000, 61) if not 0xD800 <= p < 0xE000]
    points.extend(range(0x80, 0x3000, 7))
    for start in range(0, len(points), 40):
        characters = list(map(chr, points[start : start + 40]))
        yield "".join(characters)
        yield " a".join(characters)
