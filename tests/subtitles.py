"""The format that the README shows, in a module that other processes can import."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from zephon.io.formats import RecordFormat, register

_README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
_CLASS = re.search(r"^class Subtitles\(.*?(?=^\S)", _README, flags=re.MULTILINE | re.DOTALL)
assert _CLASS is not None, "the README must show class Subtitles"

_names: dict[str, Any] = {"__name__": __name__, "RecordFormat": RecordFormat}
exec(_CLASS[0], _names)
Subtitles: type[RecordFormat] = _names["Subtitles"]

register(Subtitles())
