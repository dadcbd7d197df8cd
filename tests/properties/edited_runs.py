"""Runs to edit in the middle: rows tell what was drawn; and what each component gives alone."""

import json
from functools import cache
from itertools import islice

import numpy as np

from tests.properties.recipes import source, token_dataset
from zephon import Pipeline
from zephon.exec.session import state_of
from zephon.work import TokenEstimation

LANES = 2
LENGTHS = {
    "prose": [1 + i % 7 for i in range(61)],
    "code": [1 + i % 5 for i in range(40)],
    "maths": [2 + i % 3 for i in range(23)],
}
DATASETS = [token_dataset(name, found, 3) for name, found in LENGTHS.items()]
NAMES = list(LENGTHS)
EVEN = dict.fromkeys(NAMES, 1.0)
UNLIKE = {"prose": 0.1, "code": 0.7, "maths": 0.2}
NUMBER = {name: 1 + ord(name[0]) % 7 for name in LENGTHS}
SIZES = {
    (NUMBER[name], 1000 * row): length
    for name, found in LENGTHS.items()
    for row, length in enumerate(found)
}
ESTIMATED = TokenEstimation(primer={"prose": 0.5, "code": 0.25, "maths": 0.4})
UNITS = {
    "samples": {},
    "estimated tokens": {"token_estimation": ESTIMATED},
    "exact tokens": {"mixture_unit": "tokens"},
}


def drawn(weights=EVEN, datasets=DATASETS, *, rows_in_step=8, **work):
    """A pipeline whose rows hold the documents in the order in which they are drawn."""
    settings = {"chunk_size": 3, "shuffle_within_shard": True, "exhausted_policy": "repeat"}
    mixed = source(datasets, weights, **{**settings, **work})
    return (
        Pipeline(mixed)
        .pack_flat(8, algorithm="wrap")
        .batch(2)
        .options(runner="inline", canonical_replicas=LANES, global_batch_size=rows_in_step)
    )


def cut(pipeline, batches):
    """Give the rows of so many batches, and the state behind them."""
    items = iter(pipeline)
    found = [row for batch in islice(items, batches) for row in lanes_of(batch)]
    state = json.loads(json.dumps(pipeline.checkpoint(scope="local")))
    items.close()
    return found, state


def lanes_of(batch):
    """Give the lane of each row of a batch, and its tokens."""
    tokens = batch.to_training(return_labels=False, dtype=np.int64)["input_ids"]
    return list(zip(batch.lane_ids, tokens.tolist(), strict=True))


def documents_of(found):
    """Tell the lane, the component and the number of each document that begins in some rows."""
    return [
        (lane, token // 1_000_000, token % 1_000_000)
        for lane, tokens in found
        for token in tokens
        if token % 1000 == 0
    ]


def each_alone(found):
    """Tell, of each lane and component, which documents came, in order."""
    alone = {}
    for lane, component, document in documents_of(found):
        alone.setdefault((lane, component), []).append(document)
    return alone


def restored_state(pipeline, state):
    """Give the state of a run that was restored and has handed out nothing."""
    return json.loads(json.dumps(state_of(pipeline.restore(state)._launch(state))))


@cache
def alone():
    """Each component of each lane as it comes where there is no other."""
    found = {}
    for dataset in DATASETS:
        found |= each_alone(cut(drawn({dataset.name: 1.0}, [dataset]), 400)[0])
    return found


def check_places(found):
    """Each component goes on at its own place, whatever was edited: none is lost or repeated."""
    assert found
    for key, documents in each_alone(found).items():
        assert documents == alone()[key][: len(documents)]


def first_of(pipeline):
    """Give the state of a run that was restored with words and has handed out nothing."""
    return json.loads(json.dumps(state_of(pipeline._launch(pipeline._restored))))


def tokens_of(batch):
    return [
        (lane, record.payload["input_ids"])
        for lane, record in zip(batch.lane_ids, batch.records, strict=True)
    ]
