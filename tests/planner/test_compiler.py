"""Compiling: rules keep their promises, one pass is enough, and a broken rule is named."""

from dataclasses import replace

import polars as pl
import pyarrow as pa
import pytest

from tests.planner.plans import (
    batch,
    fetch,
    mix,
    pack,
    pack_sequences,
    sample_plans,
    shuffle,
    size_of,
    token_lists,
    tokenize,
)
from tests.planner.typed_plans import columns
from zephon.errors import OptimizerError
from zephon.io.fields import Column
from zephon.planner.compiler import compile_plan
from zephon.planner.fusions import FUSIONS
from zephon.planner.logical import Columns, CustomOp, Fetch, MapTransform, RowFunction
from zephon.planner.physical import (
    AssembleBatch,
    AssembleRows,
    CallGroups,
    CallRows,
    FetchRows,
    JoinSplits,
    KeepMixture,
    MeasureRows,
    PackRows,
    PartSplits,
    ReorderWindows,
    Segment,
    ShuffleUnits,
    StackRows,
    TokenizeColumn,
)
from zephon.planner.rewrites import REWRITES
from zephon.planner.rewrites.fuse_columns import fuse_columns
from zephon.planner.tree import source_first, transform_up

PLANS = sample_plans()


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_an_optimized_plan_is_left_alone(plan):
    optimized = compile_plan(plan).optimized
    for rule in REWRITES:
        assert rule(optimized) is optimized
    physical = compile_plan(plan).physical
    for fusion in FUSIONS:
        assert fusion(physical) is physical


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_rules_keep_the_fields_that_leave_the_plan(plan):
    assert compile_plan(plan).optimized.outputs() == plan.outputs()


def test_the_main_job_is_one_segment_one_policy_one_assembly():
    nodes = source_first(compile_plan(batch()).physical)
    assert [type(n) for n in nodes] == [Segment, PackRows, AssembleBatch]
    assert [type(s) for s in nodes[0].steps] == [FetchRows, TokenizeColumn]


def test_without_fusions_every_step_stands_alone():
    nodes = source_first(compile_plan(batch(), fusions=()).physical)
    kinds = [Segment, Segment, PackRows, AssembleRows, StackRows]
    assert [type(n) for n in nodes] == kinds


# Policies


def physical_of(plan):
    """Compile a plan; give its physical nodes, each without its input."""
    return [replace(node, input=None) for node in source_first(compile_plan(plan).physical)]


def policies_of(plan):
    others = Segment | AssembleBatch | AssembleRows | StackRows
    return [node for node in physical_of(plan) if not isinstance(node, others)]


def measures_of(plan):
    segments = [node for node in physical_of(plan) if isinstance(node, Segment)]
    return [step for node in segments for step in node.steps if isinstance(step, MeasureRows)]


def layout_of(plan):
    return source_first(compile_plan(plan).physical)[-1].layout


def test_a_packing_call_hands_its_arguments_on():
    node = pack(
        algorithm="best_fit_decreasing", pad_token_id=0, candidate_pool_size=5,
        max_candidate_age=9, max_sequences_per_bin=3, min_sequence_length=2,
        domains=(("prose",),),
    )  # fmt: skip
    assert policies_of(batch(node)) == [
        PackRows(
            algorithm="best_fit_decreasing",
            max_length=16,
            candidate_pool_size=5,
            max_candidate_age=9,
            max_sequences_per_bin=3,
            min_sequence_length=2,
            domains=(("prose",),),
        )
    ]
    node = pack(algorithm="first_fit", pad_token_id=0, num_bins=7, flush_strategy="fullest")
    assert policies_of(batch(node)) == [
        PackRows(algorithm="first_fit", max_length=16, num_bins=7, flush_strategy="fullest")
    ]


def test_policies_stand_in_the_order_of_the_calls_and_know_their_place():
    """Two shuffles with one seed must not be the same: their places differ."""
    plan = shuffle(pack(mix(tokenize(shuffle())), shuffle_strategy="random", shuffle_seed=5))
    found = policies_of(batch(plan))
    kinds = [ShuffleUnits, KeepMixture, ReorderWindows, PackRows, ShuffleUnits]
    assert [type(node) for node in found] == kinds
    assert [node.stage for node in found if hasattr(node, "stage")] == [0, 2, 3]
    assert found[2] == ReorderWindows(order="random", seed=5, by_length=False, stage=2)


def test_windows_are_reordered_with_seed_zero_where_none_is_given():
    (windows, _) = policies_of(batch(pack(shuffle_strategy="length")))
    assert windows == ReorderWindows(order="length", seed=0, by_length=False, stage=0)
    (windows, _) = policies_of(
        batch(pack_sequences(shuffle_strategy="length", length_fn=size_of, num_bins=2))
    )
    assert windows == ReorderWindows(order="length", seed=0, by_length=True, stage=0)


def test_steps_without_memory_run_below_all_policies():
    nodes = physical_of(batch(pack(tokenize(shuffle()))))
    assert [type(node) for node in nodes] == [Segment, ShuffleUnits, PackRows, AssembleBatch]
    assert [type(step) for step in nodes[0].steps] == [FetchRows, TokenizeColumn]


SPLIT = {"split_long_samples": True, "max_length": 7}


@pytest.mark.parametrize("before", [shuffle(), mix(fetch(), weight_by="samples")])
def test_splits_stay_together_in_what_stands_before_the_split(before):
    plan = shuffle(pack(shuffle(tokenize(before, **SPLIT))))
    found = [type(node) for node in policies_of(batch(plan))]
    first = ShuffleUnits if before == shuffle() else KeepMixture
    assert found == [JoinSplits, first, PartSplits, ShuffleUnits, PackRows, ShuffleUnits]
    stages = [node.stage for node in policies_of(batch(plan)) if hasattr(node, "stage")]
    assert stages == ([0, 1, 3] if before == shuffle() else [1, 3])


@pytest.mark.parametrize("plan", [shuffle(tokenize(**SPLIT)), tokenize(shuffle())])
def test_splits_are_not_joined_where_nothing_could_part_them(plan):
    assert [type(node) for node in policies_of(batch(pack(plan)))] == [ShuffleUnits, PackRows]


# Measures


def test_a_function_measures_rows_in_a_segment():
    plan = pack_sequences(tokenize(preserve_upstream_payload=True), length_fn=size_of)
    assert measures_of(batch(plan)) == [
        MeasureRows(
            name="length",
            function=size_of,
            field=None,
            token_fields=("input_ids",),
            masks=("attention_mask",),
            container="list",
        )
    ]
    (packer,) = policies_of(batch(plan))
    assert packer.by_length
    fetch_step = physical_of(batch(plan))[0].steps[0]
    assert fetch_step.payload


def test_before_tokenize_a_function_sees_the_row_alone():
    plan = tokenize(mix(fetch(), weight_by="function", weight_function=size_of))
    (measure,) = measures_of(plan)
    assert (measure.name, measure.token_fields, measure.masks) == ("weight", (), ())
    kinds = [type(step) for node in physical_of(plan) for step in getattr(node, "steps", ())]
    assert kinds == [FetchRows, MeasureRows, TokenizeColumn]


def test_what_the_tokens_tell_is_not_measured():
    plan = pack(mix(token_lists(), weight_by="field", weight_field="tokens"), tokens_field="tokens")
    assert measures_of(batch(plan)) == []
    assert policies_of(batch(plan))[0].weight_by == "tokens"
    for weight_by in ("tokens", "samples"):
        assert measures_of(batch(pack(mix(weight_by=weight_by)))) == []
        assert policies_of(batch(pack(mix(weight_by=weight_by))))[0].weight_by == weight_by


def test_a_field_is_measured_by_name():
    plan = pack(mix(weight_by="field", weight_field="url"))
    (measure,) = measures_of(batch(plan))
    assert (measure.name, measure.field, measure.function) == ("weight", "url", None)
    assert policies_of(batch(plan))[0].weight_by == "weight"


def test_the_same_weight_is_measured_once():
    by = {"weight_by": "function", "weight_function": size_of}
    assert len(measures_of(batch(pack(mix(mix(**by), **by))))) == 1
    tokens = token_lists()
    plan = pack(
        mix(mix(tokens, weight_by="field", weight_field="tokens"), **by), tokens_field="tokens"
    )
    assert len(measures_of(batch(plan))) == 1


# Layouts


def test_the_layout_says_how_rows_are_made():
    flat = layout_of(batch(pack(pad_token_id=5)))
    assert (flat.packing, flat.max_length, flat.pad_token_id) == ("flat", 16, 5)
    assert (flat.positions, flat.payload, flat.pack_payloads) == (True, False, None)
    beside = layout_of(batch(pack_sequences(pack_payloads="numpy_array")))
    assert (beside.packing, beside.max_length, beside.pad_token_id) == ("sequences", 16, None)
    assert (beside.positions, beside.pack_payloads) == (False, "numpy_array")
    none = layout_of(batch(shuffle()))
    assert (none.packing, none.max_length, none.pack_payloads) == ("none", None, None)
    assert (none.tokens_field, none.payload) == (None, True)


def test_fields_beside_the_tokens_keep_their_kind():
    columns = (Column(path="mask", kind="bool"), Column(path="score", kind="float32"))
    plan = pack(token_lists(), tokens_field="tokens", aligned=columns, container="np")
    layout = layout_of(batch(plan))
    assert layout.aligned == ("mask", "score")
    assert layout.aligned_kinds == ("bool", "float32")
    assert layout.container == "np"
    made = layout_of(batch(pack(tokenize(padding="max_length", max_length=4, return_tensors="pt"))))
    assert (made.aligned, made.aligned_kinds) == (("attention_mask",), ("int32",))
    assert made.container == "pt"


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"algorithm": "first_fit", "num_bins": 2, "drop_oversized": False}, 16),
        ({"algorithm": "first_fit", "num_bins": 2, "drop_oversized": True}, None),
        ({"algorithm": "first_fit", "num_bins": 2}, None),
        ({"algorithm": "wrap", "drop_oversized": False}, None),
        ({"algorithm": "best_fit_wrap", "drop_oversized": False}, None),
    ],
)
def test_long_documents_are_refused_only_where_that_was_said(changes, most):
    layout = layout_of(batch(pack(pad_token_id=0, **changes)))
    assert (layout.max_document, layout.max_document_call) == (most, "pack_flat")


def test_a_rule_that_loses_a_field_is_named():
    def forget_positions(plan):
        return transform_up(
            plan, lambda n: replace(n, emit_positions=False) if n.call == "pack_flat" else n
        )

    message = r"forget_positions: the plan had fields .* and now has"
    with pytest.raises(OptimizerError, match=message):
        compile_plan(batch(), rewrites=(forget_positions,))


def test_a_rule_that_loses_the_top_is_named():
    def forget_batch(plan):
        return plan.input

    with pytest.raises(OptimizerError, match="forget_batch: the plan had top node 'Batch'"):
        compile_plan(batch(), rewrites=(forget_batch,))


def _changing(change):
    def rule(plan):
        return transform_up(
            plan, lambda n: replace(n, **change(n)) if isinstance(n, Columns) else n
        )

    return rule


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        (lambda n: {"steps": n.steps[1:]}, "column steps"),
        (lambda n: {"steps": (*n.steps[:2][::-1], *n.steps[2:])}, "column steps"),
        (lambda n: {"steps": (*n.steps[:2], n.steps[3], n.steps[2])}, "filters"),
        (lambda n: {"steps": n.steps[:3]}, "filters"),
        (lambda n: {"steps": (*n.steps[:3], *n.steps[3:] * 2)}, "filters"),
        (lambda n: {"made": n.made[:1]}, "fields"),
        (lambda n: {"made": tuple(replace(f, type=pa.int8()) for f in n.made)}, "fields"),
    ],
)
def test_a_rule_that_changes_column_steps_is_named(change, promise):
    plan = columns("with_columns", (pl.col("score") + 1).alias("a"))
    plan = columns("with_columns", (pl.col("score") + 2).alias("b"), below=plan)
    plan = columns("with_columns", (pl.col("score") + 3).alias("score"), below=plan)
    plan = columns("filter", pl.col("score") > 1, below=plan)
    assert compile_plan(batch(plan)).physical
    with pytest.raises(OptimizerError, match=f"rule: the plan had {promise} "):
        compile_plan(batch(plan), rewrites=(fuse_columns, _changing(change)))


def test_a_rule_that_changes_what_another_step_does_is_named():
    def reseed(plan):
        return transform_up(plan, lambda n: replace(n, seed=9) if n.call == "shuffle" else n)

    with pytest.raises(OptimizerError, match="reseed: the plan had steps"):
        compile_plan(batch(shuffle()), rewrites=(reseed,))


def test_parallelism_reaches_segments_and_nothing_below_them():
    plan = compile_plan(batch(pack(tokenize(parallelism=7))))
    (segment,) = [n for n in source_first(plan.physical) if isinstance(n, Segment)]
    assert segment.parallelism == 7
    assert all(not hasattr(step, "parallelism") for step in segment.steps)


def test_functions_and_operators_say_how_many_may_be_inside():
    def maps(below, parallelism):
        function = RowFunction(function=len)
        return MapTransform(input=below, functions=(function,), parallelism=parallelism)

    def inside(plan):
        physical = compile_plan(plan).physical
        steps = [s for n in source_first(physical) if isinstance(n, Segment) for s in n.steps]
        return [s.parallelism for s in steps if isinstance(s, CallRows | CallGroups)]

    below = token_lists()
    assert inside(CustomOp(input=maps(below, 2), name="op", process_many=list, parallelism=3)) == [
        2,
        3,
    ]
    assert inside(maps(maps(below, 1), 7)) == [1]


def test_plans_compare_by_what_they_say():
    assert batch() == batch()
    assert hash(batch()) == hash(batch())
    assert batch() != batch(microbatch_size=3)


def test_a_column_that_two_steps_read_is_read_once_without_what_either_wants_it_without():
    below = token_lists()
    column = Column(path="tokens", kind="tokens")
    weighed = mix(below, weight_by="field", weight_field="tokens", weight_column=column)
    packed = pack(weighed, tokens_field="tokens", without=("loss_mask",))
    (fetched,) = [
        node
        for node in source_first(compile_plan(batch(packed)).optimized)
        if isinstance(node, Fetch)
    ]
    assert fetched.columns == (replace(column, without=("loss_mask",)),)
