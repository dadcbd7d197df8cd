"""Words that steps take, as types."""

from __future__ import annotations

from typing import Literal, TypeAlias

LossScope: TypeAlias = Literal["all_assistant", "last_span", "after_last_user"]
MissingFieldMode: TypeAlias = Literal["error", "empty"]
PackingAlgorithm: TypeAlias = Literal[
    "first_fit", "best_fit", "wrap", "best_fit_wrap", "best_fit_decreasing"
]
SpanSource: TypeAlias = Literal["auto", "generation_tags", "prefix_diff"]
SpecialTokensMode: TypeAlias = Literal["bos_eos", "bos", "eos", "none", "tokenizer_default"]
