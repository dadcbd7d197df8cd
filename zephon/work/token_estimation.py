"""Mixtures by tokens, by an estimate: what a mean draw of each dataset costs in tokens.

A ratio is tokens per byte, where a dataset's bytes are its decoded bytes. It is given, or measured
once, when a run begins, on a sample of rows (calibration.py, sampling.py): a function of the data,
the seed and the tokenizer alone, so that every rank that measures gets the same number. Costs are
part of the recipe, and a checkpoint carries them. Where shares must be exact, use
``mixture_unit="tokens"`` instead: it needs no estimate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import PlanError, nearest
from zephon.work.calibration import ChoosingCount, Count, Extent, measure, row_bytes
from zephon.work.finite import finite_float, whole_int

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

__all__ = [
    "DEFAULT_FALLBACK_TOKENS_PER_BYTE",
    "ChoosingCount",
    "Count",
    "PerShardTokenCost",
    "TokenEstimation",
    "TokenRatio",
    "mean_cost",
    "prime_token_ratios",
]

CALL = "TokenEstimation"
DEFAULT_FALLBACK_TOKENS_PER_BYTE = 0.25
LEAST_COVERAGE = 0.5


@dataclass(frozen=True, slots=True)
class TokenEstimation:
    """Let the weights of a mixture mean tokens, by an estimate of the tokens in a mean row.

    primer: "measure", tokens per byte of every dataset, or tokens per byte by dataset; a dataset
        that the mapping leaves out is measured.
    measure: counts the tokens of a whole row, instead of the pipeline's tokenizer; for images, say.
    calibration_samples: rows that are counted of each dataset, about; all, if it has no more.
    calibration_shards_min, calibration_shards_max: shards that these are drawn from. The most,
        unless row groups are so large that reading fewer pays: then as many as differ.
    fallback_tokens_per_byte: for a dataset of which less than half of these rows can be read.

    Raises:
        PlanError: an argument cannot be; the message names it.

    >>> TokenEstimation(primer={"code": 0.4}).given_ratio("code")
    0.4
    """

    primer: str | float | Mapping[str, float] = field(default="measure", hash=False)
    measure: Callable[[Any], int] | None = None
    calibration_samples: int = 2048
    calibration_shards_min: int = 4
    calibration_shards_max: int = 16
    fallback_tokens_per_byte: float = DEFAULT_FALLBACK_TOKENS_PER_BYTE

    def __post_init__(self) -> None:
        object.__setattr__(self, "primer", _primer(self.primer))
        if self.measure is not None and not callable(self.measure):
            raise PlanError(
                f"{CALL}: measure must be a function from a row to its number of tokens, got "
                f"{self.measure!r}; leave it out to count with the pipeline's tokenizer"
            )
        for name in ("calibration_samples", "calibration_shards_min", "calibration_shards_max"):
            object.__setattr__(self, name, _positive(name, getattr(self, name)))
        least, most = self.calibration_shards_min, self.calibration_shards_max
        if least > most:
            raise PlanError(
                f"{CALL}: calibration_shards_min={least} must not be above "
                f"calibration_shards_max={most}; set both"
            )
        ratio = _ratio("fallback_tokens_per_byte", self.fallback_tokens_per_byte)
        object.__setattr__(self, "fallback_tokens_per_byte", ratio)

    def given_ratio(self, name: str) -> float | None:
        """Give the ratio that the primer says for a dataset; None if it is to be measured."""
        if isinstance(self.primer, Mapping):
            return self.primer.get(name)
        return None if isinstance(self.primer, str) else self.primer

    def validate_for(self, names: Iterable[str]) -> None:
        """Check that the primer names no other datasets than these.

        Raises:
            PlanError: names the one that does not exist, and the nearest that does.
        """
        known = list(names)
        for name in self.primer if isinstance(self.primer, Mapping) else ():
            if name not in known:
                raise PlanError(
                    f"{CALL}: primer names {name!r}, but no dataset has that name; "
                    f"{nearest(name, known)}"
                )


@dataclass(frozen=True, slots=True)
class TokenRatio:
    """Tokens per byte of a dataset, and where the number comes from.

    measured_rows: rows that were counted. coverage: which share of the rows asked for that is.
    how: "given", "measured", or "fallback".
    """

    tokens_per_byte: float
    measured_rows: int = 0
    coverage: float = 1.0
    how: str = "given"


@dataclass(frozen=True, slots=True, eq=False)
class PerShardTokenCost:
    """Tokens of a mean row of each shard, by a ratio and the shards' bytes.

    row_bytes: decoded bytes of a mean row, shape [shards], float64; 0 for a shard without rows.
    """

    tokens_per_byte: float
    row_bytes: NDArray[np.float64]

    @classmethod
    def of(cls, dataset: Dataset, ratio: TokenRatio) -> PerShardTokenCost:
        """Spread a dataset's decoded bytes over its shards by the sizes of their files."""
        counts = np.asarray(dataset.counts())
        sizes = np.where(counts > 0, np.asarray(dataset.raw_bytes()), 0).astype(np.float64)
        sizes *= row_bytes(dataset) * dataset.total() / max(float(sizes.sum()), 1.0)
        return cls(ratio.tokens_per_byte, sizes / np.maximum(counts, 1))

    def costs(self) -> NDArray[np.float64]:
        """Give the tokens of a mean row, at least 1, shape [shards], float64. New memory."""
        return np.maximum(self.row_bytes * self.tokens_per_byte, 1.0)


def prime_token_ratios(
    estimation: TokenEstimation,
    datasets: Mapping[str, Dataset],
    *,
    seed: int,
    count: Count | None,
) -> dict[str, TokenRatio]:
    """Find the tokens per byte of each dataset: as given, or by counting a sample of its rows.

    Args:
        estimation: what to measure, and how much.
        datasets: those that are read, by name; an empty one is not measured.
        seed: with a dataset's name, decides which of its rows are counted.
        count: counts tokens; None if nothing can be counted. One that is a ``ChoosingCount`` too
            has rows chosen by their sizes, which makes the estimate several times closer.

    Raises:
        PlanError: a dataset must be measured, and nothing can be counted, or not as it must.
        ShardError: a file cannot be read.
    """
    ratios = {}
    for name, dataset in datasets.items():
        given = estimation.given_ratio(name)
        if given is not None:
            ratios[name] = TokenRatio(given)
        elif dataset.total() == 0:
            ratios[name] = TokenRatio(estimation.fallback_tokens_per_byte, how="fallback")
        else:
            ratios[name] = _measured(
                estimation, name, dataset, seed, _checked_count(estimation, name, count)
            )
    return ratios


def mean_cost(
    dataset: Dataset, ratio: TokenRatio, shards: NDArray[np.int64] | None = None
) -> float:
    """Estimate the tokens of a mean draw of a dataset, or of some of its shards; at least 1."""
    return max(1.0, row_bytes(dataset, shards) * ratio.tokens_per_byte)


def _checked_count(estimation: TokenEstimation, name: str, count: Count | None) -> Count:
    """Give what counts rows, or say how to give it."""
    if callable(count):
        return count
    where = f"{CALL}: dataset {name!r} must be measured, and"
    spec = "a function from its name, shards and rows to the tokens of each row"
    if count is not None:
        raise PlanError(f"{where} counting_spec must be a function, got {count!r}; pass {spec}")
    if estimation.measure is not None:
        raise PlanError(
            f"{where} prime() by itself gives measure no rows; run the source in a Pipeline, which "
            f"does so where the run begins, or pass counting_spec=, {spec}"
        )
    raise PlanError(
        f"{where} nothing here makes tokens; run it in a Pipeline with tokenize() or pack_flat(), "
        "or with measure=, or give its tokens per byte as primer="
    )


def _measured(
    estimation: TokenEstimation, name: str, dataset: Dataset, seed: int, count: Count
) -> TokenRatio:
    extent = Extent(
        rows=estimation.calibration_samples,
        least_shards=estimation.calibration_shards_min,
        most_shards=estimation.calibration_shards_max,
    )
    found = measure(name, dataset, extent, seed, count)
    coverage = found.read / found.asked
    if found.tokens_per_byte is not None and coverage >= LEAST_COVERAGE:
        return TokenRatio(found.tokens_per_byte, found.read, coverage, "measured")
    fallback = estimation.fallback_tokens_per_byte
    warnings.warn(
        f"{CALL}: dataset {name!r}: {found.read} of {found.asked} rows could be counted, at least "
        f"half are needed; its tokens are taken to be fallback_tokens_per_byte={fallback:g}; mend "
        "its rows, or give its tokens per byte as primer=",
        RuntimeWarning,
        stacklevel=2,
    )
    return TokenRatio(fallback, found.read, coverage, "fallback")


def _primer(value: object) -> str | float | dict[str, float]:
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise PlanError(f"{CALL}: primer must name datasets by string, got {name!r}")
        return {name: _ratio(f"primer[{name!r}]", each) for name, each in value.items()}
    if isinstance(value, str):
        if value == "measure":
            return value
        raise PlanError(f"{CALL}: primer={value!r} is unknown; {nearest(value, ('measure',))}")
    if isinstance(value, Number) and not isinstance(value, bool):
        return _ratio("primer", value)
    raise PlanError(
        f"{CALL}: primer must be 'measure', tokens per byte, or a mapping from dataset to tokens "
        f"per byte, got {value!r}"
    )


def _ratio(argument: str, value: object) -> float:
    number = finite_float(value)
    if number is None or number <= 0:
        raise PlanError(
            f"{CALL}: {argument} must be tokens per byte, finite and above 0, got {value!r}"
        )
    return number


def _positive(argument: str, value: object) -> int:
    number = whole_int(value)
    if number is None or number < 1:
        raise PlanError(f"{CALL}: {argument} must be a whole number of at least 1, got {value!r}")
    return number
