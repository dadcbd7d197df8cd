"""Keys that an object has only because objects of other rows have them.

Parquet holds objects as structs: all of a column have the same keys, and those that were not
written are null. Nothing tells such a null from one that somebody wrote, so a template that prints
an object prints keys that the data never had. Lines of JSON and rows in memory have no such keys.
"""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.source_facts import SourceFacts
from zephon.work.component import Component
from zephon.work.source import WorkSource

_WHOLE = frozenset([str, int, float, bool, type(None)])


def padded_components(source: WorkSource | SourceFacts) -> NDArray[np.bool_]:
    """Say of which components rows may have keys that only other rows were written with.

    A step that makes other rows keeps the component of each, so this holds behind any step. Reads
    no file.

    Returns:
        shape [components]: ``padded_components(source)[rows.refs.component]`` is one a row.
    """
    return np.array([_padded(component) for component in source.components], np.bool_)


def without_null_keys(value: Any) -> Any:
    """Leave out keys whose value is null, in all objects of a value.

    A null in a list stays: no Parquet file has one that was not written.

    Returns:
        the very same object if it has no such key; else a new one, which shares the parts that have
        none. The value itself is not changed.

    >>> row = {"a": None, "b": [None, {"c": None, "d": 1}]}
    >>> without_null_keys(row), without_null_keys(row["b"][0]) is None
    ({'b': [None, {'d': 1}]}, True)
    """
    if isinstance(value, dict):
        made = value
        for name, item in value.items():
            kind = type(item)
            if kind is str:  # as most are: asked first
                continue
            kept = item if kind in _WHOLE else without_null_keys(item)
            if item is not None and kept is item:
                continue
            if made is value:
                made = dict(value)
            if item is None:
                del made[name]
            else:
                made[name] = kept
        return made
    if isinstance(value, list) or type(value) is tuple:
        items = [item if type(item) in _WHOLE else without_null_keys(item) for item in value]
        if all(map(is_, items, value)):
            return value
        return items if isinstance(value, list) else tuple(items)
    return value


def _padded(component: Component) -> bool:
    dataset = component.dataset
    nests = any(field.kind == "other" for field in dataset.seen_fields)
    return dataset.format.pads_objects and nests
