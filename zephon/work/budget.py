"""Amounts of data: how many tokens or samples, for budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zephon.errors import PlanError, nearest
from zephon.work.counted import check_unit
from zephon.work.finite import finite_float

UNITS = ("samples", "tokens")


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of samples or of tokens, over all lanes.

    Raises:
        PlanError: it is not a finite number above zero.
    """

    count: float
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise PlanError(f"Amount: unit must be 'samples' or 'tokens', got {self.unit!r}")
        number = finite_float(self.count)
        if number is None or number <= 0:
            raise PlanError(
                f"{self.unit}: wanted a finite number above zero, got {self.count!r}; leave the "
                "budget out for no bound"
            )
        object.__setattr__(self, "count", number)

    def __repr__(self) -> str:
        return f"{self.unit}({self.count:g})"


def tokens(count: float) -> Amount:
    """Say how many tokens.

    >>> tokens(60e9)
    tokens(6e+10)
    """
    return Amount(count, "tokens")


def samples(count: float) -> Amount:
    """Say how many samples."""
    return Amount(count, "samples")


def checked_budgets(
    call: str, budget: object, names: Sequence[str], counted: str
) -> dict[str, Amount]:
    """Check a budget for each of some components; a bare number counts samples.

    Args:
        call: whose argument it is, for messages.
        budget: from component to amount, or None.
        names: the components.
        counted: what the weights of the mixture count.

    Raises:
        PlanError: an unknown component, no amount, or a unit that the mixture does not count in.
    """
    if budget is None:
        return {}
    if not isinstance(budget, Mapping):
        raise PlanError(
            f"{call}: budget must map dataset names to amounts, got {budget!r}; write "
            "budget={'a': tokens(60e9)}"
        )
    found = {}
    for name, given in budget.items():
        if name not in names:
            raise PlanError(
                f"{call}: budget names {name!r}, but no dataset has that name; "
                f"{nearest(str(name), names)}"
            )
        try:
            amount = given if isinstance(given, Amount) else Amount(given, "samples")
        except PlanError as exc:
            raise PlanError(f"{call}: budget[{name!r}]: {exc}") from None
        what = f"{call}: budget[{name!r}]={amount!r} counts {amount.unit}"
        check_unit(what, amount.unit, counted, in_tokens="tokens(n)")
        found[name] = amount
    return found
