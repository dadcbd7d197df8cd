"""Ranks that can meet: one state of all, one end for all, and mistakes that are told on each.

Ranks are threads here; `test_many_ranks` has them in processes.
"""

import json
import subprocess
import sys
import textwrap
import threading

import polars as pl
import pytest

from tests.cases.test_ranks import plain, shards_of
from tests.coordination.meetings import at_once
from tests.properties.recipes import packed, rows, rows_of
from tests.written import in_order
from zephon import Pipeline
from zephon.coordination.rounds import StoreRounds, _Round
from zephon.errors import CheckpointError, CoordinationError, ExecutionError, PlanError


def together(make, ranks, use, **options):
    """Let ranks with one place to meet do something; give what each returned or raised."""
    meet = {"aggregate_store": {}, "aggregate_timeout_s": 20.0, **options}

    def one(rank):
        pipe = make(dp_degree=ranks, dp_group_id=rank)
        return use(pipe.options(**meet), rank)

    return at_once([lambda rank=rank: one(rank) for rank in range(ranks)])


def chain(step, **options):
    """Rows of one token each behind a step that nobody can count through, four lanes."""
    options = {"global_batch_size": 4, "canonical_replicas": 4, "runner": "inline", **options}
    return step(Pipeline(in_order(shards_of(40)))).batch(1).options(**options)


def lane_of(number):
    """Say which lane a row is dealt to."""
    found = {int(row[0][2]): row[1] for row in rows(chain(lambda pipe: pipe))}
    return found[number]


# One end


@pytest.fixture
def asked(monkeypatch):
    """Say whether the rank of this thread has asked something and not heard the answer."""
    here = threading.local()
    ask, least = StoreRounds.ask, _Round.least

    def noted(rounds, name, number):
        here.waits = True
        return ask(rounds, name, number)

    def heard(question):
        here.waits = False
        return least(question)

    monkeypatch.setattr(StoreRounds, "ask", noted)
    monkeypatch.setattr(_Round, "least", heard)
    return lambda: getattr(here, "waits", False)


def uneven(**options):
    return packed(
        max_length=29, microbatch=1, global_batch_size=12, canonical_replicas=4, **options
    )


@pytest.mark.parametrize("runner", ["inline", "threads"])
@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 12])
def test_ranks_whose_lanes_end_apart_end_together(ranks, runner, recwarn):
    whole = rows(uneven())
    found = together(uneven, ranks, lambda pipe, _: rows(pipe), runner=runner)
    share = 12 // ranks
    steps = len(whole) // 12
    assert [len(each) for each in found] == [steps * share] * ranks
    assert [
        row for t in range(steps) for each in found for row in each[t * share : (t + 1) * share]
    ] == whole
    assert not [each for each in recwarn if "ends where its own lanes end" in str(each.message)]


def test_what_is_left_at_the_common_end_counts_as_on_one_rank():
    one = uneven()
    rows(one)

    def use(pipe, _):
        rows(pipe)
        return json.dumps(pipe.checkpoint()), pipe.accounting()

    found = together(uneven, 3, use)
    assert {state for state, _ in found} == {json.dumps(one.checkpoint())}
    for _, account in found:
        for name, told in account.items():
            for lane, counted in told["lanes"].items():
                assert counted == one.accounting()[name]["lanes"][lane]


def test_a_filter_that_empties_a_rank_ends_all():
    """Nobody has a first step: who lacks it says why, and the others say who it is."""
    emptied = [number for number in range(40) if lane_of(number) == 2]
    first = pl.col("input_ids").list.get(0)

    def make(**options):
        return chain(lambda pipe: pipe.filter(~first.is_in(emptied)), **options)

    found = together(make, 4, lambda pipe, _: rows(pipe))
    assert [type(each) for each in found] == [ExecutionError] * 2 + [PlanError, ExecutionError]
    assert "the data end before the first step" in str(found[2])
    assert all("step 0: rank 2 (lane 2) failed" in str(found[rank]) for rank in (0, 1, 3))


def test_a_bad_row_on_one_rank_ends_all_before_its_step():
    bad = next(number for number in range(20, 40) if lane_of(number) == 1)

    def check(row):
        if row["input_ids"] == [bad]:
            raise ValueError("no good")
        return row

    def make(**options):
        return chain(lambda pipe: pipe.map_transform(check), **options)

    def use(pipe, _):
        came = []
        with pytest.raises(ExecutionError) as raised:
            came.extend(rows_of(batch) for batch in pipe)
        return len(came), str(raised.value)

    alone, message = use(make(), 0)
    found = together(make, 2, use)
    step = alone // 4
    assert step > 2 and "no good" in message
    assert found[0] == (2 * step, message)
    assert found[1][0] == 2 * step
    assert found[1][1].startswith(f"step {step}: rank 0 (lanes 0, 1) failed there")


def test_an_iteration_that_is_given_up_anywhere_leaves_nothing_to_the_next(asked):
    """Between a question and its answer, too: by closing, by a restored state, or by the end."""
    share, given_up = len(rows(uneven())) // 2, []
    dones = (0, 1, 7, share - 14, share - 13, share - 9, share)

    def use(pipe, rank):
        for done in dones:
            items = iter(pipe)
            for _ in range(done):
                next(items)
            if not rank:
                given_up.append(asked())
            if done % 2:
                items.close()
            else:
                pipe.restore(pipe.checkpoint())
            rest = rows(pipe)
            assert len(rest) == share - (0 if done % 2 else done)
        return True

    assert together(uneven, 2, use) == [True] * 2
    assert True in given_up and False in given_up


# One state


def test_a_checkpoint_may_come_between_a_question_and_its_answer(asked):
    one = uneven()
    items = iter(one)
    states = [json.dumps(one.checkpoint())]
    for _ in items:
        states.append(json.dumps(one.checkpoint()))
    between = []

    def use(pipe, rank):
        found = [json.dumps(pipe.checkpoint())]
        for _ in pipe:
            between.append((rank, asked()))
            pipe.checkpoint(scope="local")
            found.append(json.dumps(pipe.checkpoint()))
        return found

    found = together(uneven, 3, use)
    assert found[0] == found[1] == found[2]
    assert found[0][::4] == states[::12]  # whole steps
    assert {waits for _, waits in between} == {True, False}


@pytest.mark.parametrize("done", [0, 1, 5, 12])
def test_all_ranks_get_the_state_of_the_whole_job(done):
    def use(pipe, _):
        items = iter(pipe)
        for _ in range(done):
            next(items)
        state = pipe.checkpoint()
        after = [row for _, batch in zip(range(3), items, strict=False) for row in rows_of(batch)]
        items.close()
        again = pipe.restore(state)
        assert again.checkpoint() == state  # before it goes on, ranks say what they were given
        return json.dumps(state), rows(again, 3) == after

    found = together(uneven, 3, use)
    assert found[0][0] == found[1][0] == found[2][0]
    assert all(same for _, same in found)
    if not done % 4:
        one = uneven()
        items = iter(one)
        for _ in range(done * 3):
            next(items)
        assert found[0][0] == json.dumps(one.checkpoint())


def test_a_replica_leaves_and_comes_back_with_the_state_as_bytes():
    """From 4 ranks to 3 and to 4 again, in one process, without a file."""
    whole, done, state, place = rows(uneven()), [], None, {}
    for number, (ranks, steps) in enumerate([(4, 2), (3, 3), (4, 1)]):

        def use(pipe, _, ranks=ranks, steps=steps, state=state):
            if state is not None:
                pipe.restore(state)
            items = iter(pipe)
            own = [row for _ in range(steps * 12 // ranks) for row in rows_of(next(items))]
            saved = pipe.checkpoint(as_bytes=True)
            items.close()
            return own, saved

        found = together(uneven, ranks, use, aggregate_store=place, run_id=f"run {number}")
        share = 12 // ranks
        done += [row for t in range(steps) for own, _ in found for row in own[t * share :][:share]]
        state = found[0][1]
        assert {saved for _, saved in found} == {state}
    assert done == whole[: len(done)]


def test_ranks_at_different_batches_are_told():
    def use(pipe, rank):
        items = iter(pipe)
        for _ in range(4 + 4 * rank):
            next(items)
        return pipe.checkpoint()

    def known(**options):  # steps that are known beforehand: nobody asks for the end
        return plain(shards_of(90), global_batch_size=8, canonical_replicas=4, **options)

    found = together(known, 2, use)
    for each in found:
        assert isinstance(each, CheckpointError)
        assert "ranks do not stand at one place; " in str(each)
        assert "of different moments (rank 0 at step 1, rank 1 at step 2)" in str(each)


def test_peers_with_the_same_data_take_part_in_one_state():
    """Eight ranks, of which two each read the same data: tensor parallel peers."""

    def make(**rank):
        return uneven(world_size=8, global_rank=rank["dp_group_id"], dp_degree=4,
                      dp_group_id=rank["dp_group_id"] // 2)  # fmt: skip

    def use(pipe, _):
        items = iter(pipe)
        own = [row for _ in range(3) for row in rows_of(next(items))]
        return own, pipe.checkpoint()

    place = {}
    found = at_once(
        [
            lambda rank=rank: use(make(dp_group_id=rank).options(aggregate_store=place), rank)
            for rank in range(8)
        ]
    )
    assert [row for own, _ in found[::2] for row in own] == rows(uneven(), 12)
    assert all(one[0] == other[0] for one, other in zip(found[::2], found[1::2], strict=True))
    assert all(state == found[0][1] for _, state in found)
    assert found[0][1]["position"] == {"step": 1}


# Mistakes


def test_one_rank_alone_refuses_to_save_for_all():
    pipe = uneven(dp_degree=2, dp_group_id=1)
    next(iter(pipe))
    with pytest.raises(CoordinationError) as raised:
        pipe.checkpoint()
    assert str(raised.value) == (
        "checkpoint: rank 1 of 2 runs lanes 2, 3 of 4, and nothing is set by which ranks meet: set "
        "aggregate_dir or aggregate_store, start torch.distributed with as many ranks, or take a "
        "part on each rank with checkpoint(scope='local') and restore([part, part, ...])"
    )
    assert pipe.checkpoint(scope="local")["position"]["delivered"] == [None, 1]


def test_scope_is_one_of_two_words():
    with pytest.raises(PlanError, match="scope='locale' is unknown; did you mean 'local'"):
        uneven().checkpoint(scope="locale")


def test_two_places_to_meet_are_refused():
    with pytest.raises(PlanError, match="two places for ranks to meet; set one of them"):
        uneven(aggregate_dir="here").options(aggregate_store="torch://")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"world_size": 6, "dp_degree": 4}, "world_size=6 must be a multiple of dp_degree=4"),
        ({"world_size": 8, "dp_degree": 4, "global_rank": 5}, "set that of rank 5, the same as of"),
        ({"world_size": 4, "global_rank": 4}, r"global_rank must be in \[0, world_size=4\), got 4"),
        ({"dp_degree": 4, "dp_group_id": 4}, r"dp_group_id must be in \[0, dp_degree=4\), got 4"),
    ],
)
def test_identities_that_do_not_fit_say_what_to_set(options, says):
    with pytest.raises(PlanError, match=says):
        iter(uneven(**options))


def test_a_group_that_too_many_ranks_read_is_told_on_all():
    def make(**rank):
        return uneven(world_size=4, global_rank=rank["dp_group_id"], dp_degree=2,
                      dp_group_id=int(rank["dp_group_id"] > 0))  # fmt: skip

    place = {}
    found = at_once(
        [
            lambda rank=rank: make(dp_group_id=rank).options(aggregate_store=place).checkpoint()
            for rank in range(4)
        ]
    )
    for each in found:
        assert isinstance(each, PlanError)
        assert "1 of 4 ranks have dp_group_id=0, expected 2, since dp_degree=2" in str(each)


def test_ranks_that_think_of_different_worlds_are_told():
    place = {}

    def make(rank, world):
        pipe = uneven(dp_degree=world, dp_group_id=rank, aggregate_timeout_s=1.0)
        return pipe.options(aggregate_store=place)

    found = at_once([lambda: make(0, 2).checkpoint(), lambda: make(1, 3).checkpoint()])
    assert isinstance(found[0], PlanError)
    assert str(found[0]).startswith("options: world_size is 2 on rank 0 and 3 on rank 1")


def test_another_seed_on_one_rank_is_told():
    place = {}

    def save(rank):
        pipe = uneven(dp_degree=2, dp_group_id=rank, work={"seed": 9 + rank})
        return pipe.options(aggregate_store=place).checkpoint()

    for each in at_once([lambda: save(0), lambda: save(1)]):
        assert isinstance(each, PlanError)
        assert "ranks 0 and 1 run different recipes, they differ in source" in str(each)


def test_looking_at_data_meets_nobody():
    pipe = uneven(dp_degree=2, dp_group_id=0, aggregate_store={}, aggregate_timeout_s=1.0)
    assert len(pipe.collect(3)) == 3


# Meshes


def test_identities_come_from_a_device_mesh():
    """Every rank of a mesh of 2 x 2 x 2, as torch would have it in eight processes."""
    job = """
        import json, sys
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.testing._internal.distributed.fake_pg import FakeStore
        from zephon.options import from_device_mesh

        found = []
        for rank in range(8):
            dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=8)
            mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("replicate", "shard", "tp"))
            found.append([from_device_mesh(mesh, ("replicate", "shard")),
                          from_device_mesh(mesh, "shard")])
            dist.destroy_process_group()
        try:
            from_device_mesh(mesh, ("dp",))
        except ValueError as error:
            found.append(str(error))
        print(json.dumps(found))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(job)], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    *found, refused = json.loads(done.stdout)
    for rank, (both, shard) in enumerate(found):
        here = {"world_size": 8, "global_rank": rank}
        assert both == {**here, "dp_degree": 4, "dp_group_id": rank // 2}
        assert shard == {**here, "dp_degree": 2, "dp_group_id": rank // 2 % 2}
    assert refused.startswith("from_device_mesh: the mesh has no dimension 'dp'; known are:")
