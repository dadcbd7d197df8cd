"""What the package hands out: the public names, and the words that steps take."""

from typing import get_args

from zephon import ops
from zephon.ops import accumulators


def test_every_public_name_is_there():
    assert set(ops.__all__) == {
        "Accumulator",
        "BaseOp",
        "CountingAccumulator",
        "DomainGroups",
        "LossScope",
        "MissingFieldMode",
        "OpContext",
        "OpTraits",
        "PackingAlgorithm",
        "PassthroughAccumulator",
        "ReadyBatch",
        "SpanSource",
        "SpecialTokensMode",
        "StageInfo",
        "pack_meta",
        "spawn_child",
        "tombstone_meta",
        "tombstones_for_record",
    }
    assert all(hasattr(ops, name) for name in ops.__all__)
    assert accumulators.SourceExhaustion


def test_words_are_those_of_the_steps():
    assert get_args(ops.LossScope) == ("all_assistant", "last_span", "after_last_user")
    assert get_args(ops.MissingFieldMode) == ("error", "empty")
    assert get_args(ops.SpanSource) == ("auto", "generation_tags", "prefix_diff")
    modes = {"bos_eos", "bos", "eos", "none", "tokenizer_default"}
    assert set(get_args(ops.SpecialTokensMode)) == modes
    assert {"first_fit", "best_fit", "wrap", "best_fit_wrap"} < set(get_args(ops.PackingAlgorithm))
