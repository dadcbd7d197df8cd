"""What shuffling, keeping mixtures and packing do with their arguments, and in which order."""

import warnings

import numpy as np
import pytest

from tests.custom_sources import Dealt, numbered
from tests.properties.recipes import source, text_dataset, token_dataset, two_datasets
from zephon import MixtureSpec, Pipeline
from zephon.errors import PlanError
from zephon.ops import DomainGroups

DATASETS = two_datasets()
ALGORITHMS = ("first_fit", "best_fit", "wrap", "best_fit_wrap", "best_fit_decreasing")
WRAP = {"algorithm": "wrap"}
BINS = {"num_bins": 4, "pad_token_id": 0}


def lists(**work):
    return Pipeline(source(DATASETS, **work)).options(runner="inline")


def texts():
    return Pipeline(source([text_dataset("words", 12)])).options(runner="inline")


def shuffle(**changes):
    return lists().shuffle(**changes)


def mix(**changes):
    return lists().ensure_mixture(**changes)


def flat(**changes):
    return lists().pack_flat(**{"max_length": 8, **BINS, **changes})


def sequences(**changes):
    return lists().pack_sequences(**{"max_length": 8, "num_bins": 4, **changes})


def grouped(groups, **changes):
    return flat(homogeneity="group", groups=groups, **changes)


def rows_of(pipe):
    """Give every record's meta and payload as text; arrays and lists alike."""
    return [(str(record.meta), str(record.payload)) for record in pipe]


# What may be said, whether or not it has a meaning

TAKEN = {
    "wrap, oversized kept": ({**WRAP, "drop_oversized": False, "num_bins": None}, WRAP),
    "wrap, flush": ({**WRAP, "flush_strategy": "fullest"}, WRAP),
    "seed without shuffle": ({**BINS, "shuffle_seed": 3}, BINS),
    "oversized dropped": ({**BINS, "drop_oversized": True}, BINS),
    "bins by default fifo": ({**BINS, "flush_strategy": "fifo"}, BINS),
    "default pool": (
        {"algorithm": "best_fit_wrap", "pad_token_id": 0, "candidate_pool_size": 1024},
        {"algorithm": "best_fit_wrap", "pad_token_id": 0},
    ),
    "default age": (
        {
            "algorithm": "best_fit_wrap", "pad_token_id": 0, "candidate_pool_size": 4,
            "max_candidate_age": 32,
        },
        {"algorithm": "best_fit_wrap", "pad_token_id": 0, "candidate_pool_size": 4},
    ),
    "seed 0": (
        {**BINS, "shuffle_strategy": "random", "shuffle_seed": 0},
        {**BINS, "shuffle_strategy": "random"},
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:packing dropped")
@pytest.mark.parametrize("name", TAKEN)
def test_some_arguments_change_nothing(name):
    one, two = (lists().pack_flat(33, **arguments) for arguments in TAKEN[name])
    found = rows_of(one)
    assert found == rows_of(two)
    assert len(found) > 50


@pytest.mark.filterwarnings("ignore:packing dropped")
def test_other_arguments_change_what_they_say():
    """Each is looked at: none of these plans gives the rows of another."""
    plans = [
        BINS,
        {**BINS, "algorithm": "best_fit"},
        {**BINS, "num_bins": 2},
        {**BINS, "num_bins": 2, "flush_strategy": "fullest"},
        {**BINS, "max_sequences_per_bin": 2},
        {**BINS, "min_sequence_length": 12},
        {**BINS, "shuffle_strategy": "random"},
        {**BINS, "shuffle_strategy": "random", "shuffle_seed": 1},
        {**BINS, "shuffle_strategy": "length"},
        {**BINS, "homogeneity": "full"},
        {**BINS, "pad_token_id": 7},
        {**BINS, "emit_positions": False},
        WRAP,
        {**WRAP, "max_sequences_per_bin": 2, "pad_token_id": 0},
        {"algorithm": "best_fit_wrap", "pad_token_id": 0},
        {"algorithm": "best_fit_wrap", "pad_token_id": 0, "candidate_pool_size": 9},
        {
            "algorithm": "best_fit_wrap", "pad_token_id": 0, "candidate_pool_size": 9,
            "max_candidate_age": 9,
        },
        {"algorithm": "best_fit_decreasing", "pad_token_id": 0},
        {"algorithm": "best_fit_decreasing", "pad_token_id": 0, "candidate_pool_size": 9},
    ]  # fmt: skip
    pipes = [lists().pack_flat(33, **arguments) for arguments in plans]
    assert len({pipe.fingerprint() for pipe in pipes}) == len(plans)
    assert len({str(rows_of(pipe)) for pipe in pipes}) == len(plans)


def test_shuffles_differ_by_seed_algorithm_and_size():
    plans = [
        {"buffer_size": 40},
        {"buffer_size": 40, "seed": 1},
        {"buffer_size": 40, "seed": -1},
        {"buffer_size": 40, "seed": 2**70},
        {"buffer_size": 9},
        {"buffer_size": 40, "algorithm": "block"},
        {"buffer_size": 40, "algorithm": "block_warmup"},
        {"buffer_size": 40, "algorithm": "block_warmup", "warmup_growth": 3},
    ]
    straight = rows_of(lists())
    found = [rows_of(shuffle(**arguments)) for arguments in plans]
    assert all(sorted(rows) == sorted(straight) != rows for rows in found)
    assert len({str(rows) for rows in found}) == len(plans)


def test_a_shuffle_holds_8192_unless_told():
    assert shuffle().fingerprint() == shuffle(buffer_size=8192).fingerprint()
    assert shuffle().fingerprint() == shuffle(seed=0, algorithm="streaming").fingerprint()


# Kinds of arguments


def everything(kind, real=float, **more):
    """Make every call with every number that it takes, as one kind of integer."""
    return (
        lists()
        .fetch_parallelism(kind(2), kind(8))
        .prefetch(kind(8), kind(2))
        .shuffle(kind(30), seed=kind(3), warmup_growth=real(1.5), parallelism=kind(2))
        .ensure_mixture(
            max_buffer_size=kind(50), drain_target_ratio=real(0.5), obsolete_drain_rate=real(0.25),
            warn_tolerance=real(1), mixture={"prose": kind(2), "code": kind(1)},
            parallelism=kind(2),
        )
        .pack_flat(
            kind(33), algorithm="best_fit_wrap", max_sequences_per_bin=kind(5),
            min_sequence_length=kind(2), shuffle_strategy="random", shuffle_seed=kind(5),
            candidate_pool_size=kind(8), max_candidate_age=kind(20), pad_token_id=kind(3),
            parallelism=kind(2),
        )
        .batch(kind(2))
    )  # fmt: skip


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_integers_of_numpy_are_integers(kind):
    one, two = everything(int), everything(kind, np.float64)
    assert one.fingerprint() == two.fingerprint()
    assert one.explain() == two.explain()
    assert [str(b.records) for b in one] == [str(b.records) for b in two]


@pytest.mark.parametrize("kind", [np.int64, np.uint16])
def test_integers_of_numpy_count_bins_and_rows(kind):
    one = lists().pack_sequences(33, num_bins=4, max_sequences_per_bin=3)
    two = lists().pack_sequences(kind(33), num_bins=kind(4), max_sequences_per_bin=kind(3))
    assert one.fingerprint() == two.fingerprint()
    with pytest.raises(PlanError, match=r"num_bins must be .* at least 1, got 0"):
        flat(num_bins=kind(0))


@pytest.mark.filterwarnings("ignore:packing dropped")
@pytest.mark.parametrize("parallelism", [None, 1, 3, np.int64(2)])
@pytest.mark.parametrize("placement", ["auto", "local"])
def test_parallelism_and_placement_change_no_byte(parallelism, placement):
    def run(runner, **settings):
        pipe = lists().shuffle(30, **settings).ensure_mixture(max_buffer_size=40, **settings)
        pipe.pack_flat(33, num_bins=3, pad_token_id=0, **settings).shuffle(5, **settings)
        settings.pop("parallelism", None)
        pipe.batch(2, drop_last=False, **settings).options(runner=runner)
        return pipe.fingerprint(), [str(batch.records) for batch in pipe]

    wanted = run("inline")
    assert run("threads", parallelism=parallelism, placement=placement) == wanted


# Which call may follow which

PIPES = {
    "batch": lambda: lists().batch(2),
    "pack_flat": flat,
    "pack_sequences": sequences,
}
CALLS = {
    "shuffle": lambda p: p.shuffle(4),
    "ensure_mixture": lambda p: p.ensure_mixture(),
    "pack_flat": lambda p: p.pack_flat(8, **BINS),
    "pack_sequences": lambda p: p.pack_sequences(8, num_bins=2),
    "tokenize": lambda p: p.tokenize(tokenizer_id="tok", field="text"),
    "batch": lambda p: p.batch(2),
}
TOO_LATE = [
    *(("batch", call) for call in CALLS),
    *(("pack_flat", call) for call in ("pack_flat", "pack_sequences", "tokenize")),
    *(("pack_sequences", call) for call in ("pack_flat", "pack_sequences", "tokenize")),
]


@pytest.mark.parametrize(("after", "call"), TOO_LATE)
def test_a_call_that_comes_too_late_is_refused_and_changes_nothing(after, call):
    pipe = PIPES[after]()
    before = pipe.explain()
    wanted = (
        f"{call}: it was called before; call it once"
        if after == call
        else f"{call}: it cannot come after {after}; call {call} earlier"
    )
    with pytest.raises(PlanError, match=f"^{wanted}$"):
        CALLS[call](pipe)
    assert pipe.explain() == before


@pytest.mark.parametrize("after", ["pack_flat", "pack_sequences"])
@pytest.mark.parametrize("call", ["shuffle", "ensure_mixture", "batch"])
def test_packed_rows_may_be_shuffled_mixed_and_batched(after, call):
    pipe = PIPES[after]()
    assert CALLS[call](pipe) is pipe


def test_shuffles_and_mixtures_may_come_as_often_as_one_likes():
    pipe = lists().shuffle(9).ensure_mixture().shuffle(9).ensure_mixture(weight_by="samples")
    assert sorted(rows_of(pipe)) == sorted(rows_of(lists()))


# What a mixture counts


def test_tokens_are_counted_where_there_are_some():
    with pytest.raises(
        PlanError,
        match=r"weight_by='auto' counts tokens, and there is no token field .* the fields are "
        r"text, id; call it after tokenize, or pass weight_by='samples'",
    ):
        texts().ensure_mixture()
    with pytest.raises(PlanError, match="weight_by='txt' is no field here; did you mean 'text'"):
        texts().ensure_mixture(weight_by="txt")
    for weight_by in ("samples", "text", len):
        assert sorted(rows_of(texts().ensure_mixture(weight_by=weight_by))) == sorted(
            rows_of(texts())
        )


@pytest.mark.parametrize("call", [flat, sequences])
def test_packed_rows_are_weighed_by_what_is_in_them(call):
    for weight_by in ("auto", "samples", "input_ids"):
        call().ensure_mixture(weight_by=weight_by)
    with pytest.raises(PlanError, match="weight_by takes no function after packing, since a pack"):
        call().ensure_mixture(weight_by=len)
    with pytest.raises(PlanError, match="weight_by='text' is no field here"):
        call().ensure_mixture(weight_by="text")


def test_rows_that_a_function_measured_have_no_tokens_to_count():
    pipe = texts().pack_sequences(9, num_bins=2, length_fn=lambda row: row["id"] % 7)
    with pytest.raises(PlanError, match="weight_by='auto' counts tokens, and there is no token"):
        pipe.ensure_mixture()
    assert pipe.ensure_mixture(weight_by="samples") is pipe


def test_a_mixture_may_be_given_in_either_form():
    one = mix(mixture={"prose": 3, "code": 1})
    assert (
        one.fingerprint() == mix(mixture=MixtureSpec({"prose": 0.75, "code": 0.25})).fingerprint()
    )
    assert one.fingerprint() != mix().fingerprint()
    assert mix(mixture={"code": 1}).fingerprint() != mix().fingerprint()


# Which components share a row


def components_of(pipe, names):
    return {
        frozenset(names[number] for number in record.meta.component_token_counts) for record in pipe
    }


def three():
    return [token_dataset(name, [3, 4, 2, 3] * 6) for name in ("prose", "code", "maths")]


NAMES = ("prose", "code", "maths")


@pytest.mark.parametrize("call", ["pack_flat", "pack_sequences"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_components_share_rows_as_said(call, algorithm):
    arguments = {"algorithm": algorithm}
    if algorithm in ("first_fit", "best_fit"):
        arguments["num_bins"] = 2
    if call == "pack_flat":
        arguments["pad_token_id"] = 0

    def sets(**more):
        pipe = Pipeline(source(three(), shuffle_within_shard=True)).options(runner="inline")
        return components_of(getattr(pipe, call)(12, **arguments, **more), NAMES)

    assert any(len(found) > 1 for found in sets())
    assert sets(homogeneity="full") == {frozenset({name}) for name in NAMES}
    groups = DomainGroups({"words": ["maths", "prose"], "rest": ["code"]})
    found = sets(homogeneity="group", groups=groups)
    assert frozenset({"prose", "maths"}) in found
    assert all(names <= {"prose", "maths"} or names == {"code"} for names in found)


def test_components_in_no_group_stand_alone_with_a_warning_at_the_call():
    with pytest.warns(RuntimeWarning, match="pack_flat: 'code' is in no group, so each sh") as told:
        grouped(DomainGroups({"g": ["prose"]}))
    assert [warning.filename for warning in told] == [__file__]
    with pytest.warns(RuntimeWarning, match="'prose', 'maths' are in no group"):
        Pipeline(source(three())).pack_flat(
            9, homogeneity="group", groups=DomainGroups({"g": ["code"]}), **BINS
        )


def test_a_component_of_no_weight_is_a_component():
    pipe = Pipeline(source(DATASETS, {"prose": 1.0, "code": 0.0}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe.pack_flat(
            8, homogeneity="group", groups=DomainGroups({"g": ["prose", "code"]}), **BINS
        )


def test_components_of_a_work_source_of_ones_own_are_those_that_it_names():
    """Not its datasets: two components may read one dataset."""
    data = {0: numbered("lists", 40)}
    samples = [(("odd", "even", "third")[row % 3], (0, 0, row)) for row in range(40)]

    def pipe(**more):
        return Pipeline(Dealt(data, samples)).options(runner="inline").pack_flat(9, **BINS, **more)

    groups = DomainGroups({"g": ["odd", "third"], "h": ["even"]})
    names = ["odd", "even", "third"]
    found = components_of(pipe(homogeneity="group", groups=groups), names)
    assert {frozenset({"odd", "third"}), frozenset({"even"})} <= found
    assert all("even" not in each or len(each) == 1 for each in found)
    assert components_of(pipe(homogeneity="full"), names) == {frozenset({n}) for n in names}
    with pytest.raises(PlanError, match="'lists', which is no component; known are: even, odd, t"):
        pipe(homogeneity="group", groups=DomainGroups({"g": ["lists"]}))


def test_members_of_a_group_may_be_a_set():
    one = grouped(DomainGroups({"g": {"prose", "code"}}))
    assert one.fingerprint() == grouped(DomainGroups({"g": ["code", "prose"]})).fingerprint()


def test_rows_that_the_end_lets_go_come_group_by_group():
    """Groups in the order in which they are named, then components in none, in theirs."""
    pipe = Pipeline(source(three(), shuffle_within_shard=True)).options(runner="inline")
    with pytest.warns(RuntimeWarning, match="'prose' is in no group"):
        pipe.pack_flat(
            1000, num_bins=1, pad_token_id=0, homogeneity="group",
            groups=DomainGroups({"last": ["maths"], "first": ["code"]}),
        )  # fmt: skip
    found = [set(record.meta.component_token_counts) for record in pipe]
    assert found == [{NAMES.index("maths")}, {NAMES.index("code")}, {NAMES.index("prose")}]
