"""Every step on another number of ranks, each from the parts of those before: one and the same run.

A rank is a pipeline in a thread of its own. Within a step a few ranks stop at different places, and
as many go on; behind it others do, from the list of all parts.
"""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, permutations

import polars as pl
import pytest

from tests.properties import chains, function_chains
from tests.properties.function_chains import flat, grouped, in_pairs, marked, shorter, summed
from tests.properties.recipes import rows_of, source, text_dataset
from zephon import Pipeline
from zephon.errors import CheckpointError
from zephon.work import MixtureSchedule

R = 24
DEGREES = (1, 2, 3, 4, 6, 8, 12)
LANES = (4, 3, 8, 1, 24)
WALK = [DEGREES[i * way % 7] for way in range(1, 7) for i in range(7)]
"""Once from each number to each other, and back to the first of all."""


def start(**work):
    return function_chains.start(**{"exhausted_policy": "repeat", **work})


def split(tokenizer_file):
    texts = source([text_dataset("words", 90)], exhausted_policy="repeat", chunk_size=4)
    pipeline = Pipeline(texts).tokenize(
        tokenizer_id=tokenizer_file, field="text", split_long_samples=True, max_length=12
    )
    return flat(pipeline.shuffle(9), "first_fit")


SHIFT = MixtureSchedule({60: {"prose": 0.2, "code": 0.8}}, unit="samples")
MAKE = {
    **{
        f"packer {name}": lambda _, pack=pack: pack(chains.start(exhausted_policy="repeat"))
        for name, pack in chains.PACKERS.items()
    },
    "filter": lambda _: flat(start().filter(pl.col("n") % 3 > 0)),
    "filter, map, shuffle": lambda _: flat(
        start().filter(pl.col("n") > 5).map_transform(shorter).shuffle(40), "first_fit"
    ),
    "split": split,
    "map behind packing": lambda _: flat(start()).map_transform(marked).shuffle(6),
    "blocks": lambda _: flat(start().shuffle(50, algorithm="block")),
    "mixture": lambda _: flat(start().ensure_mixture(max_buffer_size=30), "first_fit"),
    "exact tokens": lambda _: flat(start(mixture_unit="tokens").shuffle(30, seed=2)),
    "exact tokens, filter": lambda _: flat(
        start(mixture_unit="tokens").filter(pl.col("k") % 4 > 0), "first_fit"
    ),
    "schedule": lambda _: flat(start(schedule=SHIFT)),
    "groups": lambda _: flat(grouped(start())),
    "state": lambda _: flat(summed(start().shuffle(30)), "first_fit"),
    "state written down": lambda _: flat(
        summed(start(), snapshot=function_chains.as_it_is, restore=function_chains.as_it_is)
    ),
    "two with memory": lambda _: flat(summed(in_pairs(start()).shuffle(10)).map_transform(shorter)),
}
pytestmark = pytest.mark.filterwarnings("ignore:packing dropped", "ignore:stateful_transform")


def run(pipeline, batches):
    """Hand out some batches; give their rows and the state behind them."""
    items = iter(pipeline)
    found = [row for batch in islice(items, batches) for row in rows_of(batch)]
    state = pipeline.checkpoint(scope="local")
    items.close()
    return found, state


class Run:
    """One recipe on any number of ranks."""

    def __init__(self, make, lanes):
        self.make = make
        self.lanes = lanes

    def rank(self, degree, group, microbatch, parts):
        pipeline = self.make().batch(microbatch)
        pipeline.options(runner="inline", global_batch_size=R, canonical_replicas=self.lanes)
        pipeline.options(dp_degree=degree, dp_group_id=group, auto_validation="off")
        return pipeline if parts is None else pipeline.restore(parts)

    def ranks(self, degree, microbatch, parts, batches):
        """Let each rank, in a thread, hand out its number of batches from a list of parts on."""

        def one(group):
            return run(self.rank(degree, group, microbatch, parts), batches[group])

        with ThreadPoolExecutor(degree) as pool:
            found = list(pool.map(one, range(degree)))
        return [rows for rows, _ in found], [state for _, state in found]

    def step(self, degree, parts, rng):
        """Hand out a step; a few ranks stop within it, each at another place. Give new parts."""
        share = R // degree
        if degree > 4:
            rows, parts = self.ranks(degree, share, parts, [1] * degree)
            return [row for rank in rows for row in rank], parts
        size = rng.choice([size for size in (2, 3, 4, share) if share % size == 0])
        first = [rng.randrange(share // size) for _ in range(degree)]
        heads, within = self.ranks(degree, size, parts, first)
        tails, parts = self.ranks(degree, size, within, [share // size - count for count in first])
        rows = [head + tail for head, tail in zip(heads, tails, strict=True)]
        return [row for rank in rows for row in rank], parts


def test_all_ways_are_gone():
    pairs = {(WALK[at % len(WALK)], WALK[(at + 1) % len(WALK)]) for at in range(2 * len(MAKE))}
    assert pairs == set(permutations(DEGREES, 2))


@pytest.mark.parametrize("name", MAKE)
def test_each_step_on_another_number_of_ranks(name, tokenizer_file):
    rng = random.Random(name)
    number = list(MAKE).index(name)
    job = Run(lambda: MAKE[name](tokenizer_file), LANES[number % len(LANES)])
    degrees = [WALK[(2 * number + hop) % len(WALK)] for hop in range(3)]
    one = job.rank(1, 0, R, None)
    items = iter(one)
    parts = None
    for step, degree in enumerate(degrees, 1):
        wanted = rows_of(next(items))
        found, parts = job.step(degree, parts, rng)
        assert found == wanted, (step, degree)
        rng.shuffle(parts)
        state = job.rank(1, 0, 1, parts).checkpoint()
        assert json.dumps(state) == json.dumps(one.checkpoint()), (step, degree)
    items.close()


def test_parts_of_an_older_larger_run_are_not_mixed_in():
    """Four ranks saved over the files of eight, of which those of ranks 4 to 7 are still there."""
    job = Run(lambda: MAKE["packer wrap"](None), 4)
    _, old = job.ranks(8, 3, None, [1] * 8)
    rows, new = job.ranks(4, 6, old, [2] * 4)
    assert all(rows)
    with pytest.raises(
        CheckpointError, match=r"\(parts 4, 5, 6, 7 at step 1, parts 0, 1, 2, 3 at step 3\): pass"
    ):
        job.rank(4, 0, 6, [*new, *old[4:]])
    straight, _ = run(job.rank(1, 0, R, None), 4)
    for degree in (1, 2, 3, 4, 6, 8):
        found, _ = job.ranks(degree, 1, new, [R // degree] * degree)
        assert [row for rank in found for row in rank] == straight[3 * R :]


def test_the_ranks_of_the_last_steps_of_finite_data():
    """To the last step that all lanes hold, which no rank knows beforehand."""
    twice = source(chains.DATASETS, chains.WEIGHTS, stop_after_passes=2, chunk_size=8)
    job = Run(lambda: chains.flat(Pipeline(twice), "best_fit"), 3)
    whole, state = run(job.rank(1, 0, R, None), None)
    steps = state["position"]["step"]
    assert state["ended"]
    assert steps >= 3
    rng = random.Random(3)
    parts, found = None, []
    for step in range(steps):
        rows, parts = job.step(DEGREES[step % 4 + 1], parts, rng)
        found += rows
    assert found == whole
    with pytest.warns(RuntimeWarning, match="rank . of 3 ends where its own lanes end"):
        rows, last = job.ranks(3, 1, parts, [8] * 3)
    assert any("ended" in part for part in last)
    assert min(map(len, rows)) == 0
