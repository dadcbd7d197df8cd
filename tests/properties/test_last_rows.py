"""Rows that only the end of a lane lets go: resumed at each, even after draws that gave none."""

from itertools import islice

import polars as pl
import pytest

from tests.properties.recipes import source
from zephon import Dataset, InMemoryShard, Pipeline

POLICIES = ["redistribute", "stop", None]


def made(keep, *, count=6, names="ab", algorithm="first_fit", max_length=33, work=None, **options):
    """Build a packed job over rows of 5 tokens, of which those of ``keep`` stay."""
    found = [
        Dataset.from_dict(
            name, {0: InMemoryShard([{"input_ids": [i] * 5, "at": i} for i in range(count)])}
        )
        for name in names
    ]
    given = {"mixture_unit": "tokens", "exhausted_policy": "redistribute", **(work or {})}
    steps = Pipeline(source(found, shuffle_shards=False, **given))
    if keep is not None:
        steps = steps.filter(pl.col("at").is_in(keep))
    bins = 2 if algorithm == "first_fit" else None
    return steps.pack_flat(
        max_length, algorithm=algorithm, tokens_field="input_ids", pad_token_id=0, num_bins=bins
    ).options(**{"runner": "inline", **options})


def told(pipeline, rows=None):
    """Give rows, with what is counted after each and at last."""
    found, items = [], iter(pipeline)
    for row in islice(items, rows):
        found.append((repr(row.payload), row.meta.sample_id, str(pipeline.accounting())))
    if rows is None:
        found.append(str(pipeline.accounting()))
    items.close()
    return found


def check_every_cut(make):
    whole = told(make())
    for rows in range(len(whole)):
        pipeline = make()
        head = told(pipeline, rows)
        state = pipeline.checkpoint(as_bytes=True)
        restored = make().restore(state)
        assert head + told(restored) == whole, rows
        assert head + told(make(runner="threads").restore(state)) == whole, rows
    return len(whole) - 1


@pytest.mark.parametrize("algorithm", ["first_fit", "best_fit_wrap"])
@pytest.mark.parametrize("lanes", [1, 2, 3])
@pytest.mark.parametrize(
    "keep", [[0], [2], [3], [5], [0, 1], [4, 5], [0, 2, 4], [1, 3, 5], None], ids=str
)
def test_draws_without_documents_at_the_end(keep, lanes, algorithm):
    def make(**options):
        return made(keep, algorithm=algorithm, canonical_replicas=lanes, **options)

    assert check_every_cut(make)


@pytest.mark.parametrize("names", ["a", "abc"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("unit", ["tokens", "samples"])
def test_any_end_of_any_mixture(unit, policy, names):
    work = {"mixture_unit": unit, "exhausted_policy": policy}
    for keep in ([3], [0, 2, 4], [5]):
        check_every_cut(
            lambda keep=keep, **options: made(
                keep, names=names, work=work, max_length=11, canonical_replicas=2, **options
            )
        )


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("count", [1024, 2048, 1100])
def test_no_row_before_the_end_which_is_at_a_tick(count, lanes):
    """A tick is noted with the last draw before it, and none may follow."""
    assert check_every_cut(
        lambda **options: made(
            None, count=count, max_length=50_000, canonical_replicas=lanes, **options
        )
    )
