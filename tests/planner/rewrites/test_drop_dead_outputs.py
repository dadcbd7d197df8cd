"""Tokenize builds what is seen: no payload below a packer, no mask that follows from lengths."""

from tests.planner.plans import batch, pack, tokenize
from zephon.planner.rewrites.drop_dead_outputs import drop_dead_outputs


def test_a_mask_of_ones_is_implied():
    assert drop_dead_outputs(batch(pack())) == batch(pack(tokenize(mask_implied=True)))


def test_payload_that_a_packer_drops_is_not_kept():
    plan = pack(tokenize(preserve_upstream_payload=True, add_attention_mask=False))
    assert drop_dead_outputs(plan) == pack(tokenize(add_attention_mask=False))


def test_payload_that_reaches_the_top_stays():
    plan = batch(tokenize(preserve_upstream_payload=True, add_attention_mask=False))
    assert drop_dead_outputs(plan) is plan


def test_a_mask_over_padding_is_built():
    plan = tokenize(padding="max_length", max_length=4)
    assert drop_dead_outputs(plan) is plan
