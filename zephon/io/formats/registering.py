"""The formats that are known, by name; a program may add its own.

A format reaches other processes with the datasets of it: their pickle names its class, so that its
module is imported there. Whoever opens a dataset by the name of a format imports that module first.
"""

from __future__ import annotations

from zephon.errors import PlanError
from zephon.io.formats.file_format import FileFormat
from zephon.io.formats.format import Format

FORMATS: dict[str, Format] = {}
FILE_FORMATS: dict[str, FileFormat] = {}  # those that ``fmt`` may name


def register(made: Format) -> None:
    """Make a format known by its ``kind``; one of the same class and kind takes its place.

    Args:
        made: an instance of a class below ``FileFormat``, such as ``RecordFormat``.

    Raises:
        PlanError: it is none, or its name or a suffix of its files is another format's.
    """
    if not isinstance(made, Format):
        raise PlanError(
            f"register: a format must be an instance of a class below FileFormat, got {made!r}; "
            f"pass MyFormat()"
        )
    kind, suffixes = made.kind, made.suffixes
    if not isinstance(kind, str) or not kind.isidentifier():
        raise PlanError(f"register: kind must be a name of letters, got {kind!r}; rename it")
    known = FORMATS.get(kind)
    if known is not None and type(known).__qualname__ != type(made).__qualname__:
        raise PlanError(f"register: kind {kind!r} is that of {type(known).__name__}; rename it")
    for suffix in suffixes:
        if not suffix.startswith(".") or suffix != suffix.lower():
            raise PlanError(
                f"register: a suffix must be in lower case after a dot, got {suffix!r}; write it "
                f"as '.srt'"
            )
        for other in FILE_FORMATS.values():
            if other.kind != kind and other.suffixes and suffix.endswith(other.suffixes):
                raise PlanError(
                    f"register: files that end in {suffix!r} are {other.kind}; leave suffixes "
                    f"empty and name it in further_suffixes, which counts where fmt={kind!r} is "
                    f"passed"
                )
    FORMATS[kind] = made
    if isinstance(made, FileFormat):
        FILE_FORMATS[kind] = made


def registered(*made: Format) -> dict[str, Format]:
    """Register formats; give all that are."""
    for each in made:
        register(each)
    return FORMATS


def suffixes_by_kind() -> dict[str, tuple[str, ...]]:
    """Give the suffixes of files of each format, for those that ``fmt`` need not name."""
    return {kind: known.suffixes for kind, known in FILE_FORMATS.items() if known.suffixes}


def yielding_kinds() -> set[str]:
    """Name the formats whose files are no data beside those of others."""
    return {kind for kind, known in FILE_FORMATS.items() if known.gives_way}
