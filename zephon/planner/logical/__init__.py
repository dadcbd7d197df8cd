"""A pipeline is a chain of frozen nodes: one a call, source at the bottom, each holding its input.

A node holds what the call said and checks it; what rules must know about a node is a fact on its
class. ``how`` names the fields that change speed alone: they are no part of the recipe. Read
``node``, then the others in the order of a pipeline: ``read``, ``columns``, ``functions``,
``custom``, ``tokenize``, ``reorder``, ``pack``, ``batch``.
"""

from zephon.planner.logical.batch import Batch, MapBatch, Take
from zephon.planner.logical.columns import Columns
from zephon.planner.logical.custom import CustomOp, Stateful
from zephon.planner.logical.functions import (
    DecodeText,
    ExpandChat,
    InPython,
    MapTransform,
    Materialize,
    NormalizeChat,
    RowFunction,
)
from zephon.planner.logical.node import Measure, Node
from zephon.planner.logical.pack import PackFlat, PackSequences
from zephon.planner.logical.read import Fetch, Prefetch, ReadComponent
from zephon.planner.logical.reorder import EnsureMixture, Shuffle
from zephon.planner.logical.tokenize import MakesTokens, Tokenize
from zephon.planner.logical.tokenize_chat import TokenizeChat

__all__ = [
    "Batch",
    "Columns",
    "CustomOp",
    "DecodeText",
    "EnsureMixture",
    "ExpandChat",
    "Fetch",
    "InPython",
    "MakesTokens",
    "MapBatch",
    "MapTransform",
    "Materialize",
    "Measure",
    "Node",
    "NormalizeChat",
    "PackFlat",
    "PackSequences",
    "Prefetch",
    "ReadComponent",
    "RowFunction",
    "Shuffle",
    "Stateful",
    "Take",
    "Tokenize",
    "TokenizeChat",
]
