"""Where ``{% generation %}`` blocks wrote: marks of no length travel with the text itself.

A block writes an empty mark before and after its body. Joining pieces that hold marks gives a
text that remembers where they are, so a macro whose result is written as it is keeps them. What
changes such a text (a filter, ``+``, a slice) gives plain text without marks, which is noticed at
the end: every mark that was written must be found exactly once. Rendering with and without ranges
runs the same code, so the text is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import nodes
from jinja2.exceptions import TemplateAssertionError
from jinja2.ext import Extension
from jinja2.parser import Parser

from zephon.exec.chat.sandbox.budget import TemplateFault

BEGIN = "begin("
"""How the code begins that writes the mark before a block."""


class Generation(Extension):
    """Parses ``{% generation %}...{% endgeneration %}``."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own form

    def parse(self, parser: Parser) -> nodes.Node:
        """Surround the body with marks, in a scope of its own as in transformers."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        for node in body:
            _check(node, parser.name, inside_loop=False)
        begin = nodes.Output([raw_code(f"{BEGIN}{line})", line)], lineno=line)
        end = nodes.Output([raw_code("end()", line)], lineno=line)
        return nodes.Scope([begin, *body, end], lineno=line)


def raw_code(text: str, line: int) -> nodes.InternalName:
    """Make an expression that is written as it is into the Python code of a template."""
    made = object.__new__(nodes.InternalName)  # its __init__ refuses all but Jinja's parser
    nodes.Node.__init__(made, text, lineno=line)
    return made


def _check(node: nodes.Node, name: str | None, *, inside_loop: bool) -> None:
    if isinstance(node, nodes.Break | nodes.Continue) and not inside_loop:
        raise TemplateAssertionError(
            "break or continue would leave a generation block half written", node.lineno, name
        )
    inside = inside_loop or isinstance(node, nodes.For)
    for child in node.iter_child_nodes():
        _check(child, name, inside_loop=inside)


class Mark(str):
    """An empty piece of output that says where a block begins or ends."""

    __slots__ = ("opens", "serial")
    opens: bool
    serial: int


class MarkedText(str):
    """A text with marks in it; places: (offset, serial, whether it opens), in order."""

    __slots__ = ("places",)
    places: tuple[tuple[int, int, bool], ...]


class Marks:
    """The marks that one rendering wrote."""

    __slots__ = ("_lines", "_open")

    def __init__(self) -> None:
        self._lines: list[int] = []
        self._open: list[int] = []

    def begin(self, line: int) -> Mark:
        """Give the mark before a block's body."""
        self._open.append(len(self._lines))
        self._lines.append(line)
        return self._mark(self._open[-1], opens=True)

    def end(self) -> Mark:
        """Give the mark after the body that was begun last."""
        return self._mark(self._open.pop(), opens=False)

    @staticmethod
    def _mark(serial: int, *, opens: bool) -> Mark:
        mark = Mark()
        mark.serial = serial
        mark.opens = opens
        return mark

    def ranges(self, text: str) -> list[tuple[int, int]]:
        """Return what each block wrote as (start, stop) in the text, in its order.

        A block inside another adds nothing to it and is left out.

        Raises:
            TemplateFault: what a block wrote was changed, left out or written twice.
        """
        ranges: list[tuple[int, int]] = []
        seen: set[int] = set()
        open_at: list[int] = []
        for offset, serial, opens in getattr(text, "places", ()):
            if opens:
                if serial in seen:
                    raise self._lost(serial, "more than once")
                seen.add(serial)
                open_at.append(offset)
            else:
                start = open_at.pop()
                if not open_at:
                    ranges.append((start, offset))
        for serial in range(len(self._lines)):
            if serial not in seen:
                raise self._lost(serial, "changed or not at all")
        return ranges

    def of_lines(self, text: str) -> list[tuple[int, int]]:
        """Return the line of each block that wrote to a text, and where it began, in its order."""
        places = getattr(text, "places", ())
        return [(self._lines[serial], offset) for offset, serial, opens in places if opens]

    def _lost(self, serial: int, how: str) -> TemplateFault:
        return TemplateFault(
            "what this generation block wrote is in a text that was written "
            f"{how}, so its place is not known; write the result of a macro or set block with "
            "generation tags as it is and once, without filters or +",
            self._lines[serial],
        )


def joined(pieces: Sequence[str]) -> str:
    """Join pieces of output; the text is a ``MarkedText`` if a piece holds marks."""
    text = "".join(pieces)
    places: list[tuple[int, int, bool]] = []
    offset = 0
    for piece in pieces:
        if type(piece) is Mark:
            places.append((offset, piece.serial, piece.opens))
        elif type(piece) is MarkedText:
            places.extend((offset + at, serial, opens) for at, serial, opens in piece.places)
        offset += len(piece)
    if not places:
        return text
    marked = MarkedText(text)
    marked.places = tuple(places)
    return marked
