"""Operators that see the records of a lane in order, at run time; ``build`` makes them of nodes.

Read ``step`` first, then ``groups``, ``stateful`` and ``row_by_row``.
"""

from zephon.exec.custom_steps.build import custom_step
from zephon.exec.custom_steps.step import CustomStep
from zephon.ops.context import OpServices

__all__ = ["CustomStep", "OpServices", "custom_step"]
