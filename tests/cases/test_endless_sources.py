"""Sources that repeat without end and give nothing: neither memory nor time is lost on them."""

import pytest

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.errors import ExecutionError


def pipeline(lengths, **work):
    rows = [{"input_ids": [1] * length} for length in lengths]
    data = Dataset.from_dict("data", {0: InMemoryShard(rows)})
    return Pipeline(StaticMixtureWorkSource([data], {"data": 1.0}, **work)).options(runner="inline")


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.filterwarnings("ignore:packing dropped")
def test_documents_that_are_all_too_long_end_an_endless_run_with_the_reason(lanes):
    endless = pipeline([30, 40, 50] * 40, exhausted_policy="repeat")
    endless.pack_flat(20, num_bins=2, pad_token_id=0).batch(1)
    endless.options(canonical_replicas=lanes)
    with pytest.raises(ExecutionError, match="no row was finished while all of them passed twice"):
        next(iter(endless))


def test_empty_documents_end_an_endless_run():
    endless = pipeline([0, 0, 0], exhausted_policy="repeat").pack_flat(4, algorithm="wrap")
    with pytest.raises(ExecutionError, match="the data repeat without end"):
        next(iter(endless.batch(1)))


def test_a_buffer_wider_than_the_data_fills_and_gives():
    endless = pipeline([2, 3], exhausted_policy="repeat").shuffle(500, algorithm="block")
    assert len(next(iter(endless.pack_flat(4, algorithm="wrap").batch(8)))) == 8


@pytest.mark.filterwarnings("ignore:packing dropped", "ignore:the data end")
def test_what_is_dropped_is_let_go_of_while_no_row_is_finished():
    long = pipeline([9_000] * 500, stop_after_passes=4)
    long.pack_flat(20, num_bins=2, pad_token_id=0).batch(1)
    held = []
    engine = long._launch(None)
    (run,) = engine.lanes.values()
    push = run.push

    def watched(*arguments):
        push(*arguments)
        held.append(sum(part.tokens for part in run.held.parts.values()))

    run.push = watched
    assert list(engine.items()) == []
    assert sum(int(part.sum()) for part in run.dropped_tokens().values()) == 9_000 * 2_000
    assert max(held) < 6_000_000
    assert len(run.history._ticks) <= 2
