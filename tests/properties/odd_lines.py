"""JSON lines made at random, from good ones to those that nobody would write."""

import json

from tests.written import PACK

MARK = b"\xef\xbb\xbf"
ENDS = ("", *PACK)
NUMBERS = [
    "0", "-0", "-0.0", "7", "3.0", "1e3", "1E400", "-1e400", "5e-324", "0.1", "1" * 30, "1" * 400,
    "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "9007199254740993", "9007199254740993.0", "NaN", "Infinity", "01",
    "1.", ".5", "+1", "-", "0x10", "1_000", "1e23", "123456789.123456789012345678",
]  # fmt: skip
STRINGS = [
    '""', '"a"', '"2024-01-01T00:00:00Z"', '"null"', '"12"', r'"\u0000"', r'"a\ud800"', r'"\ud83d"',
    r'"\ud83d\ude00"', r'"\udc00\ud800"', '"\u2028\u2029\u0085"', '"größe 木 😀"', '"\x7f"', '"\t"',
    r'"\q"', r'"\u12"', r'"\/\b\f\n\r\t\""', '"\ufeff"', '"' + "long " * 300 + '"', '"open',
]  # fmt: skip
OTHERS = [
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[1,]",
    "[null]",
    '{"a":1,"a":2}',
    "nul",
    "",
    "[[",
    "'a'",
]
LISTS = [
    "[]",
    "[1,2,3]",
    "[ 1 , 2 ]",
    "[1.0]",
    "[true]",
    "[1,null]",
    "[2147483648]",
    "[-1]",
    "[[1]]",
]
KEYS = ['"text"', '"ids"', '"n"', '"x"', '"m"', '"m.t"', '"other"', r'"te\u0078t"', '""', '"text "']
BLANK = [
    b"",
    b" ",
    b"\r",
    b"\t \r",
    "\u3000".encode(),
    b"\x0b",
    MARK,
    MARK + b" ",
    "\u0085".encode(),
]
JUNK = [
    b"{", b"}", b"[", b"]", b'{"text":"a"} zzz', b'{"text":"a"}{"text":"b"}', b'"str"', b"3",
    b"null", b'[{"text":"a"}]', b"\xff", b"\x00" * 9, b'{"text":"a\xff"}', b"\x1e{}", b"//{}",
    b'{"x":"\xed\xa0\x80","text":"a"}', b'{"t\xff":1,"text":"a"}', b'{"text":"a",}', b'{"text":"}',
    b"{'text':'a'}", b'{"}', b'{"a":{}', b"{}}", b'{"text":"a"}\x00', b"\r{}", b"{}\r\r",
    b" \xef\xbb\xbf{}",
]  # fmt: skip


def value(chance, depth=0):
    kind = chance.randrange(10)
    if kind < 3:
        return chance.choice(STRINGS)
    if kind < 5:
        return chance.choice(NUMBERS)
    if kind < 6:
        return chance.choice(LISTS)
    if kind < 8 or depth > 3:
        return chance.choice(OTHERS)
    if kind == 8:
        return "[" + ",".join(value(chance, depth + 1) for _ in range(chance.randrange(4))) + "]"
    return an_object(chance, depth + 1)


def an_object(chance, depth=0):
    space = chance.choice(["", "", " ", "\t"])
    fields = [
        f"{chance.choice(KEYS)}{space}:{space}{value(chance, depth)}"
        for _ in range(chance.randrange(6))
    ]
    return "{" + f",{space}".join(fields) + "}"


def good_row(chance):
    row = {
        "text": chance.choice(["", "a", "木", "two\nlines", "x" * 200]),
        "n": chance.randrange(99),
    }
    row |= {"ids": [chance.randrange(2**31) for _ in range(chance.randrange(5))]}
    if chance.random() < 0.3:
        row |= {"x": chance.random(), "m": {"t": "in"}}
    items = list(row.items())
    chance.shuffle(items)
    return json.dumps(dict(items), ensure_ascii=chance.random() < 0.5).encode()


def a_line(chance, oddness):
    if chance.random() > oddness:
        return good_row(chance)
    kind = chance.randrange(6)
    if kind < 3:
        return an_object(chance).encode()
    if kind == 3:
        return chance.choice(JUNK)
    if kind == 4:
        return chance.choice(BLANK)
    return (
        chance.choice([MARK, b" ", MARK * 2, b""]) + good_row(chance) + chance.choice([b" ", b"\r"])
    )


def a_text(chance, oddness):
    end = chance.choice([b"\n", b"\n", b"\r\n"])
    text = end.join(a_line(chance, oddness) for _ in range(chance.randrange(40)))
    return chance.choice([b"", b"", MARK]) + text + chance.choice([b"", end, end * 2])


def written(folder, texts, chance):
    """Write each text in one file of any codec, in one member or several."""
    for number, text in enumerate(texts):
        end = chance.choice(ENDS)
        parts = [text]
        if end and chance.random() < 0.5:
            at = chance.randrange(len(text) + 1)
            parts = [text[:at], text[at:]]
        path = folder / f"{number}{chance.choice(['.jsonl', '.ndjson'])}{end}"
        path.write_bytes(b"".join(map(PACK.get(end, bytes), parts)))
