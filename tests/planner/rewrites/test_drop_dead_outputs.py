"""Tokenize builds what is seen: no payload below a packer, no mask that follows from lengths."""

from dataclasses import replace

import pytest

from tests.planner.plans import batch, mix, pack, pack_sequences, shuffle, size_of, tokenize
from zephon.errors import OptimizerError
from zephon.planner.logical import DecodeText, MapTransform, RowFunction, Stateful
from zephon.planner.logical.custom import CustomOp
from zephon.planner.rewrites.drop_dead_outputs import drop_dead_outputs
from zephon.planner.tree import transform_up
from zephon.planner.verify import verify

KEPT = tokenize(preserve_upstream_payload=True, add_attention_mask=False)


def mapped(below):
    return MapTransform(input=below, functions=(RowFunction(function=size_of),))


LOOKS = {
    "map_transform": mapped,
    "decode_text": lambda below: DecodeText(input=below),
    "add_op": lambda below: CustomOp(input=below, name="op", process_many=size_of),
    "stateful_transform": lambda below: Stateful(
        input=below, name="sum", init_state=int, push=size_of
    ),
    "ensure_mixture": lambda below: mix(below, weight_by="function", weight_function=size_of),
}


def test_a_mask_of_ones_is_implied():
    assert drop_dead_outputs(batch(pack())) == batch(pack(tokenize(mask_implied=True)))


def test_payload_that_a_packer_drops_is_not_kept():
    plan = pack(tokenize(preserve_upstream_payload=True, add_attention_mask=False))
    assert drop_dead_outputs(plan) == pack(tokenize(add_attention_mask=False))


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
@pytest.mark.parametrize("between", [lambda below: below, shuffle], ids=["next", "behind shuffle"])
def test_payload_that_a_step_before_the_packer_looks_at_stays(look, between):
    plan = batch(pack(look(between(KEPT))))
    assert drop_dead_outputs(plan) is plan


@pytest.mark.parametrize("look", [LOOKS["map_transform"], LOOKS["stateful_transform"]])
def test_what_stands_behind_the_packer_sees_packed_rows_only(look):
    dropped = tokenize(add_attention_mask=False)
    assert drop_dead_outputs(look(pack(KEPT))) == look(pack(dropped))


def test_a_packer_that_measures_rows_looks_at_them_too():
    plan = batch(pack_sequences(KEPT, length_fn=size_of))
    assert drop_dead_outputs(plan) is plan


def test_taking_rows_away_from_a_step_that_looks_at_them_is_caught():
    plan = batch(pack(mapped(KEPT)))

    def forget(node):
        kept = getattr(node, "preserve_upstream_payload", False)
        return replace(node, preserve_upstream_payload=False) if kept else node

    with pytest.raises(OptimizerError, match="forget: the plan had steps that see no whole rows"):
        verify("forget", plan, transform_up(plan, forget))


def test_payload_that_reaches_the_top_stays():
    plan = batch(tokenize(preserve_upstream_payload=True, add_attention_mask=False))
    assert drop_dead_outputs(plan) is plan


def test_a_mask_over_padding_is_built():
    plan = tokenize(padding="max_length", max_length=4)
    assert drop_dead_outputs(plan) is plan
