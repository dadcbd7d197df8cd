"""What happens when a file has an oddity: each is a test, and together they are a README table.

A test is decorated with what a user would say of the file, and what comes of it; its body proves
the latter. ``python -m tests.odd_files.table`` prints the table.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

SECTIONS = ("JSON lines", "Parquet", "Other formats", "Directories", "Bad rows", "Indexes")

Test = TypeVar("Test", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Odd:
    """An oddity: the section of the table, what a file has, and what happens then."""

    section: str
    has: str
    happens: str


ODD: dict[Odd, None] = {}


def odd(section: str, has: str, happens: str) -> Callable[[Test], Test]:
    """Note what a test proves.

    Args:
        section: one of ``SECTIONS``.
        has: continues "My file has ...", in lower case, without a full stop.
        happens: says what comes of it, likewise.
    """
    if section not in SECTIONS:
        raise ValueError(f"section must be one of {', '.join(SECTIONS)}, got {section!r}")
    if "|" in has + happens or "\n" in has + happens:
        raise ValueError(f"a cell of the table holds neither | nor a line end, got {has!r}")
    ODD[Odd(section, has, happens)] = None
    return lambda test: test


def table() -> str:
    """Give the table of all oddities, section by section, in the order of their tests."""
    for module in sorted(Path(__file__).parent.glob("test_*.py")):
        importlib.import_module(f"tests.odd_files.{module.stem}")
    rows = ["| my file has … | what happens |", "|---|---|"]
    for section in SECTIONS:
        found = [each for each in ODD if each.section == section]
        if found:
            rows.append(f"| **{section}** | |")
            rows += [f"| {each.has} | {each.happens} |" for each in found]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    from tests.odd_files.table import table as of_all  # the tests know this module by its name

    print(of_all(), end="")
