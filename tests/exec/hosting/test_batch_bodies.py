"""Batches cross as bodies and are what they were, in memory of the body."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.properties.recipes import packed, source, text_dataset, token_dataset, two_datasets
from zephon import Pipeline
from zephon.exec.block import Bad, Why
from zephon.exec.hosting.batch_bodies import Sender, Taker
from zephon.types import SampleBatch


def crossed(sender, taker, together):
    pieces, size = sender.laid_out(together)
    body = bytearray(b"".join(bytes(memoryview(piece).cast("B")) for piece in pieces if len(piece)))
    assert len(body) == size
    return taker.together(memoryview(body)), size


PLANS = {
    "packed": lambda: packed(microbatch=2),
    "padded": lambda: (
        Pipeline(source(two_datasets()))
        .pack_flat(33, algorithm="best_fit", num_bins=2, pad_token_id=0)
        .batch(3, drop_last=False)
    ),
    "documents": lambda: Pipeline(source(two_datasets())).batch(3),
    "sequences": lambda: Pipeline(source(two_datasets())).pack_sequences(33, num_bins=2).batch(2),
    "rows": lambda: Pipeline(source([text_dataset("words", 40)])).batch(4),
    "functions": lambda: (
        Pipeline(source([token_dataset("prose", [3, 0, 5, 9] * 9)]))
        .map_transform(lambda payload: payload)
        .batch(4)
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_batches_are_equal_on_the_other_side(name):
    engine = PLANS[name]().options(runner="inline")._launch(None)
    sender, taker, sizes = Sender(), Taker(), []
    for together in engine.produced():
        for first in range(0, len(together), 3):
            some = together.some(first, min(first + 3, len(together)))
            found, size = crossed(sender, taker, some)
            sizes.append(size)
            for (handed, after), (came, then) in zip(some, found, strict=True):
                rows, other = handed.batch, came.batch
                assert list(came.bad) == list(handed.bad) == []
                assert SampleBatch.from_rows(rows) == SampleBatch.from_rows(other)
                assert rows.target_mixture == other.target_mixture
                assert (then.step, then.delivered) == (after.step, after.delivered)
                for column in other.fields.values():
                    assert column.values.flags.writeable
    assert len(sizes) > 2


def test_a_large_array_is_the_bodys_own_memory():
    engine = packed(max_length=2000, microbatch=1)._launch(None)
    together = next(engine.produced())
    pieces, _ = Sender().laid_out(together)
    body = bytearray(b"".join(bytes(memoryview(piece).cast("B")) for piece in pieces if len(piece)))
    found = Taker().together(memoryview(body))
    values = found.rows.fields["input_ids"].values
    assert np.shares_memory(values, np.frombuffer(body, np.uint8))
    assert values.nbytes == 16_000


def test_bad_rows_cross_with_the_batch_that_they_come_before():
    together = next(packed()._launch(None).produced())
    bad = [[] for _ in range(len(together))]
    bad[-1] = [Bad(0, 1, 2, True, Why("no text", None)), Bad(1, 0, 0, False, Why("raised", "map"))]
    (found, _) = crossed(Sender(), Taker(), replace(together, bad=bad))
    assert [list(handed.bad) for handed, _ in found] == bad


def test_what_batches_have_in_common_is_told_once():
    engine = packed()._launch(None)
    sender = Sender()
    one, other = itertools.islice(engine.produced(), 2)
    taker = Taker()
    crossed(sender, taker, one)
    crossed(sender, taker, other)
    with pytest.raises(ValueError, match="without their form"):
        crossed(sender, Taker(), one)
