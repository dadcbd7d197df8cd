"""Small pipelines that differ in one thing, and what is told of the difference."""

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.exec.recipe_changes import changes


def above(limit):
    def keep(row):
        return row if row["n"] > limit else None

    return keep


def data(name, shards):
    rows = [[{"n": i, "text": "x", "input_ids": [1] * 3} for i in range(n)] for n in shards]
    return Dataset.from_dict(name, {i: InMemoryShard(each) for i, each in enumerate(rows)})


SHARDS = {"a": (9, 3), "b": (4,), "c": (5,)}
HALVES = {"a": 0.5, "b": 0.5}


def pipe(weights=None, steps=lambda p: p, order=None, shards=None, options=None, **work):
    weights = weights or HALVES
    made = [data(name, {**SHARDS, **(shards or {})}[name]) for name in order or weights]
    return steps(Pipeline(StaticMixtureWorkSource(made, weights, **work))).options(
        runner="inline", canonical_replicas=2, **(options or {})
    )


def packed(length=64, **arguments):
    return lambda p: p.pack_sequences(length, num_bins=4, **arguments).batch(1)


def recipe(**changed):
    return pipe(**changed).checkpoint()["recipe"]


def told(before, after):
    """List part, old text, new text and word of each change."""
    found = changes(recipe(**before), recipe(**after))
    assert all(change.why for change in found if change.word is None)
    return [(change.part, change.was, change.now, change.word) for change in found]
