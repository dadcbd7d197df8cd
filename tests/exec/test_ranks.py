"""A pipeline that knows of one rank, in a process that trains with others."""

import warnings

import pytest
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from tests.properties.recipes import token_dataset
from tests.written import in_order
from zephon import Pipeline

RANK, WORLD = 1, 4


@pytest.fixture
def rank_of_four():
    """Let torch.distributed run, with a backend whose other ranks nobody asks."""
    dist.init_process_group("fake", rank=RANK, world_size=WORLD, store=FakeStore())
    yield
    dist.destroy_process_group()


def pipe(**options):
    made = Pipeline(in_order(token_dataset("rows", [2] * 16))).batch(2)
    return made.options(runner="inline", **options)


@pytest.mark.usefixtures("rank_of_four")
def test_ranks_that_would_all_read_the_same_are_told_what_to_set():
    with pytest.warns(RuntimeWarning) as caught:
        assert len(list(pipe())) == 8
    (warning,) = caught
    assert warning.filename == __file__
    for said in ("runs with 4 ranks", "set world_size=4 and global_rank=1", "dp_degree=1 if all"):
        assert said in str(warning.message)


@pytest.mark.usefixtures("rank_of_four")
@pytest.mark.parametrize(
    "options",
    [{"dp_degree": 4, "dp_group_id": 1}, {"dp_degree": 1}, {"world_size": 1}],
    ids=["ranks", "the same for all", "one rank reads"],
)
def test_what_is_said_about_ranks_is_taken_at_its_word(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert next(iter(pipe(canonical_replicas=4, **options)))


@pytest.mark.usefixtures("rank_of_four")
def test_a_look_at_the_data_beside_the_job_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pipe().head(4).num_rows == len(pipe().collect(2)) * 2 == 4


def test_one_process_is_not_warned():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(pipe())) == 8
