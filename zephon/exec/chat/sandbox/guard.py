"""What generated code calls where an operation may cost more than one step.

Each gives what Jinja's own operation gives, after taking what it needs from the budget.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from zephon.exec.chat.sandbox.budget import (
    ESCAPED,
    LONGEST_TEXT,
    OBJECT,
    READ,
    Budget,
    TemplateFault,
)
from zephon.exec.chat.sandbox.extents import (
    MOST_BITS,
    NUMBERS,
    SCALARS,
    Extent,
    extent,
    key,
    search_steps,
)
from zephon.exec.chat.sandbox.formats import percent_bounds
from zephon.exec.chat.sandbox.generation import Mark, MarkedText, Marks, joined
from zephon.exec.chat.sandbox.late_values import Late

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
}


class Guard(Budget):
    """The budget of one rendering, and what it wrote."""

    __slots__ = ("begin", "end", "environment", "marks", "variables")

    def __init__(self, environment: SandboxedEnvironment, variables: Mapping[str, Any]) -> None:
        super().__init__()
        self.environment = environment
        self.variables = variables
        self.marks = Marks()
        self.begin = self.marks.begin
        self.end = self.marks.end

    def write(self, value: Any) -> str:
        """Make a value a text that is output, outside of any macro."""
        if type(value) is not str:
            value = self.text(value)
        self.room -= len(value)
        if self.room < 0:
            raise TemplateFault(f"the output has more than {LONGEST_TEXT:,} characters")
        return value

    def wrote(self, *values: Any) -> str:
        """``{{ a + b }}``: what ``added`` and ``write`` do, at once for texts."""
        size = 0
        for value in values:
            if type(value) is not str:
                return self.write(self.added(*values))
            size += len(value)
        self.make(size)
        self.room -= size
        if self.room < 0:
            self.write("")  # raises
        return "".join(values)

    def text(self, value: Any) -> str:
        """Make a value a text; only data can be."""
        kind = type(value)
        if kind is str or kind is Mark or kind is MarkedText:
            return value
        if kind not in SCALARS and not isinstance(value, str):
            self.make(self.walk(value, plain=True).written)
            return self.made_text(str(value))
        return str(value)

    def made_text(self, text: str) -> str:
        """Take what a text needs that is longer than was foreseen."""
        self.make(len(text))
        return text

    def lengthened(self, text: str, length: int) -> str:
        """Take what a text needs that is longer than the one it was made of."""
        if len(text) > length:
            self.make(len(text))
        return text

    def joined(self, pieces: Sequence[str]) -> str:
        """Join what a macro, a filter block or a set block wrote."""
        self.make(sum(map(len, pieces)))
        return joined(pieces)

    def concatenated(self, *values: Any) -> str:
        """``a ~ b``."""
        return self.joined([self.text(value) for value in values])

    def added(self, *values: Any) -> Any:
        """``a + b + c``, from the left."""
        size = 0
        for value in values:
            if type(value) is not str:
                break
            size += len(value)
        else:
            self.make(size)
            return "".join(values)
        total = values[0]
        for value in values[1:]:
            if type(total) in NUMBERS and type(value) in NUMBERS:
                self.charge(1)
            else:
                grown = ESCAPED if isinstance(total, Markup) or isinstance(value, Markup) else 1
                self.make(grown * (_size(total) + _size(value)))
            total = total + value
        return total

    def subtracted(self, left: Any, right: Any) -> Any:
        """``a - b``, which is for sets as well."""
        if type(left) not in NUMBERS:
            self.walk(left)
            self.walk(right)
        made = left - right
        if isinstance(made, set | frozenset):
            raise TemplateFault("the values of a set are in another order each time")
        return made

    def multiplied(self, left: Any, right: Any) -> Any:
        """``a * b``, which repeats texts and lists."""
        if type(left) in NUMBERS and type(right) in NUMBERS:
            if isinstance(left, int) and isinstance(right, int):
                self._number(left.bit_length() + right.bit_length())
            return left * right
        times, many = (left, right) if isinstance(left, int) else (right, left)
        if isinstance(times, int):
            self.make(_size(many) * max(times, 0))
        return left * right

    def power(self, left: Any, right: Any) -> Any:
        """``a ** b``."""
        if isinstance(left, int) and isinstance(right, int) and right > 0:
            self._number(left.bit_length() * right)
        return left**right

    def modulo(self, left: Any, right: Any) -> Any:
        """``a % b``, which fills in texts as well."""
        if isinstance(left, str):
            self.formatted(left, right)
        elif isinstance(left, bytes):
            raise TemplateFault("bytes cannot be filled in with %")
        return left % right

    def formatted(self, text: str, values: Any) -> None:
        """Take what ``text % values`` needs."""
        if isinstance(text, Markup):
            raise TemplateFault("text that was marked safe cannot be filled in with %")
        parts = self.walk(values, plain=True)
        self.charge(len(text))
        self.make(percent_bounds(text, values, parts))

    def _number(self, bits: int) -> None:
        if bits > MOST_BITS:
            raise TemplateFault(f"a whole number would have more than {MOST_BITS} bits")

    def compared(self, how: str, left: Any, right: Any) -> Any:
        """``a == b``, ``a < b`` and the like."""
        if type(left) not in SCALARS and type(right) not in SCALARS:
            if isinstance(left, str) or isinstance(right, str):
                self.scan(min(_size(left), _size(right)))
            else:
                self.walk(left)
        return _COMPARISONS[how](left, right)

    def chained(self, hows: tuple[str, ...], *values: Any) -> Any:
        """``a < b < c``."""
        result = True
        for place, how in enumerate(hows):
            left, right = values[place : place + 2]
            if how in _COMPARISONS:
                result = self.compared(how, left, right)
            else:
                result = self.within(left, right) is (how == "in")
            if not result:
                break
        return result

    def within(self, value: Any, many: Any) -> bool:
        """``a in b``."""
        if isinstance(many, str):
            if isinstance(value, str):
                self.charge(search_steps(len(many), len(value)))
        elif type(many) is dict:
            return key(value) in many
        elif hasattr(many, "__len__"):
            each = 1 + (len(value) >> READ) if isinstance(value, str) else self.walk(value).parts
            self.charge(1 + len(many) * each // 4)
        else:
            return any(value is each or self.compared("eq", value, each) for each in many)
        return value in many

    def sliced(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        """``a[start:stop:step]``."""
        self.make(_size(value))
        return value[start:stop:step]

    def walk(self, value: Any, *, plain: bool = False) -> Extent:
        """Take the steps of visiting every part of a value."""
        if type(value) in SCALARS:
            return Extent(1, 0)
        found = extent(value, plain=plain)
        self.charge(found.parts + (found.letters >> READ))
        return found

    def items(self, values: Any) -> list[Any]:
        """Make a list of what can be iterated; what is made while it is iterated counts there."""
        if type(values) is list:
            self.charge(1 + (len(values) >> 3))
            return values
        if hasattr(values, "__len__"):
            length = len(values)
            self.make(length * (OBJECT if isinstance(values, str) else 8))
        return list(values)

    def late(self, values: Iterator[Any]) -> Late:
        """Let values be made while they are iterated, as Jinja's filters do."""
        return Late(self, values)


def _size(value: Any) -> int:
    """Return the characters of a text; what holds things has eight for each."""
    if isinstance(value, str | bytes):
        return len(value)
    return 8 * len(value) if hasattr(value, "__len__") else 1
