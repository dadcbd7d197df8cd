"""Let a function of the user, or the length of a field, say how much each row counts.

The one loop over records of a plan without maps. A function costs what it does itself, and the row
that is made for it; the length of a column that the plan reads anyway costs no Python a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from zephon.errors import told
from zephon.exec.morsel import Morsel, number_view
from zephon.exec.operator import Operator, RowError
from zephon.exec.operators.whole_rows import each_row
from zephon.planner import physical

_MOST = int(np.iinfo(np.int64).max)


class MeasureRowsOp(Operator):
    """Adds a measure to each row: its length, an integer, or its weight, as the bits of a float64.

    A function gets the row as a dict of its own: what was read, and over it what earlier steps
    made. Without one a field is measured: a whole number as it is, anything else by its length.
    """

    def __init__(self, step: physical.MeasureRows) -> None:
        """Keep what to measure, and under which name."""
        self._step = step
        self.label = "length_fn" if step.name == "length" else "weight_by"

    def run(self, rows: Morsel) -> Morsel:
        """Return the rows with one more measure; raises what the first bad row raises."""
        step = self._step
        found = None if step.function is not None else self._column_lengths(rows)
        if found is None:
            each = each_row(rows, step.token_fields, step.masks, step.container)
            values = [self._measured(payload, row) for row, payload in enumerate(each)]
            found = np.array(values, np.int64 if step.name == "length" else np.float64)
        elif step.name == "weight":
            found = found.astype(np.float64)
        return replace(rows, measures={**rows.measures, step.name: found.view(np.int64)})

    def _column_lengths(self, rows: Morsel) -> NDArray[np.int64] | None:
        """Measure a field that is a column here; None if it is none."""
        if self._step.field not in rows.columns.schema.names:
            return None
        column = rows.columns.column(self._step.field)
        if pa.types.is_large_list(column.type):
            return np.diff(number_view(column).offsets)
        return pc.call_function("utf8_length", [column]).to_numpy().astype(np.int64)

    def _measured(self, payload: Any, row: int) -> int | float:
        function = self._step.function
        if function is None:
            return self._checked(self._length_of_field(payload, row), row)
        try:
            value = function(payload)
        except Exception as exc:  # the function is the user's, and so is what it raises
            problem = f"the function raised {told(exc)}"
            raise RowError(row, problem, "mend the function or the row") from exc
        return self._checked(value, row)

    def _length_of_field(self, payload: Any, row: int) -> Any:
        field = self._step.field
        if not isinstance(payload, Mapping):
            problem = f"a row with a field {field!r} was wanted, got a {type(payload).__name__}"
            raise RowError(row, problem, "mend or remove the row")
        if field not in payload:
            there = ", ".join(str(name) for name in list(payload)[:20]) or "no fields"
            problem = f"no field {field!r}; the row has {there}"
            raise RowError(row, problem, "name another field, or mend the row")
        value = payload[field]
        if isinstance(value, Real) and not isinstance(value, bool):
            return value
        shape = getattr(value, "shape", None)
        if shape is not None:
            return value.item() if not len(shape) else int(shape[0])
        if isinstance(value, str | bytes | list | tuple) or hasattr(value, "__len__"):
            return len(value)
        problem = f"field {field!r} must hold a whole number or a list, got {value!r:.80}"
        raise RowError(row, problem, "name another field, or mend the row")

    def _checked(self, value: Any, row: int) -> int | float:
        """Refuse what is no length, or no weight."""
        if self._step.name == "length":
            if isinstance(value, Integral) and not isinstance(value, bool):
                number = int(value)
                if 0 <= number <= _MOST:
                    return number
            wanted = "a length must be a whole number of at least 0"
        else:
            if isinstance(value, Real | np.number) and not isinstance(value, bool):
                number = float(value)
                if number >= 0 and math.isfinite(number):
                    return number
            wanted = "a weight must be a finite number of at least 0"
        what = "the function" if self._step.function is not None else f"field {self._step.field!r}"
        raise RowError(row, f"{wanted}, got {value!r:.80} from {what}", "mend it or the row")
