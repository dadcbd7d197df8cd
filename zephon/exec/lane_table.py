"""What is written of all lanes as one table: a column of each kind of integers, lane after lane.

So a state costs as many compressions as a lane has kinds of integers, however many lanes there are.
What is written of one lane is a tree: dicts and lists, whose leaves are arrays of integers, or
``Verbatim`` for JSON values that somebody else wrote.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.saved_values import DAMAGE, pack, unpack

Tree = dict[str, Any]
_ABSENT = -1
"""The size of what a lane has nothing of; an empty array has size 0."""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """JSON values that are written as they are."""

    value: Any


def table_of(trees: Mapping[int, Tree]) -> dict[str, Any]:
    """Write trees as JSON values; equal trees give equal values, whatever order they are in.

    What comes back shares nothing with the trees.

    Returns:
        lanes: their numbers, ascending. columns: by the path of a leaf, which of the ``sizes`` it
        has in each lane, and its integers in all. verbatim: by path and lane, JSON values.
    """
    lanes = sorted(trees)
    columns: dict[str, list[NDArray[Any] | None]] = {}
    verbatim: dict[str, dict[str, Any]] = {}

    def gather(number: int, tree: Mapping[str, Any], above: str) -> None:
        for name, value in tree.items():
            if isinstance(value, np.ndarray):
                column = columns.get(above + name)
                if column is None:
                    column = columns[above + name] = []
                if len(column) < number:
                    column.extend([None] * (number - len(column)))
                column.append(value)
            elif isinstance(value, dict):
                gather(number, value, f"{above}{name}/")
            elif isinstance(value, list):
                gather(number, {str(n): each for n, each in enumerate(value)}, f"{above}{name}/")
            else:
                verbatim.setdefault(above + name, {})[str(lanes[number])] = copy.deepcopy(
                    value.value
                )

    for number, lane in enumerate(lanes):
        gather(number, trees[lane], "")
    numbered: dict[tuple[int, ...], int] = {}
    written = {}
    for path in sorted(columns):
        column = columns[path]
        sizes = tuple(_ABSENT if leaf is None else len(leaf) for leaf in column)
        sizes += (_ABSENT,) * (len(lanes) - len(column))
        values = np.concatenate([leaf for leaf in column if leaf is not None])
        written[path] = [numbered.setdefault(sizes, len(numbered)), pack(values)]
    return {
        "lanes": pack(np.array(lanes, np.int64)),
        "sizes": [pack(np.array(sizes, np.int64)) for sizes in numbered],
        "columns": written,
        "verbatim": {path: verbatim[path] for path in sorted(verbatim)},
    }


def trees_of(table: Mapping[str, Any], lanes: Iterable[int] | None = None) -> dict[int, Tree]:
    """Read trees back.

    Args:
        table: what ``table_of`` wrote.
        lanes: which; those that are not there are left out. None: all.

    Raises:
        CheckpointError: its parts do not fit each other.
    """
    try:
        return _trees(table, lanes)
    except DAMAGE as exc:
        raise _damaged(exc) from exc


def _trees(table: Mapping[str, Any], lanes: Iterable[int] | None) -> dict[int, Tree]:
    there = unpack(table["lanes"]).tolist()
    places = {lane: place for place, lane in enumerate(there)}
    if len(places) != len(there):
        raise ValueError("a lane is there twice")
    wanted = there if lanes is None else [lane for lane in lanes if lane in places]
    sizes = [unpack(each) for each in table["sizes"]]
    if any(len(each) != len(there) or (each < _ABSENT).any() for each in sizes):
        raise ValueError("sizes that are not those of its lanes")
    stops = [np.cumsum(np.maximum(each, 0)).tolist() for each in sizes]
    trees: dict[int, Tree] = {lane: {} for lane in wanted}
    for path, (number, text) in table["columns"].items():
        values, above, stop = unpack(text), path.split("/"), stops[number]
        if (stop[-1] if stop else 0) != len(values):
            raise ValueError(f"{path!r:.80} has {len(values)} integers, not those of its lanes")
        size = sizes[number].tolist()
        for lane in wanted:
            place = places[lane]
            if size[place] != _ABSENT:
                last = stop[place]
                _put(trees[lane], above, values[last - size[place] : last])
    for path, of_lanes in table["verbatim"].items():
        for lane in wanted:
            if str(lane) in of_lanes:
                _put(trees[lane], path.split("/"), Verbatim(of_lanes[str(lane)]))
    return {lane: {name: _listed(each) for name, each in trees[lane].items()} for lane in wanted}


def _put(tree: Tree, path: list[str], leaf: NDArray[np.int64] | Verbatim) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise TypeError("a leaf has leaves")
    if path[-1] in tree:
        raise ValueError("a leaf is there twice")
    tree[path[-1]] = leaf


def _listed(tree: Any) -> Any:
    """Turn what is numbered from 0 on into lists."""
    if not isinstance(tree, dict):
        return tree
    found = {name: _listed(each) for name, each in tree.items()}
    if set(found) == {str(n) for n in range(len(found))}:
        return [found[str(n)] for n in range(len(found))]
    return found


def _damaged(exc: BaseException) -> CheckpointError:
    return CheckpointError(
        f"restore: the lanes of the checkpoint are damaged: {type(exc).__name__} "
        f"{exc!s:.200}; restore an earlier one"
    )
