"""Which fields are packed with the tokens, by what is known of the data and by their first rows."""

import warnings

import pytest

from tests.planner.plans import tokenize
from zephon.errors import PlanError
from zephon.io.fields import Field, Seen
from zephon.planner.checks import container_of, find_aligned, find_token_field
from zephon.planner.logical import Fetch, ReadComponent

TOKENS = (2, 0, 3)


class Known:
    """A dataset of which the first rows are given; counts how often they are asked for."""

    def __init__(self, container="list", **seen):
        self.seen = {"input_ids": Seen("int32", TOKENS), **seen}
        self.container = container
        self.asked = []

    def first_lists(self, names, /):
        self.asked.append(tuple(names))
        return {name: self.seen[name] for name in names if name in self.seen}

    def held_in(self, name, /):
        return self.container


def fetch(*datasets, complete=True, rows=9):
    """Make a source of datasets, each a dict from field to kind."""
    return Fetch(
        components=tuple(
            ReadComponent(
                name=f"c{i}", dataset=f"d{i}", share=1.0, shards=1, rows=rows, bytes=1,
                fields=tuple(Field(*pair) for pair in {"input_ids": "tokens", **kinds}.items()),
                fields_complete=complete,
            )
            for i, kinds in enumerate(datasets)
        )
    )  # fmt: skip


def find(below, *known, asked="auto", emit_positions=True, quiet=True):
    datasets = {f"d{i}": each for i, each in enumerate(known)}
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore")
        return find_aligned(
            below, "input_ids", asked, "pack_flat", datasets, emit_positions=emit_positions
        )


@pytest.mark.parametrize("kind", ["int32", "int64", "float32", "float64", "bool"])
def test_a_list_that_is_as_long_as_the_tokens_is_packed(kind):
    known = Known(reward=Seen(kind, TOKENS))
    found = find(fetch({"reward": "numbers"}), known)
    assert found.packed == (("reward", kind),)
    assert found.left_out == ()
    assert known.asked == [("input_ids", "reward")]


def test_known_names_are_packed_unseen_and_come_first():
    known = Known(
        reward=Seen("float64", TOKENS),
        labels=Seen("int64", (1, 1, 1)),
        loss_mask=Seen("", (0, 0, 0)),
    )
    kinds = {"reward": "numbers", "labels": "tokens", "loss_mask": "unknown"}
    found = find(fetch(kinds), known)
    assert found.packed == (("loss_mask", "int64"), ("labels", "int64"), ("reward", "float64"))


@pytest.mark.parametrize(
    ("kind", "seen", "reason"),
    [
        ("text", None, "it holds text"),
        ("scalar", None, "it holds one value a row"),
        ("other", None, "it holds other than numbers"),
        ("numbers", Seen("float64", (4, 4, 4)),
         "beside 2 tokens, row 0 of dataset 'd0' has a list of 4"),
        ("tokens", Seen("int64", (2, 0, -1)), "beside 3 tokens, row 2 of dataset 'd0' has no list"),
        ("numbers", Seen(None, TOKENS),
         "dataset 'd0' has more in it than plain lists of one sort of numbers"),
        ("unknown", Seen("", (-1, -1, -1)), "the first rows of dataset 'd0' have no list in it"),
    ],
)  # fmt: skip
def test_everything_else_is_left_out_with_the_reason(kind, seen, reason):
    found = find(fetch({"x": kind}), Known(x=seen))
    assert found.packed == ()
    assert found.left_out == (("x", reason),)


def test_nothing_is_looked_at_where_no_field_can_be_packed():
    known = Known()
    found = find(fetch({"text": "text", "n": "scalar"}), known, quiet=False)
    assert [name for name, _ in found.left_out] == ["text", "n"]
    assert known.asked == []


def test_every_dataset_must_have_it_in_a_kind_that_goes_with_the_others():
    both = fetch({"x": "tokens", "y": "numbers", "z": "tokens"}, {"x": "numbers", "y": "tokens"})
    first = Known(x=Seen("int64", TOKENS), y=Seen("bool", TOKENS), z=Seen("int32", TOKENS))
    second = Known(x=Seen("float32", TOKENS), y=Seen("int32", TOKENS))
    found = find(both, first, second)
    assert found.packed == (("x", "float64"),)
    assert found.left_out == (
        ("y", "it holds booleans in one dataset and numbers in another"),
        ("z", "dataset 'd1' has no such field"),
    )
    missing = find(fetch({"x": "tokens"}, {}, complete=False), first, second)
    assert missing.left_out == (("x", "dataset 'd1' is not seen to have it"),)
    shard = find(fetch({"x": "tokens"}, {"x": "tokens"}), first, Known())
    assert shard.left_out == (("x", "a shard of dataset 'd1' does not have it"),)


def test_rows_without_tokens_prove_nothing():
    bare = Known(x=Seen("", (0, 0)), input_ids=Seen("", (0, 0)))
    found = find(fetch({"x": "unknown"}), bare)
    assert found.left_out == (("x", "the first rows of dataset 'd0' have no tokens"),)
    bad = Known(x=Seen("int64", (1, 5)), input_ids=Seen("int32", (1, -1)))  # the row itself is bad
    assert find(fetch({"x": "tokens"}), bad).packed == (("x", "int64"),)


def test_lists_of_numbers_are_never_left_out_silently():
    known = Known(shape=Seen("int64", (4, 4, 4)))
    below = fetch({"shape": "tokens", "note": "text"})
    with pytest.warns(RuntimeWarning) as told:
        find(below, known, quiet=False)
    assert [str(each.message) for each in told] == [
        "pack_flat: lists of numbers in 'shape' are left out of packed rows ('shape': beside 2 "
        "tokens, row 0 of dataset 'd0' has a list of 4); name the fields to pack in "
        "aligned_fields, () for none"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = find(below, known, asked=(), quiet=False)
    assert found.left_out == (
        ("shape", "aligned_fields does not name it"), ("note", "it holds text"),
    )  # fmt: skip


def test_a_name_that_was_asked_for_is_not_compared_with_the_tokens():
    known = Known(x=Seen("bool", (7, 7, 7)), loss_mask=Seen("int32", TOKENS))
    below = fetch({"x": "numbers", "loss_mask": "tokens"})
    found = find(below, known, asked=["x", "input_ids", "x"])
    assert found.packed == (("x", "bool"),)
    assert found.left_out == (("loss_mask", "aligned_fields does not name it"),)
    assert known.asked == [("input_ids", "x")]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("x", r"aligned_fields must be 'auto' or a list of field names, got 'x'"),
        ([1], r"aligned_fields must be 'auto' or a list of field names, got \[1\]"),
        (["los_mask"], r"names 'los_mask', .*: there is none; did you mean 'loss_mask'\?"),
        (
            ["note"],
            r"names 'note', which must hold one number or boolean a token .*: it holds text",
        ),
        (["odd"], r"names 'odd', .*: dataset 'd0' has more in it than plain lists"),
    ],
)
def test_a_name_that_cannot_be_packed_is_refused(asked, message):
    known = Known(odd=Seen(None, TOKENS), loss_mask=Seen("int32", TOKENS))
    below = fetch({"note": "text", "odd": "numbers", "loss_mask": "tokens"})
    with pytest.raises(PlanError, match=r"^pack_flat: .*" + message):
        find(below, known, asked=asked)


def test_positions_are_refused_only_where_packing_makes_them():
    known = Known(positions=Seen("int32", TOKENS))
    below = fetch({"positions": "tokens"})
    with pytest.raises(PlanError, match="field 'positions', which packing makes anew"):
        find(below, known)
    with pytest.raises(PlanError, match="field 'positions', which packing makes anew"):
        find(below, known, asked=["positions"])
    assert find(below, known, asked=()).packed == ()
    assert find(below, known, emit_positions=False).packed == (("positions", "int32"),)


def test_made_tokens_have_nothing_beside_them():
    below = tokenize(preserve_upstream_payload=True)
    found = find(below)
    assert found.packed == ()
    assert [name for name, _ in found.left_out] == ["text", "url", "score"]
    assert find(tokenize()).left_out == ()
    with pytest.raises(PlanError, match="names 'score', but tokenize makes the tokens"):
        find(below, asked=["score"])


def test_empty_datasets_do_not_count():
    below = fetch({"x": "tokens"}, {})
    empty = below.components[1].__class__(
        name="c1", dataset="d1", share=1.0, shards=1, rows=0, bytes=0, fields=(),
        fields_complete=False,
    )  # fmt: skip
    below = Fetch(components=(below.components[0], empty))
    assert find(below, Known(x=Seen("int32", TOKENS))).packed == (("x", "int32"),)


def test_rows_are_held_in_what_the_source_holds_them_in():
    def held(*containers):
        known = {f"d{i}": Known(each) for i, each in enumerate(containers)}
        return container_of(fetch(*({} for _ in containers)), "input_ids", known)

    assert held("np") == "np"
    assert held("tuple", "tuple") == "tuple"
    assert held("np", "list") == "list"
    assert container_of(tokenize(return_tensors="pt"), "input_ids", {}) == "pt"
    assert container_of(tokenize(), "input_ids", {}) == "list"


def test_messages_name_the_call():
    with pytest.raises(PlanError, match=r"^pack_sequences: no field 'ids' in dataset 'd0'"):
        find_token_field(fetch({}), "ids", "pack_sequences")
