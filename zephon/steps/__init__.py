"""The calls that describe a pipeline, by what they do; ``steps`` joins them.

Read ``description`` first: what every call shares. A call checks its arguments and adds one node.
"""

from zephon.steps.description import whole
from zephon.steps.steps import Steps

__all__ = ["Steps", "whole"]
