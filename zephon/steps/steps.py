"""All calls that describe a pipeline: each builds one node of the plan and returns the pipeline."""

from __future__ import annotations

from zephon.steps.chat import ChatSteps
from zephon.steps.columns import ColumnSteps
from zephon.steps.conversations import ConversationSteps
from zephon.steps.custom import CustomSteps
from zephon.steps.functions import FunctionSteps
from zephon.steps.order import OrderSteps
from zephon.steps.packing import PackingSteps
from zephon.steps.reading import ReadingSteps
from zephon.steps.tokens import TokenSteps


class Steps(
    ReadingSteps,
    ColumnSteps,
    FunctionSteps,
    ConversationSteps,
    CustomSteps,
    TokenSteps,
    ChatSteps,
    OrderSteps,
    PackingSteps,
):
    """A description that grows by calls, one kind of call a base."""
