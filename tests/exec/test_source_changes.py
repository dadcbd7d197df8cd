"""What is told of another mixture: datasets, weights, schedules, rules and costs."""

import pytest

from tests.exec.changed_recipes import recipe, told
from zephon.exec.recipe_changes import changes
from zephon.work import MixtureSchedule, TokenEstimation


def test_other_weights():
    assert told({}, {"weights": {"a": 1, "b": 3}}) == [
        ("weight of 'a'", "0.5", "0.25", "weights"),
        ("weight of 'b'", "0.5", "0.75", "weights"),
    ]


def test_weights_are_told_as_exactly_as_they_must_be():
    third = 1 / 3
    found = told({"weights": {"a": third, "b": 2 / 3}}, {"weights": {"a": 0.3333, "b": 0.6667}})
    assert found[0] == ("weight of 'a'", "0.3333333333333333", "0.3333", "weights")


def test_a_dataset_that_is_drawn_no_more_is_a_matter_of_weights():
    gone, back = {"weights": {"a": 1, "b": 0}}, {}
    assert told(gone, back) == [
        ("weight of 'a'", "1", "0.5", "weights"),
        ("weight of 'b'", "0", "0.5", "weights"),
        ("dataset 'b'", "never drawn", "drawn", "weights"),
    ]
    assert told(back, gone)[-1] == ("dataset 'b'", "drawn", "never drawn", "weights")


def test_an_added_dataset_takes_its_share_of_the_others():
    three = {"weights": {"a": 0.45, "b": 0.45, "c": 0.1}}
    assert told({}, three) == [("dataset 'c'", None, "of weight 0.1", "datasets")]
    assert told(three, {}) == [("dataset 'c'", "of weight 0.1", None, "datasets")]


def test_an_added_dataset_and_other_weights_are_two_words():
    assert told({}, {"weights": {"c": 2, "a": 6, "b": 2}}) == [
        ("dataset 'c'", None, "of weight 0.2", "datasets"),
        ("weight of 'a'", "0.5", "0.6", "weights"),
        ("weight of 'b'", "0.5", "0.2", "weights"),
    ]


def test_another_order_of_datasets_is_a_change_of_datasets():
    assert told({}, {"order": ("b", "a")}) == [
        ("order of datasets", "['a', 'b']", "['b', 'a']", "datasets")
    ]


@pytest.mark.parametrize(
    ("work", "part"),
    [
        ({"seed": 1}, "work source, seed"),
        ({"chunk_size": 7}, "work source, chunk_size"),
        ({"shuffle_shards": False}, "work source, shuffle_shards"),
        ({"lane_assignment": "modulo"}, "work source, lane_assignment"),
        ({"shuffle_block_size": 8}, "rules of 'a', shuffle_block_size"),
        ({"stop_after_passes": 3}, "rules of 'a', stop_after_passes"),
        ({"reshuffle_on_repeat": False}, "rules of 'a', reshuffle_on_repeat"),
        ({"budget": {"a": 100}}, "rules of 'a', budget"),
    ],
)
def test_what_orders_rows_is_never_let_through(work, part):
    found = told({}, work)
    assert found[0][0] == part
    assert {word for *_, word in found} == {None}


def test_a_schedule_goes_with_weights_and_with_datasets():
    def schedule(**weights):
        return MixtureSchedule({100: weights})

    two = {"schedule": schedule(a=1, b=3)}
    assert [(part, word) for part, _, _, word in told({}, two)] == [("schedule", "weights")]
    assert [part for part, *_ in told(two, {"schedule": schedule(a=1, b=4)})] == ["schedule"]
    three = {"weights": {"a": 0.4, "b": 0.4, "c": 0.2}, "schedule": schedule(a=2, b=6, c=8)}
    assert [(part, word) for part, _, _, word in told(two, three)] == [("dataset 'c'", "datasets")]


def test_token_costs_are_known_by_their_dataset():
    def costs(**ratios):
        return {"token_estimation": TokenEstimation(primer=ratios)}

    found = told(costs(a=1, b=1), costs(a=1, b=2))
    assert [(part, word) for part, _, _, word in found] == [("token cost of 'b'", None)]
    grown = recipe(**costs(a=1, b=1), shards={"b": (4, 400)})
    grown["source"]["token_costs"]["b"] += 1  # a restored run has the costs of then
    assert [(c.part, c.word) for c in changes(recipe(**costs(a=1, b=1)), grown)] == [
        ("data of 'b', shard '1'", "data"),
        ("token cost of 'b'", None),
    ]


@pytest.mark.parametrize("size", ["auto", "global"])
def test_a_block_size_that_follows_from_the_data_is_no_change_of_its_own(size):
    before = {"shuffle_block_size": size}
    grown = {**before, "shards": {"a": (9, 3, 300)}}
    assert [(part, word) for part, _, _, word in told(before, grown)] == [
        ("data of 'a', shard '2'", "data")
    ]
    other = told({"shuffle_block_size": 5}, {**grown, "shuffle_block_size": 6})
    assert ("rules of 'a', shuffle_block_size", "5", "6", None) in other


def test_blocks_of_a_grown_dataset_follow_from_what_is_there_now():
    """What they were may have followed from other data, when shards were added the last time."""
    before, now = (recipe(shuffle_block_size="auto", shards={"a": n}) for n in ((9, 3), (9, 3, 3)))
    before["source"]["rules"]["a"]["shuffle_block_size"] = 7
    assert [(c.part, c.word) for c in changes(before, now)] == [
        ("data of 'a', shard '2'", "data"),
        ("rules of 'a', shuffle_block_size", "data"),
    ]
    now["source"]["rules"]["a"]["shuffle_block_size"] = 6
    assert [c.word for c in changes(before, now)] == ["data", None]
