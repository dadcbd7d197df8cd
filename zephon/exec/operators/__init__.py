"""Stateless steps, one a file: rows in, rows out. They know nothing of lanes or of how they run."""

from zephon.exec.operators.fetch_rows import FetchRowsOp
from zephon.exec.operators.measure_rows import MeasureRowsOp
from zephon.exec.operators.tokenize_column import TokenizeColumnOp

__all__ = ["FetchRowsOp", "MeasureRowsOp", "TokenizeColumnOp"]
