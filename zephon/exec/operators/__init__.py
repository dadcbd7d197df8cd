"""Stateless steps, one a file: rows in, rows out. They know nothing of lanes or of how they run."""

from zephon.exec.operators.call_groups import CallGroupsOp
from zephon.exec.operators.call_rows import CallRowsOp
from zephon.exec.operators.compute_columns import ComputeColumnsOp
from zephon.exec.operators.fetch_rows import FetchRowsOp
from zephon.exec.operators.measure_rows import MeasureRowsOp
from zephon.exec.operators.tokenize_chat import TokenizeChatOp
from zephon.exec.operators.tokenize_column import TokenizeColumnOp
from zephon.exec.operators.type_columns import TypeColumnsOp

__all__ = [
    "CallGroupsOp",
    "CallRowsOp",
    "ComputeColumnsOp",
    "FetchRowsOp",
    "MeasureRowsOp",
    "TokenizeChatOp",
    "TokenizeColumnOp",
    "TypeColumnsOp",
]
