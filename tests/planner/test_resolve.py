"""What packing and mixing calls say in words, and what it comes to."""

import warnings

import pytest

from tests.planner.plans import batch, fetch, mix, pack, pack_sequences, token_lists, tokenize
from tests.planner.test_aligned import fetch as named
from zephon.errors import PlanError
from zephon.io.fields import Column, Field, Seen
from zephon.ops import DomainGroups
from zephon.planner.logical import ReadComponent
from zephon.planner.resolve import (
    domains_of,
    find_token_field,
    mixture_weights,
    packed_fields,
)


def weigh(row):
    return 2.5


# Packed fields


class Looked:
    """A dataset whose first rows hold lists; ``asked`` says what was looked at."""

    def __init__(self, held="np", **seen):
        self.held, self.seen, self.asked = held, seen, []

    def first_lists(self, names):
        self.asked += names
        return {name: self.seen[name] for name in names if name in self.seen}

    def held_in(self, name):
        return self.held


def lists(*fields):
    component = ReadComponent(
        name="lists", dataset="lists", share=1.0, shards=1, rows=100, bytes=4000,
        fields=fields, fields_complete=True,
    )  # fmt: skip
    return fetch(components=(component,))


THREE = (Field("tokens", "tokens"), Field("mask", "numbers"), Field("spans", "tokens"))


def seen(kind, *lengths):
    return Seen(kind=kind, lengths=lengths, container="np")


def fields_of(below, dataset, tokens_field="auto", aligned="auto", *, measured=False, **more):
    settings = {"emit_positions": True, "measured": measured, **more}
    return packed_fields(below, tokens_field, aligned, "pack_flat", {"lists": dataset}, **settings)


def test_tokens_that_tokenize_makes_are_packed_alone():
    dataset = Looked()
    found = packed_fields(
        tokenize(preserve_upstream_payload=True),
        "auto", "auto", "pack_flat", {"prose": dataset}, emit_positions=True, measured=False,
    )  # fmt: skip
    assert (found.tokens_field, found.aligned, found.container) == ("input_ids", (), "list")
    assert {name for name, _ in found.passed_over} == {"text", "url", "score"}
    assert dataset.asked == []


@pytest.mark.parametrize(("tensors", "container"), [(None, "list"), ("np", "np"), ("pt", "pt")])
def test_rows_are_held_in_what_tokenize_makes(tensors, container):
    found = fields_of(tokenize(return_tensors=tensors), Looked("tuple"))
    assert found.container == container


def test_fields_as_long_as_the_tokens_are_packed_with_their_kind():
    dataset = Looked(
        "tuple", tokens=seen("int32", 3, 5), mask=seen("float32", 3, 5), spans=seen("int64", 2, 2)
    )
    with pytest.warns(RuntimeWarning, match="'spans' are left out of packed rows"):
        found = fields_of(lists(*THREE), dataset)
    assert found.tokens_field == "tokens"
    assert found.aligned == (Column(path="mask", kind="float32"),)
    assert [name for name, _ in found.passed_over] == ["spans"]
    assert found.container == "tuple"


def test_fields_may_be_named():
    dataset = Looked(
        tokens=seen("int32", 3, 5), mask=seen("float32", 3, 5), spans=seen("int64", 2, 2)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fields_of(lists(*THREE), dataset, aligned=("spans",))
        none = fields_of(lists(*THREE), dataset, aligned=())
    assert found.aligned == (Column(path="spans", kind="int64"),)
    assert none.aligned == ()
    with pytest.raises(PlanError, match=r"pack_flat: aligned_fields names 'mesk'.* 'mask'"):
        fields_of(lists(*THREE), dataset, aligned=("mesk",))


def test_a_function_that_measures_rows_needs_no_tokens():
    below = fetch()
    found = packed_fields(
        below, "auto", "auto", "pack_sequences", {}, emit_positions=False, measured=True
    )
    assert (found.tokens_field, found.aligned, found.container) == (None, (), "list")
    with pytest.raises(PlanError, match=r"pack_sequences: no token field .*text, url, score"):
        packed_fields(
            below, "auto", "auto", "pack_sequences", {}, emit_positions=False, measured=False
        )


def test_where_there_are_tokens_they_are_packed_though_a_function_measures():
    found = fields_of(token_lists(), Looked(tokens=seen("int32", 3)), measured=True)
    assert found.tokens_field == "tokens"


@pytest.mark.parametrize(
    ("containers", "wanted"),
    [(["np"], "np"), (["tuple", "tuple"], "tuple"), (["np", "list"], "list")],
)
def test_rows_of_several_datasets_are_held_in_what_all_of_them_are(containers, wanted):
    known = {f"d{i}": Looked(each) for i, each in enumerate(containers)}
    below = named(*({} for _ in containers))
    found = packed_fields(
        below, "auto", "auto", "pack_flat", known, emit_positions=True, measured=False
    )
    assert found.container == wanted


@pytest.mark.parametrize("held", ["list", "tuple", "np", "pt"])
@pytest.mark.parametrize(("payloads", "good"), [("numpy_array", "np"), ("torch_tensor", "pt")])
def test_arrays_are_joined_of_arrays_only(payloads, good, held):
    def found(*containers):
        known = {f"d{i}": Looked(each) for i, each in enumerate(containers)}
        return packed_fields(
            named(*({} for _ in containers)), "auto", "auto", "pack_sequences", known,
            emit_positions=False, measured=False, payloads=payloads,
        )  # fmt: skip

    assert found(good, "list").container == "list"  # rows of the first alone can be joined
    if held == good:
        assert found(held, held).container == held
        return
    message = rf"^pack_sequences: pack_payloads='{payloads}' needs .* and 'input_ids' holds .*;"
    with pytest.raises(PlanError, match=message):
        found(held, held)


def test_what_tokenize_makes_is_joined_where_it_makes_arrays():
    def found(tensors, payloads):
        return packed_fields(
            tokenize(return_tensors=tensors), "auto", "auto", "pack_sequences", {},
            emit_positions=False, measured=False, payloads=payloads,
        ).container  # fmt: skip

    assert found("np", "numpy_array") == "np"
    assert found(None, "keep_list") == found(None, len) == "list"
    with pytest.raises(PlanError, match=r"holds lists; .*tokenize\(return_tensors='np'\) does"):
        found(None, "numpy_array")


def test_messages_name_the_call():
    with pytest.raises(PlanError, match=r"^pack_sequences: no field 'ids' in dataset 'd0'"):
        find_token_field(named({}), "ids", "pack_sequences")


# Weights of a mixture


def field(name, kind):
    """What counts a field; its column is typed where its length can be read without the row."""
    column = None if kind is None else Column(path=name, kind=kind)
    return {"weight_by": "field", "weight_field": name, "weight_column": column}


@pytest.mark.parametrize(
    ("below", "weight_by", "wanted"),
    [
        (tokenize(), "auto", {"weight_by": "tokens"}),
        (tokenize(), "input_ids", {"weight_by": "tokens"}),
        (tokenize(), "attention_mask", {"weight_by": "tokens"}),
        (tokenize(), "samples", {"weight_by": "samples"}),
        (fetch(), "samples", {"weight_by": "samples"}),
        (fetch(), "text", field("text", "text")),
        (token_lists(), "auto", field("tokens", "tokens")),
        (token_lists(), "id", field("id", None)),
        (tokenize(), weigh, {"weight_by": "function", "weight_function": weigh}),
        (fetch(), weigh, {"weight_by": "function", "weight_function": weigh}),
        (pack(), "auto", {"weight_by": "tokens"}),
        (pack(), "samples", {"weight_by": "samples"}),
        (pack(), "input_ids", {"weight_by": "tokens"}),
        (pack(token_lists(), tokens_field="tokens"), "auto", {"weight_by": "tokens"}),
        (pack_sequences(), "auto", {"weight_by": "tokens"}),
        (pack_sequences(token_lists(), tokens_field="tokens"), "auto", {"weight_by": "tokens"}),
        (mix(pack()), "auto", {"weight_by": "tokens"}),
    ],
)
def test_what_a_mixture_counts(below, weight_by, wanted):
    assert mixture_weights(below, weight_by) == wanted
    assert mix(below, **wanted).weight_by == wanted["weight_by"]


@pytest.mark.parametrize(
    ("below", "weight_by", "message"),
    [
        (fetch(), "auto", r"weight_by='auto' counts tokens, and there is no token field .*text, "),
        (fetch(), "txet", r"weight_by='txet' is no field here; .*'text'"),
        (tokenize(), "sample", r"weight_by='sample' is no field here; .*'samples'"),
        (tokenize(), "text", r"weight_by='text' is no field here"),
        (pack(), "text", r"weight_by='text' is no field here"),
        (pack(), weigh, r"weight_by takes no function after packing"),
        (pack_sequences(), weigh, r"weight_by takes no function after packing"),
        (tokenize(), 3, r"weight_by must be 'auto', 'samples', the name of a field, or a function"),
        (tokenize(), None, r"weight_by must be 'auto', .* got None"),
    ],
)
def test_what_no_mixture_can_count_is_refused(below, weight_by, message):
    with pytest.raises(PlanError, match=f"ensure_mixture: {message}"):
        mixture_weights(below, weight_by)


# Sets of components that share rows


NAMES = ("prose", "code", "prose", "maths", "talk")
PROSE = DomainGroups({"a": ["prose"]})


def test_all_share_rows_unless_told_otherwise():
    assert domains_of("pack_flat", "none", None, NAMES) is None


def test_under_full_every_component_stands_alone():
    wanted = (("prose",), ("code",), ("maths",), ("talk",))
    assert domains_of("pack_flat", "full", None, NAMES) == wanted


def test_groups_share_rows_and_the_others_stand_alone():
    groups = DomainGroups({"words": ["talk", "prose"], "signs": ["code", "maths"]})
    words = DomainGroups({"words": ["talk", "prose"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert domains_of("pack_flat", "group", groups, NAMES) == (
            ("talk", "prose"),
            ("code", "maths"),
        )
    with pytest.warns(RuntimeWarning, match="pack_flat: 'code', 'maths' are in no group"):
        found = domains_of("pack_flat", "group", words, NAMES)
    assert found == (("talk", "prose"), ("code",), ("maths",))
    with pytest.warns(RuntimeWarning, match="pack_flat: 'talk' is in no group"):
        domains_of("pack_flat", "group", DomainGroups({"all": ["prose", "code", "maths"]}), NAMES)


@pytest.mark.parametrize(
    ("homogeneity", "groups", "message"),
    [
        ("none", PROSE, r"groups needs homogeneity='group', got 'none'"),
        ("full", PROSE, r"groups needs homogeneity='group', got 'full'"),
        ("group", None, r"homogeneity='group' needs groups, got None; pass zephon\.ops\.DomainG"),
        ("group", {"a": ["prose"]}, r"homogeneity='group' needs groups, got {'a': \['prose'\]}"),
        ("group", (("a", ("prose",)),), r"homogeneity='group' needs groups, got \(\('a', "),
        ("group", DomainGroups({"a": ["prosa"]}), r"groups name 'prosa', which is .*'prose'"),
    ],
)
def test_groups_that_cannot_be_are_refused(homogeneity, groups, message):
    with pytest.raises(PlanError, match=f"pack_sequences: {message}"):
        domains_of("pack_sequences", homogeneity, groups, NAMES)


def test_an_unknown_word_is_left_to_the_node():
    """The node names the nearest word; here it only must not pass as 'group'."""
    assert domains_of("pack_flat", "fully", None, NAMES) is None
    with pytest.raises(PlanError, match=r"pack_flat: homogeneity='fully' is unknown.*'full'"):
        batch(pack(homogeneity="fully"))
