"""Which fields are packed with the tokens, by what is known of the data and by their first rows."""

import warnings
from dataclasses import replace

import pytest

from tests.planner.plans import tokenize
from zephon.errors import PlanError
from zephon.io.fields import Field, Seen
from zephon.planner.aligned import ALIGNED_FIELDS, find_aligned
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


def find(below, *known, asked="auto", quiet=True, **how):
    datasets = {f"d{i}": each for i, each in enumerate(known)}
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore")
        how = {"emit_positions": True, **how}
        return find_aligned(below, "input_ids", asked, "pack_flat", datasets, **how)


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
        ("text", None, "dataset 'd0' has text in it"),
        ("scalar", None, "dataset 'd0' has one value a row in it"),
        ("other", None, "dataset 'd0' has other than numbers in it"),
        ("numbers", Seen("float64", (4, 4, 4)),
         "beside 2 tokens, row 0 of dataset 'd0' has a list of 4"),
        ("tokens", Seen("int64", (2, 0, -1)), "beside 3 tokens, row 2 of dataset 'd0' has no list"),
        ("numbers", Seen(None, TOKENS),
         "in dataset 'd0' it is more than plain lists of one sort of numbers"),
        ("numbers", Seen(None, TOKENS, odd="row 3 has a list that holds null"),
         "in dataset 'd0' row 3 has a list that holds null"),
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
        ("y", "dataset 'd0' has booleans in it and dataset 'd1' numbers"),
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
        ("shape", "aligned_fields does not name it"), ("note", "dataset 'd0' has text in it"),
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
        ("x", r"aligned_fields must be 'auto', a list of field names, .* got 'x'"),
        ([1], r"aligned_fields must be 'auto', a list of field names, .* got \[1\]"),
        (["los_mask"], r"names 'los_mask', .*: there is none; did you mean 'loss_mask'\?"),
        (
            ["note"],
            r"names 'note', which must hold one number or boolean a token .*'d0' has text in it",
        ),
        (["odd"], r"names 'odd', .*: in dataset 'd0' it is more than plain lists"),
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


@pytest.mark.parametrize("kind", ["tokens", "numbers", "scalar", "text"])
@pytest.mark.parametrize("name", ["loss_mask", "labels", "token_type_ids"])
def test_what_says_which_tokens_are_trained_on_is_not_lost_beside_made_tokens(name, kind):
    below = tokenize(fetch({"text": "text", "id": "scalar", name: kind}, {"text": "text"}))
    kept = replace(below, preserve_upstream_payload=True)
    with pytest.raises(PlanError, match=rf"field '{name}' must .* tokenize .* aligned_fields=\[\]"):
        find(kept)
    assert [n for n, _ in find(kept, asked=()).left_out] == ["text", "id", name]
    assert find(kept, loses_fields=False).packed == ()  # documents keep all that they have
    assert find(below).left_out == ()  # tokenize was not asked to keep it


def test_a_mask_that_tokenize_makes_takes_the_place_of_the_data_s():
    below = tokenize(
        fetch({"text": "text", "attention_mask": "tokens"}), preserve_upstream_payload=True
    )
    assert [name for name, _ in find(below).left_out] == ["text"]


def test_empty_datasets_do_not_count():
    below = fetch({"x": "tokens"}, {})
    empty = below.components[1].__class__(
        name="c1", dataset="d1", share=1.0, shards=1, rows=0, bytes=0, fields=(),
        fields_complete=False,
    )  # fmt: skip
    below = Fetch(components=(below.components[0], empty))
    assert find(below, Known(x=Seen("int32", TOKENS))).packed == (("x", "int32"),)


# Fields that must not be lost


LOST = {
    "text": ("text", None, r"dataset 'd0' has text in it"),
    "one value a row": ("scalar", None, r"dataset 'd0' has one value a row in it"),
    "nested": ("other", Seen(None, TOKENS, odd="row 0 has a list that holds a list"),
               r"in dataset 'd0' row 0 has a list that holds a list"),
    "mixed": ("numbers", Seen(None, TOKENS, odd="row 0 has booleans and row 1 numbers"),
              r"in dataset 'd0' row 0 has booleans and row 1 numbers"),
    "nulls": ("unknown", Seen("", (-1, -1)), r"first rows of dataset 'd0' have no list in it"),
}  # fmt: skip


@pytest.mark.parametrize("case", LOST)
@pytest.mark.parametrize("name", ALIGNED_FIELDS)
def test_a_known_name_that_cannot_be_packed_is_refused(name, case):
    kind, seen, reason = LOST[case]
    below = fetch({name: kind, "reward": "numbers"})
    known = Known(reward=Seen("float64", TOKENS), **({} if seen is None else {name: seen}))
    message = (
        rf"^pack_flat: field '{name}' must hold one number or boolean a token in every dataset, "
        rf"but .*{reason}; mend the data, or pass aligned_fields=\['reward'\] to pack without it$"
    )
    with pytest.raises(PlanError, match=message):
        find(below, known)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = find(below, known, asked=["reward"], quiet=False)
    assert found.packed == (("reward", "float64"),)
    assert found.left_out == (
        (name, reason if seen is None else "aligned_fields does not name it"),
    )


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("name", ALIGNED_FIELDS)
def test_what_is_in_one_dataset_only(name, complete):
    below = fetch({name: "tokens"}, {}, complete=complete)
    datasets = Known(**{name: Seen("int32", TOKENS)}), Known()
    reason = "has no such field" if complete else "is not seen to have it"
    if name in ("loss_mask", "labels"):
        with pytest.raises(PlanError, match=rf"but dataset 'd1' {reason}; add it there, or pass"):
            find(below, *datasets)
    else:
        with pytest.warns(RuntimeWarning, match=rf"'{name}' are left out .*'d1' {reason}"):
            assert find(below, *datasets, quiet=False).packed == ()
    assert find(below, *datasets, asked=()).packed == ()


def test_what_a_shard_lacks():
    below = fetch({"loss_mask": "tokens"}, complete=False)
    with pytest.raises(PlanError, match="a shard of dataset 'd0' does not have it; add it there"):
        find(below, Known())
    other = fetch({"segment_ids": "tokens"}, complete=False)
    assert find(other, Known()).left_out == (
        ("segment_ids", "a shard of dataset 'd0' does not have it"),
    )


def test_integers_and_floats_of_one_dataset_are_floats():
    found = find(fetch({"loss_mask": "numbers"}), Known(loss_mask=Seen("float64", TOKENS)))
    assert found.packed == (("loss_mask", "float64"),)


# Types that are stated


def test_a_stated_type_is_taken_whatever_is_seen_first():
    below = fetch({"x": "tokens", "y": "unknown"}, {"x": "numbers"}, complete=False)
    first = Known(x=Seen("int64", (7, 7, 7)), y=Seen("", (-1, -1)), late=Seen("", (-1, -1)))
    second = Known(x=Seen("float32", TOKENS), y=Seen("", (-1,)), late=Seen("", (-1,)))
    stated = {"x": "float64", "y": "bool", "late": "float32"}
    found = find(below, first, second, asked=stated)
    assert found.packed == (("x", "float64"), ("y", "bool"), ("late", "float32"))
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("stated", "complete", "message"),
    [
        ({"x": "float"}, True, r"must give 'x' one of the types int32, .*, got 'float'; did you"),
        ({"x": None}, True, r"must give 'x' one of the types int32, .*, got None"),
        ({"x": "bool"}, True, r"names 'x', .*: dataset 'd0' has lists of int64 in it, not of bool"),
        ({"half": "int64"}, True, r"dataset 'd0' has lists of float32 in it, not of int64"),
        ({"odd": "int64"}, True, r"in dataset 'd0' row 1 has text"),
        ({"y": "int64"}, True, r"names 'y', .*: dataset 'd0' has no such field"),
        ({"y": "int64"}, False, r"names 'y', .*: a shard of dataset 'd0' does not have it"),
        ({"note": "int64"}, True, r"names 'note', .*: dataset 'd0' has text in it"),
        ({"input_ids": "int64"}, True, r"must name fields beside the tokens, got 'input_ids'"),
        ({3: "int64"}, True, r"must be 'auto', a list of field names, or a dict .* got \{3: "),
    ],
)
def test_a_stated_type_that_cannot_be_is_refused(stated, complete, message):
    known = Known(
        x=Seen("int64", TOKENS),
        half=Seen("float32", TOKENS),
        odd=Seen(None, (), odd="row 1 has text"),
    )
    kinds = {"x": "tokens", "half": "numbers", "odd": "other", "note": "text"}
    with pytest.raises(PlanError, match=rf"^pack_flat: aligned_fields .*{message}"):
        find(fetch(kinds, complete=complete), known, asked=stated)


# Fields that nobody saw


@pytest.mark.parametrize("asked", ["auto", (), ["x"], {"loss_mask": "int64"}])
@pytest.mark.parametrize("complete", [True, False])
def test_what_no_row_was_seen_to_have_must_not_come_late(complete, asked):
    unseen = {} if complete else {"loss_mask": Seen("", (-1, -1, -1))}
    known = Known(x=Seen("int32", TOKENS), labels=Seen("int32", TOKENS), **unseen)
    below = fetch({"x": "tokens", "labels": "tokens"}, complete=complete)
    if complete and isinstance(asked, dict):
        with pytest.raises(PlanError, match="dataset 'd0' has no such field"):
            find(below, known, asked=asked)
        return
    wanted = ("loss_mask",) if asked == "auto" and not complete else ()
    assert find(below, known, asked=asked).without == wanted
