"""Small recipes for properties: generated data, every kind of plan, and rows as plain values."""

from itertools import islice

import numpy as np

from zephon import Dataset, InMemoryShard, MixtureSpec, Pipeline, StaticMixtureWorkSource

NUMBERS = np.random.default_rng


def token_dataset(name, lengths, shards=2):
    """Make documents whose tokens tell where they come from: name, row, and place."""
    base = 1_000_000 * (1 + ord(name[0]) % 7)
    rows = [
        {"input_ids": list(range(base + 1000 * i, base + 1000 * i + length))}
        for i, length in enumerate(lengths)
    ]
    size = max(1, -(-len(rows) // shards))
    return Dataset.from_dict(
        name,
        {i: InMemoryShard(rows[i * size : (i + 1) * size]) for i in range(-(-len(rows) // size))},
    )


def text_dataset(name, count, seed=0, shards=3):
    """Make documents of words, some empty, some long."""
    rng = NUMBERS(seed)
    words = ["ash", "birch", "Cedar", "d'oak", "elm!", "fir\n", "größe", "木", " hazel ", "<eos>"]
    sizes = rng.choice([0, 1, 3, 10, 60], size=count)
    rows = [
        {"text": " ".join(rng.choice(words, size=size)), "id": i} for i, size in enumerate(sizes)
    ]
    size = -(-count // shards)
    return Dataset.from_dict(
        name, {i: InMemoryShard(rows[i * size : (i + 1) * size]) for i in range(shards)}
    )


def lengths(seed, count, most=40):
    rng = NUMBERS(seed)
    return (rng.integers(0, most, count) * (rng.random(count) < 0.9)).tolist()


def source(datasets, weights=None, **settings):
    weights = weights or {d.name: 1.0 for d in datasets}
    return StaticMixtureWorkSource(
        datasets=datasets, mixture=MixtureSpec(weights), **{"seed": 7, **settings}
    )


def two_datasets(seed=1):
    return [
        token_dataset("prose", lengths(seed, 160), 3),
        token_dataset("code", lengths(seed + 1, 90, 90), 2),
    ]


def packed(datasets=None, *, max_length=33, microbatch=2, drop_last=True, work=None, **options):
    """Build the main job over token lists."""
    settings = {"chunk_size": 8, "shuffle_within_shard": True, **(work or {})}
    found = datasets or two_datasets()
    weights = {d.name: w for d, w in zip(found, (0.7, 0.3, 0.2), strict=False)}
    return (
        Pipeline(source(found, weights, **settings))
        .pack_flat(max_length=max_length, algorithm="wrap")
        .batch(microbatch_size=microbatch, drop_last=drop_last)
        .options(**{"runner": "inline", **options})
    )


def rows(pipeline, batches=None):
    """Run a pipeline; give each delivered row with all that is known of it."""
    found = []
    for batch in islice(iter(pipeline), batches):
        found += rows_of(batch)
    return found


def rows_of(batch):
    training = batch.to_training(return_labels=True, dtype=np.int64)
    return [
        (
            training["ids"][i],
            batch.lane_ids[i],
            batch.lineage_paths[i],
            training["input_ids"][i].tobytes(),
            training["labels"][i].tobytes(),
            training["positions"][i].tobytes() if "positions" in training else b"",
        )
        for i in range(len(batch))
    ]


def states_along(pipeline, whole, every):
    """Run to the end; give the rows so far and the state, each so many batches and at the end."""
    items, count, number = iter(pipeline), 0, 0
    while count < len(whole):
        if number % every == 0:
            yield count, pipeline.checkpoint()
        found = rows_of(next(items))
        assert found == whole[count : count + len(found)]
        count, number = count + len(found), number + 1
    assert next(items, None) is None
    yield count, pipeline.checkpoint()


def tokens_of(batch):
    """Give all tokens of a batch, row after row."""
    return [t for record in batch.records for t in record.payload["input_ids"]]
