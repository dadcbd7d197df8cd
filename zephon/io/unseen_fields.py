"""Warn of declared fields that nobody has seen: most likely they are misspelt."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence

from zephon.errors import nearest
from zephon.io.fields import LOOKED_AT


def warn_of_unseen(
    dataset: str, declared: Iterable[str], seen: Sequence[str], indexed: Callable[[], Iterable[str]]
) -> None:
    """Warn of each declared field that no row looked at has; its rows would all hold null.

    Args:
        dataset: its name.
        declared: names of fields; "a.b" is seen where "a" is.
        seen: fields of the first rows; none if there is no row.
        indexed: gives those that an index tells of; asked only if it must be.
    """
    known = set(seen)
    unseen = [name for name in declared if not _among(name, known)]
    if not seen or not unseen:
        return
    known.update(indexed())
    for name in unseen:
        if not _among(name, known):
            warnings.warn(
                f"dataset {dataset!r}: schema should name fields that are there, none of the first "
                f"{LOOKED_AT} rows nor an index has {name!r}; {nearest(name, known)}; a row "
                "without it holds null",
                RuntimeWarning,
                stacklevel=4,  # the caller of Dataset.from_path or Dataset.from_dict
            )


def _among(name: str, known: set[str]) -> bool:
    return name in known or name.split(".", 1)[0] in known
