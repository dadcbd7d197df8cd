"""Small recipes to verify, right ones and such with a fault in them."""

import itertools
import time

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource

ROWS = [
    {"tokens": [(7 * i + 3 * j) % 97 for j in range(3 + i % 11)], "weight": [i / 7] * (3 + i % 11)}
    for i in range(90)
]
WORDS = Dataset.from_dict("words", {0: InMemoryShard(ROWS[:50]), 1: InMemoryShard(ROWS[50:])})


def source(passes=40):
    return StaticMixtureWorkSource([WORDS], {"words": 1.0}, seed=3, stop_after_passes=passes)


def packed(pipeline, rows=24, microbatch=4, length=17):
    return (
        pipeline.pack_flat(
            length, algorithm="wrap", tokens_field="tokens", aligned_fields=["weight"]
        )
        .batch(microbatch)
        .options(global_batch_size=rows, canonical_replicas=4)
    )


def right(passes=40):
    return packed(Pipeline(source(passes)).shuffle(16, seed=1))


def plain_rows():
    return Pipeline(source()).options(global_batch_size=24, canonical_replicas=4)


def of_a_function(function):
    """Make recipes of a function that a checkpoint takes for the same whatever it does."""
    return lambda: packed(Pipeline(source()).map_transform(function, fingerprint="always"))


def counting():
    calls = itertools.count()
    return of_a_function(lambda row: {**row, "tokens": [next(calls), *row["tokens"][1:]]})


def timing():
    return of_a_function(lambda row: {**row, "weight": [time.perf_counter()] * len(row["tokens"])})


def by_pipeline():
    """Make each pipeline, so each rank, give tokens of its own."""
    made = itertools.count()

    def make():
        number = next(made)
        return of_a_function(lambda row: {**row, "tokens": [number, *row["tokens"][1:]]})()

    return make


def forgetful():
    """Make a pipeline with an operator that numbers rows, and begins anew when it is restored."""
    numbered = Pipeline(source(400)).stateful_transform(
        "number",
        init_state=lambda: [0],
        push=_number,
        snapshot=lambda state: list(state),
        restore=lambda saved: [0],
    )
    return packed(numbered, rows=16, length=129).options(canonical_replicas=1)


def _number(state, records):
    for record in records:
        record.payload["tokens"] = [state[0], *record.payload["tokens"][1:]]
        state[0] += 1
    return state, records
