"""A conversation as one text, and which parts of it the assistant says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from zephon.exec.chat.conversation import Conversation


class Span(NamedTuple):
    """Part of a text: characters [start, stop). message: whose it is; -1: nobody asked."""

    start: int
    stop: int
    message: int = -1


@dataclass(frozen=True, slots=True)
class Marked:
    """A text, and the spans of it that the assistant says, in order; none overlaps another."""

    text: str
    spans: list[Span]


def in_scope(spans: list[Span], scope: str, conversation: Conversation) -> list[Span]:
    """Give the spans that are learned.

    Args:
        spans: all of them, with their messages where the scope is "after_last_user".
        scope: "all_assistant"; "last_span": the last run of spans that touch each other; or
            "after_last_user".
        conversation: that they are of.
    """
    if scope == "after_last_user":
        last = conversation.last_user
        return [span for span in spans if span.message > last]
    if scope == "last_span":
        first = len(spans) - 1
        while first > 0 and spans[first - 1].stop == spans[first].start:
            first -= 1
        return spans[max(first, 0) :]
    return spans
