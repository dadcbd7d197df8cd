"""With estimated tokens, weights are shares of tokens: as close as the estimate is to the truth."""

import json
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import written
from tests.properties.recipes import rows, rows_of, source, token_dataset
from zephon import Pipeline
from zephon.errors import CheckpointError
from zephon.work import TokenEstimation


def estimated(datasets, weights=None, *, work=None, **estimation):
    settings_ = {"chunk_size": 32, "shuffle_within_shard": True, **(work or {})}
    return source(datasets, weights, token_estimation=TokenEstimation(**estimation), **settings_)


def packed(source_, **options):
    return (
        Pipeline(source_)
        .pack_flat(64, algorithm="wrap")
        .batch(2)
        .options(**{"runner": "inline", **options})
    )


def tokens_made(pipeline):
    """Run to the end; give the tokens that were made of each component."""
    for _ in pipeline:
        pass
    return {name: each["tokens_made"] for name, each in pipeline.accounting().items()}


def lognormal(seed, count, sigma):
    return np.rint(np.random.default_rng(seed).lognormal(2, sigma, count)).astype(int).tolist()


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.9, 0.1), (0.02, 0.98)])
@pytest.mark.parametrize("lanes", [1, 4])
def test_documents_of_one_and_of_a_thousand_tokens_share_as_weighed(weights, lanes):
    datasets = [token_dataset("ones", [1] * 3_000, 4), token_dataset("longs", [1_000] * 40, 3)]
    made = estimated(datasets, dict(zip(("ones", "longs"), weights, strict=True)))
    found = tokens_made(packed(made, canonical_replicas=lanes))
    assert made.token_costs == {"ones": 1.0, "longs": 1_000.0}
    off = found["ones"] - weights[0] * sum(found.values())
    assert abs(off) <= 1_001 * lanes  # a draw of each in a lane


@pytest.mark.parametrize("seed", range(4))
def test_realised_shares_are_as_far_off_as_the_estimate(seed):
    """Heavy-tailed lengths, shards of different kinds, more rows than are counted."""
    flat = lognormal(seed, 6_000, 0.4)
    skewed = [length for each in (0.5, 1.0, 1.7) for length in lognormal(seed, 1_500, each)]
    datasets = [token_dataset("flat", flat, 5), token_dataset("skewed", skewed, 9)]
    made = estimated(datasets, {"flat": 0.4, "skewed": 0.6}, calibration_samples=500)
    found = tokens_made(packed(made))
    truth = {"flat": np.mean(flat), "skewed": np.mean(skewed)}
    off = {name: made.token_costs[name] / truth[name] - 1 for name in truth}
    assert max(map(abs, off.values())) < 0.03
    assert found["flat"] / sum(found.values()) == pytest.approx(0.4, abs=0.02)


def test_counting_more_rows_than_there_are_makes_it_exact():
    skewed = lognormal(5, 3_000, 1.7)
    data = token_dataset("skewed", skewed, 9)
    made = estimated([data], calibration_samples=3_000)
    packed(made).fingerprint()
    assert made.token_costs["skewed"] == pytest.approx(np.mean(skewed), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.integers(1, 300)), min_size=1, max_size=12),
    st.integers(1, 5),
)
def test_every_prefix_of_a_lane_is_within_a_draw_of_each_component(parts, lanes):
    datasets = [token_dataset(f"{i}", [length] * 20, 1) for i, (_, length) in enumerate(parts)]
    weights = {f"{i}": weight for i, (weight, _) in enumerate(parts)}
    made = estimated(datasets, weights, work={"exhausted_policy": "repeat"})
    packed(made).fingerprint()
    cost = np.array([made.token_costs[name] for name in weights])
    share = np.array(list(weights.values())) / sum(weights.values())
    for lane in range(lanes):
        drawn = made.lane_stream(lane, lanes).draw(0, 400).component
        counts = np.cumsum(drawn[:, None] == np.arange(len(parts)), axis=0)
        tokens = counts * cost
        target = tokens.sum(axis=1, keepdims=True) * share
        assert (np.abs(tokens - target) <= cost + share * cost.sum() + 1e-6).all()


def test_a_run_goes_on_after_any_batch_with_the_costs_that_it_began_with():
    def make(factor=1):
        datasets = [
            token_dataset("flat", lognormal(1, 90, 0.3), 2),
            token_dataset("skewed", lognormal(2, 60, 1.5), 3),
        ]
        return packed(
            estimated(datasets, measure=lambda row: factor * len(row["input_ids"])),
            canonical_replicas=2,
        )

    whole = rows(make())
    assert len(whole) > 20
    for batches in range(0, len(whole) // 2 + 1, 3):
        pipeline = make()
        items = iter(pipeline)
        head = [row for batch in islice(items, batches) for row in rows_of(batch)]
        state = json.loads(json.dumps(pipeline.checkpoint()))
        items.close()
        # Another measure would give other costs: a restore does not ask it.
        assert head + rows(make(factor=5).restore(state)) == whole
    assert rows(make(factor=5)) == whole  # a common factor changes no share


def test_data_that_changed_are_measured_by_a_new_run_only(tmp_path):
    def make():
        return packed(estimated([written_tokens(tmp_path), token_dataset("ones", [1] * 50)]))

    def written_tokens(folder):
        from zephon import Dataset

        return Dataset.from_path("files", folder)

    written.parquet(tmp_path, "000.parquet", [{"input_ids": [7] * 10}] * 40)
    first = make()
    items = iter(first)
    next(items)
    state = first.checkpoint()
    items.close()
    written.parquet(tmp_path, "001.parquet", [{"input_ids": [7] * 30}] * 40)
    again = make()
    with pytest.raises(CheckpointError) as raised:
        iter(again.restore(state))
    assert "data of 'files', shard '001.parquet': was not there" in str(raised.value)
    assert "token cost" not in str(raised.value)
    fresh = make()
    fresh.fingerprint()
    assert fresh._source.token_costs["files"] == pytest.approx(20)


SCRIPT = """
import sys
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.work import MixtureSpec, StaticMixtureWorkSource, TokenEstimation

print("begin")
shards = {i: InMemoryShard([{"text": "ash " * 9}] * 90) for i in range(3)}
source = StaticMixtureWorkSource(
    [Dataset.from_dict("words", shards)], MixtureSpec({"words": 1.0}),
    token_estimation=TokenEstimation(calibration_samples=64),
)
pipeline = (
    Pipeline(source)
    .tokenize(tokenizer_id=sys.argv[1], field="text", add_attention_mask=False)
    .pack_flat(16, algorithm="wrap")
    .batch(2)
    .options(runner="threads")
)
for batch in pipeline:
    pass
print(source.token_costs["words"])
"""


def test_a_script_needs_no_main_guard(tmp_path, tokenizer_file):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    found = subprocess.run(
        [sys.executable, str(script), tokenizer_file], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
    begin, cost = found.stdout.split()
    assert begin == "begin"  # once: no process runs the script again
    assert float(cost) > 9
