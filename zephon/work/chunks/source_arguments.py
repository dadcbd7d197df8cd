"""What a custom source may say of itself: each check names the member and what came.

All raise PlanError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zephon.errors import PlanError, nearest
from zephon.work.finite import whole_int

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

MOST_ID = 2**31 - 1
"""The largest id of a component or a dataset; columns of 32 bits hold them."""


def checked_ids(member: str, found: Any) -> dict[str, int]:
    """Check the ids of components: unique, not negative; list them in ascending order."""
    if not isinstance(found, Mapping) or not found:
        raise PlanError(
            f"{member} must be a non-empty mapping from component names to ids, got {found!r}"
        )
    owner: dict[int, str] = {}
    for name, number in found.items():
        if not isinstance(name, str) or not name:
            raise PlanError(f"{member}: component names must be non-empty strings, got {name!r}")
        checked = _checked_id(f"{member}[{name!r}]", number)
        if checked in owner:
            raise PlanError(
                f"{member}: ids must be unique, {owner[checked]!r} and {name!r} both have {number}"
            )
        owner[checked] = name
    return {owner[number]: number for number in sorted(owner)}


def checked_datasets(member: str, found: Any) -> dict[int, Dataset]:
    """Check datasets by id: names differ; list them in ascending order of their ids."""
    if not isinstance(found, Mapping) or not found:
        raise PlanError(f"{member} must be a non-empty mapping from ids to datasets, got {found!r}")
    names: dict[str, Dataset] = {}
    for number, dataset in found.items():
        _checked_id(f"{member}: the id {number!r}", number)
        if not (hasattr(dataset, "name") and hasattr(dataset, "counts")):
            raise PlanError(
                f"{member}[{number}] must be a Dataset, got {dataset!r}; make one with "
                "Dataset.from_path(name, path)"
            )
        if names.setdefault(dataset.name, dataset) is not dataset:
            raise PlanError(
                f"{member}: two datasets have the name {dataset.name!r}; give one another name"
            )
    return {int(number): found[number] for number in sorted(found)}


def checked_continues(owner: str, found: Any, names: Mapping[str, int]) -> frozenset[str]:
    """Check the components after whose exhaustion others go on: a frozenset of known names."""
    member = f"{owner}.continues_after_exhaustion()"
    if not isinstance(found, frozenset):
        raise PlanError(f"{member} must be a frozenset of component names, got {found!r}")
    if unknown := sorted(map(str, found - names.keys())):
        raise PlanError(
            f"{member} names {unknown[0]!r}, which is no component; {nearest(unknown[0], names)}"
        )
    return found


def checked_size(member: str, found: Any) -> int | None:
    """Check how many samples a chunk has: a whole number of at least 1, or None."""
    size = whole_int(found)
    if found is not None and (size is None or size < 1):
        raise PlanError(f"{member} must be a whole number of at least 1, or None, got {found!r}")
    return size


def _checked_id(what: str, number: object) -> int:
    checked = whole_int(number)
    if checked is None or not 0 <= checked <= MOST_ID:
        raise PlanError(f"{what} must be a whole number from 0 to 2**31 - 1, got {number!r}")
    return checked
