"""What a refused restore prints: each part by name, by the word that lets it through or by none."""

import copy

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exec.changed_recipes import above, packed, pipe, recipe, told
from zephon.errors import CheckpointError
from zephon.exec.change import LONGEST
from zephon.exec.recipe_changes import WORDS, changes, lines, refuse_unless
from zephon.work import MixtureSchedule


def keep_all(state, row):
    return [row]


def keep_none(state):
    return []


# Parts


def test_the_rows_of_a_step():
    assert told({}, {"options": {"global_batch_size": 8}}) == [
        ("global_batch_size", "None", "8", "global_batch_size")
    ]


def test_barriers_go_with_the_operators_that_need_them():
    def steps(p):
        return p.stateful_transform("own", init_state=list, push=keep_all, flush=keep_none)

    plain, remembering = {}, {"steps": steps}
    found = told(plain, remembering)
    assert [(part, word) for part, _, _, word in found] == [
        ("stateful_transform", "functions"), ("flush_every_rows", "functions"),
    ]  # fmt: skip
    rarer = {"steps": steps, "options": {"flush_every_k_chunks": 9}}
    assert [(part, word) for part, _, _, word in told(remembering, rarer)] == [
        ("flush_every_rows[0]", None)
    ]


def test_another_order_of_rows_names_the_release_to_install():
    made = recipe()
    [change] = changes({**made, "stream_version": 0}, made, "0.2.9")
    assert str(change) == "stream_version: was 0, is 1"
    assert change.why.endswith("install zephon 0.2.9, which wrote the checkpoint")


def test_a_custom_source_lets_nothing_through():
    made = recipe()
    own = {**made, "source": {"source": "jobs.Own", "components": [["a", 0], ["b", 1]]}}
    grown = copy.deepcopy(own)
    grown["data"]["a"].append(["2", 1, 1])
    [change] = changes(own, grown)
    assert (change.part, change.word) == ("data of 'a', shard '2'", None)
    assert [c.word for c in changes(own, made)] == [None] * len(changes(own, made))
    other = {**own, "source": {**own["source"], "recipe": {"k": 1}}}
    assert [c.part for c in changes(own, other)] == ["work source.recipe"]


# What is printed


EVERYTHING = {
    "weights": {"a": 0.5, "b": 0.3, "c": 0.2},
    "shards": {"a": (9, 3, 4), "b": (5,)},
    "steps": lambda p: packed(70)(p.filter(pl.col("n") > 1)),
    "options": {"global_batch_size": 8},
    "seed": 3,
}

PRINTED = """\
restore: the checkpoint belongs to another recipe
  allow={'weights'} lets through (draws follow them from here on, each dataset goes on where it stands):
    weight of 'b': was 0.5, is 0.3
  allow={'datasets'} lets through (a new one begins, what is held of one that goes is dropped and counted, the others go on where they stand):
    dataset 'c': was not there, is of weight 0.2
  allow={'data'} lets through (the old shards finish their pass, new rows join at the next):
    data of 'a', shard '2': was not there, is 4 rows of 188 bytes
  allow={'functions'} lets through (held documents are made again; those that are gone or others are dropped and counted):
    filter: was not there, is filter(col("n") > 1)
  allow={'global_batch_size'} lets through (steps have so many rows from here on; none is lost or repeated):
    global_batch_size: was None, is 8
  nothing lets through:
    data of 'b', shard '0': was 4 rows of 188 bytes, is 5 rows of 235 bytes: rows are known by their places; put the old file back, and new rows into a new shard
    work source, seed: was 0, is 3: it decides the order of rows; set it back
    pack_sequences, max_length: was 64, is 70: rows are half packed by it; pack as then"""  # noqa: E501


def test_a_refused_restore_prints_every_part():
    state = pipe(steps=packed()).checkpoint()
    with pytest.raises(CheckpointError) as caught:
        iter(pipe(**EVERYTHING).restore(state))
    assert str(caught.value) == PRINTED


def test_what_is_let_through_is_not_printed():
    found = changes(recipe(steps=packed()), recipe(**EVERYTHING))
    with pytest.raises(CheckpointError) as caught:
        refuse_unless(found, frozenset({"weights", "datasets", "data", "functions"}))
    assert "global_batch_size: was None, is 8" in str(caught.value)
    assert "filter" not in str(caught.value)
    may = [change for change in found if change.word is not None]
    refuse_unless(may, frozenset(WORDS))
    refuse_unless([], frozenset())
    with pytest.raises(CheckpointError, match="pack_sequences, max_length: was 64, is 70"):
        refuse_unless(found, frozenset(WORDS))


@pytest.mark.parametrize(("may", "never"), [(0, 40), (40, 0), (40, 40), (3, 40), (40, 2), (12, 1)])
def test_at_most_twelve_parts_are_printed(may, never):
    weights = {f"d{i}": 1 + i for i in range(may)}
    before, after = recipe(), recipe()
    before["source"]["weights"], after["source"]["weights"] = weights, dict(weights)
    for each in (before, after):
        each["source"]["components"] = list(weights)
        each["source"]["rules"] = {}
        each["data"] = {}
        each["tokenizers"] = [{"digest": "x" * 1_000}] * never
    after["source"]["weights"] = {name: weight + 1 for name, weight in weights.items()}
    after["tokenizers"] = [{"digest": "y" * 1_000}] * never
    found = changes(before, after)
    assert len(found) == may + never
    printed = lines(found)
    parts = [line for line in printed if line.startswith("    ") and ": was " in line]
    assert len(parts) == min(12, may + never)
    if may and never:
        assert sum("weight of" in line for line in parts) >= min(may, 6)
        assert sum("tokenizers" in line for line in parts) >= min(never, 6)
    more = sum(int(line.split()[1]) for line in printed if line.startswith("    and "))
    assert more == may + never - len(parts)
    assert max(map(len, printed)) < 3 * LONGEST + 200


def places(value, path=()):
    """List the places of all values inside a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in children:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


def at(value, path):
    """Give what is at a place."""
    for key in path:
        value = value[key]
    return value


WHOLE = recipe(
    steps=lambda p: packed(homogeneity="full")(p.filter(pl.col("n") > 1).map_transform(above(3))),
    schedule=MixtureSchedule({100: {"a": 1, "b": 3}}),
)


LEAVES = [p for p in places(WHOLE) if not isinstance(at(WHOLE, p), dict | list)]


@given(st.sets(st.sampled_from(LEAVES), min_size=1, max_size=3))
def test_no_difference_is_passed_over(changed):
    """Whatever is another value in a recipe, the checkpoint is refused and a line says so."""
    other = copy.deepcopy(WHOLE)
    for path in changed:
        match at(WHOLE, path):
            case bool() as old:
                new = not old
            case int() | float() as old:
                new = old + 1
            case old:
                new = f"{old}x"
        at(other, path[:-1])[path[-1]] = new
    found = changes(WHOLE, other)
    assert found
    with pytest.raises(CheckpointError, match=": was "):
        refuse_unless(found, frozenset())
