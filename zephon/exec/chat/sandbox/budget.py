"""How much one rendering may take, in steps and in characters made; no clock is asked.

So the same row is always rendered or always refused, on any machine under any load. An ordinary
conversation takes some hundred steps; 500 messages of 100 kB take at most a third of what there
is. What takes all of it is refused after some seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_STEPS = 1 << 22
"""A step is an iteration, a call, or ``READ`` characters read or written."""

READ = 9
"""The logarithm of the characters that take one step."""

CASE = 5
"""The same for characters whose case is changed, at worst to three others each."""

ESCAPED = 6
"""Characters at most that one character becomes where HTML's signs are escaped."""

MOST_MADE = 1 << 29
"""Characters that all values made on the way hold together."""

LONGEST_TEXT = 1 << 26
"""Characters that one text holds, the output among them."""

DEEPEST_CALL = 64
"""Macros, blocks and recursive loops that are inside each other."""

OBJECT = 48
"""Characters that an object counts for beside what it holds."""


class TemplateFault(Exception):
    """A template cannot be rendered with these variables.

    problem: what is wrong, without a place. line: the template's, None where it has none.
    """

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem, line)
        self.problem = problem
        self.line = line

    def __str__(self) -> str:
        return self.problem if self.line is None else f"line {self.line}: {self.problem}"


class Budget:
    """What is left of one rendering; every rendering has its own."""

    __slots__ = ("depth", "made", "room", "steps")

    def __init__(self) -> None:
        self.steps = MOST_STEPS
        self.made = MOST_MADE
        self.room = LONGEST_TEXT
        self.depth = 0

    def charge(self, steps: int) -> None:
        """Take steps.

        Raises:
            TemplateFault: there are not that many left.
        """
        self.steps -= steps
        if self.steps < 0:
            raise TemplateFault(f"rendering takes more than {MOST_STEPS:,} steps")

    def charged(self) -> bool:
        """Take one step where a condition is tested; always true."""
        self.charge(1)
        return True

    def scan(self, length: int) -> None:
        """Take the steps of reading a text once."""
        self.charge(1 + (length >> READ))

    def make(self, length: int) -> None:
        """Take what a new text of that length needs, before it is made."""
        if length > LONGEST_TEXT:
            raise TemplateFault(
                f"a text or list the size of {length:,} characters would be made, at most "
                f"{LONGEST_TEXT:,} may be"
            )
        self.made -= length + OBJECT
        self.steps -= 1 + (length >> READ)
        if self.made < 0:
            raise TemplateFault(
                f"rendering makes texts and lists of more than {MOST_MADE:,} characters"
            )
        if self.steps < 0:
            self.charge(0)  # raises

    def check_output(self, pieces: Sequence[str]) -> None:
        """Refuse an output that is too long because of what stands in the template itself.

        Raises:
            TemplateFault: it is.
        """
        if MOST_STEPS - self.steps >= LONGEST_TEXT >> READ:  # fewer steps write no more
            self.make(sum(map(len, pieces)))
