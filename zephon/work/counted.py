"""What the weights of a mixture count, what decides it, and what else must count the same.

"samples", "tokens" exactly, or "estimated tokens", which are tokens to schedules and budgets.
"""

from __future__ import annotations

from zephon.errors import PlanError

COUNTED_BY = {
    "samples": "mixture_unit='samples'",
    "tokens": "mixture_unit='tokens'",
    "estimated tokens": "token_estimation",
}
"""The setting that decides what weights count, for messages."""


def unit_of(counted: str) -> str:
    """Give the unit of what weights count, "samples" or "tokens"."""
    return "samples" if counted == "samples" else "tokens"


def check_unit(what: str, unit: str, counted: str, *, in_tokens: str) -> None:
    """Check that a schedule or a budget has the unit of the mixture.

    Args:
        what: names it and its unit, for the message.
        unit: "samples" or "tokens".
        counted: what the weights of the mixture count.
        in_tokens: how it is written to count tokens.

    Raises:
        PlanError: it has the other one.
    """
    if unit == unit_of(counted):
        return
    advice = f"write {in_tokens}, or let the mixture count samples"
    if unit == "tokens":
        advice = "set mixture_unit='tokens' or give a token_estimation"
    raise PlanError(f"{what}, and the mixture counts {counted} ({COUNTED_BY[counted]}); {advice}")
