"""Small plans for tests of rules: made by hand, without any data."""

from zephon.io.fields import Field
from zephon.planner.logical import (
    Batch,
    EnsureMixture,
    Fetch,
    PackFlat,
    PackSequences,
    Prefetch,
    ReadComponent,
    Shuffle,
    Tokenize,
)


def fetch(**changes):
    fields = (Field("text", "text"), Field("url", "text"), Field("score", "scalar"))
    prose = ReadComponent(
        name="prose", dataset="prose", share=1.0, shards=2, rows=100, bytes=4000,
        fields=fields, fields_complete=True,
    )  # fmt: skip
    return Fetch(**{"components": (prose,), **changes})


def token_lists(**changes):
    fields = (Field("id", "scalar"), Field("tokens", "tokens"))
    lists = ReadComponent(
        name="lists", dataset="lists", share=1.0, shards=1, rows=100, bytes=4000,
        fields=fields, fields_complete=True,
    )  # fmt: skip
    return Fetch(**{"components": (lists,), **changes})


def tokenize(below=None, **changes):
    arguments = {"tokenizer": None, "tokenizer_id": "tok", "field": "text", **changes}
    return Tokenize(input=below if below is not None else fetch(), **arguments)


def pack(below=None, **changes):
    arguments = {"max_length": 16, "algorithm": "wrap", "tokens_field": "input_ids", **changes}
    return PackFlat(input=below if below is not None else tokenize(), **arguments)


def pack_sequences(below=None, **changes):
    arguments = {
        "max_length": 16, "algorithm": "best_fit", "num_bins": 4, "tokens_field": "input_ids",
        **changes,
    }  # fmt: skip
    return PackSequences(input=below if below is not None else tokenize(), **arguments)


def shuffle(below=None, **changes):
    return Shuffle(input=below if below is not None else fetch(), **{"buffer_size": 8, **changes})


def mix(below=None, **changes):
    return EnsureMixture(input=below if below is not None else tokenize(), **changes)


def size_of(row):
    """Measure a row as a user may."""
    return len(row)


def batch(below=None, **changes):
    return Batch(input=below if below is not None else pack(), **{"microbatch_size": 2, **changes})


def sample_plans():
    return {
        "raw rows": fetch(),
        "raw batches": batch(fetch()),
        "tokens": tokenize(),
        "kept payload": tokenize(preserve_upstream_payload=True),
        "padded": batch(tokenize(padding="max_length", max_length=9)),
        "split": batch(tokenize(split_long_samples=True, max_length=7)),
        "packed": batch(),
        "packed, no mask": batch(pack(tokenize(add_attention_mask=False))),
        "packed, payload kept below": batch(pack(tokenize(preserve_upstream_payload=True))),
        "packed after prefetch": batch(pack(tokenize(Prefetch(input=fetch())))),
        "packed token lists": batch(pack(token_lists(), tokens_field="tokens")),
        "shuffled rows": batch(shuffle()),
        "shuffled, packed, shuffled": batch(shuffle(pack(tokenize(shuffle())), seed=1)),
        "shuffled before a split": batch(
            pack(tokenize(shuffle(), split_long_samples=True, max_length=7))
        ),
        "mixed by a field": batch(pack(mix(weight_by="field", weight_field="url"))),
        "mixed by a function": mix(weight_by="function", weight_function=size_of),
        "side by side": batch(pack_sequences()),
        "side by side, whole rows": batch(
            pack_sequences(tokenize(preserve_upstream_payload=True), length_fn=size_of)
        ),
        "reordered windows": batch(pack(shuffle_strategy="random", shuffle_seed=3)),
    }
