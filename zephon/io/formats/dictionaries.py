"""Dictionary columns whose numbers point beyond their dictionary, as those of damaged files do.

Arrow makes such columns without a look, and later raises from whatever looks at a value first.
"""

from __future__ import annotations

import functools

import pyarrow as pa


def check_dictionaries(table: pa.Table) -> None:
    """Check the columns of a table that hold dictionaries, at any depth; others cost nothing.

    Raises:
        ValueError: a value is numbered beyond its dictionary; names the column.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _holds_dictionary(column.type):
            for chunk in column.chunks:
                _check(name, chunk)


@functools.lru_cache(maxsize=1024)
def _holds_dictionary(dtype: pa.DataType) -> bool:
    if isinstance(dtype, pa.BaseExtensionType):
        return _holds_dictionary(dtype.storage_type)
    if pa.types.is_dictionary(dtype):
        return True
    return any(_holds_dictionary(dtype.field(place).type) for place in range(dtype.num_fields))


def _check(name: str, array: pa.Array) -> None:
    if not _holds_dictionary(array.type):
        return
    if isinstance(array, pa.ExtensionArray):
        _check(name, array.storage)
    elif isinstance(array, pa.DictionaryArray):
        numbers = array.indices.drop_null().to_numpy(zero_copy_only=False)
        size = len(array.dictionary)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < size:
            raise ValueError(f"column {name!r} has a value beyond the {size} of its dictionary")
    elif isinstance(array, pa.StructArray):
        for inner in array.flatten():  # null structs hide what lies under them
            _check(name, inner)
    elif isinstance(array, pa.MapArray):
        _check(name, array.keys)
        _check(name, array.items)
    else:
        _check(name, array.flatten())  # type: ignore[attr-defined]  # lists of all kinds
