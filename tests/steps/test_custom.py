"""Calls that add operators of the user: records in groups, with and without memory."""

import os

import pytest

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.errors import ExecutionError
from zephon.ops import BaseOp, CountingAccumulator, OpTraits
from zephon.types import SampleRecord

ROWS = [{"text": f"word {i}", "value": i} for i in range(150)]


def pipeline(**options):
    dataset = Dataset.from_dict("a", {0: InMemoryShard(ROWS)})
    source = StaticMixtureWorkSource(
        datasets=[dataset], mixture={"a": 1.0}, shuffle_shards=False, chunk_size=64
    )
    return Pipeline(source).options(**options)


def numbered(records):
    return [SampleRecord(r.meta, {**r.payload, "n": len(records)}) for r in records]


def values(pipe, name):
    return [record.payload[name] for record in pipe]


def test_functions_see_what_is_left_of_64_draws():
    pipe = pipeline().map_transform(lambda row: row if row["value"] % 2 else None)
    pipe.add_op("mine", process_many=numbered, preserves_cursor_order=True)
    assert values(pipe, "n") == [32] * 64 + [11] * 11


def test_behind_a_shuffle_they_see_64_records():
    pipe = pipeline().shuffle(16)
    pipe.add_op("mine", process_many=numbered, preserves_cursor_order=True)
    assert sorted(values(pipe, "n")) == [22] * 22 + [64] * 128


def test_an_accumulator_says_what_comes_together():
    pipe = pipeline().add_op(
        "mine",
        process_many=numbered,
        preserves_cursor_order=True,
        accumulator=lambda: CountingAccumulator(40),
    )
    assert values(pipe, "n") == [40] * 120 + [30] * 30


class Upper(BaseOp):
    """Writes text large, and knows of its setup."""

    def __init__(self, suffix):
        super().__init__()
        self.suffix = suffix
        self.ready = False

    def traits(self):
        return OpTraits(preserves_cursor_order=True, parallelism=2)

    def setup(self, ctx):
        super().setup(ctx)
        self.ready = ctx.get("get_component_id")("a") == 0

    def process_many(self, records):
        assert self.ready
        for record in records:
            record.payload["text"] = record.payload["text"].upper() + self.suffix
        return records


def test_an_instance_is_copied_and_set_up_where_it_runs():
    op = Upper("!")
    assert values(pipeline().add_op(op), "text") == [f"WORD {i}!" for i in range(150)]
    assert not op.ready


def test_a_checkpoint_knows_the_arguments_of_an_instance():
    state = pipeline().add_op(Upper("!")).batch(2).checkpoint()
    assert list(pipeline().add_op(Upper("!")).batch(2).restore(state))
    with pytest.raises(RuntimeError, match="another recipe"):
        list(pipeline().add_op(Upper("?")).batch(2).restore(state))


def test_state_is_kept_from_group_to_group_and_begins_anew_at_barriers():
    def push(seen, records):
        for record in records:
            record.payload["seen"] = seen
            seen += 1
        return seen, records

    whole = pipeline(flush_every_k_chunks=3)
    whole.stateful_transform("count", init_state=int, push=push)
    assert values(whole, "seen") == list(range(150))
    short = pipeline(flush_every_k_chunks=1)  # of 64 rows
    told = values(short.stateful_transform("count", init_state=int, push=push), "seen")
    assert told == [*range(64), *range(64), *range(22)]


def test_explain_says_how_a_plan_resumes():
    def push(state, records):
        return state, records

    assert "by reference" in pipeline().map_transform(len).explain()
    replayed = pipeline().stateful_transform("mine", init_state=int, push=push)
    assert "replay" in replayed.explain()
    written = pipeline().stateful_transform(
        "mine", init_state=int, push=push, snapshot=int, restore=int
    )
    assert "mine" in written.explain()


def test_a_faulty_operator_is_found_before_the_run():
    seen = []

    def remembers(records):
        seen.append(1)
        return records if len(seen) % 2 else []

    pipe = pipeline().add_op("odd", process_many=remembers, preserves_cursor_order=True)
    assert not pipe.validate().ok
    with pytest.raises(ValueError, match="'odd'"):
        iter(pipe)
    iter(pipe.options(auto_validation="off"))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda p: p.add_op("", process_many=list, preserves_cursor_order=True),
            ValueError,
            "name",
        ),
        (
            lambda p: p.add_op("x", preserves_cursor_order=True),
            ValueError,
            "process_many is missing",
        ),
        (
            lambda p: p.add_op("x", process_many=list),
            ValueError,
            "preserves_cursor_order is missing",
        ),
        (lambda p: p.add_op(Upper("!"), process_many=list), ValueError, "got process_many with"),
        (lambda p: p.add_op(Upper), TypeError, "the class Upper"),
        (
            lambda p: p.add_op(
                "x", process_many=list, preserves_cursor_order=True, validation_samples=3
            ),
            TypeError,
            "add_op 'x': validation_samples must be a list of SampleRecord, .*, got 3; pass one",
        ),
        (lambda p: p.add_op(Upper("!"), fingerprint=3), TypeError, "add_op: fingerprint must be"),
        (
            lambda p: p.stateful_transform("x", init_state=int, push=zip, fingerprint=3),
            TypeError,
            "stateful_transform: fingerprint must be a string, got 3",
        ),
        (
            lambda p: p.batch(2).add_op("x", process_many=list, preserves_cursor_order=True),
            ValueError,
            "add_op: it cannot come after batch",
        ),
        (
            lambda p: p.stateful_transform("x", init_state=int, push=3),
            TypeError,
            "push must be a function",
        ),
        (
            lambda p: p.stateful_transform(
                "x", init_state=list, push=zip, preserves_cursor_order=False
            ),
            ValueError,
            "neither flush nor snapshot",
        ),
    ],
)
def test_a_mistake_is_refused_where_it_is_made(call, kind, message):
    with pytest.raises(kind, match=message):
        call(pipeline())


def test_a_checkpoint_knows_where_memory_begins_anew():
    def push(seen, records):
        return seen + len(records), records

    def counted(chunks):
        pipe = pipeline(flush_every_k_chunks=chunks)
        return pipe.stateful_transform("count", init_state=int, push=push).batch(2)

    state = counted(1).checkpoint()
    assert list(counted(1).restore(state))
    with pytest.raises(RuntimeError, match="flush_every_rows"):
        list(counted(2).restore(state))
    plain = pipeline(flush_every_k_chunks=1).batch(2).checkpoint()  # nothing remembers
    assert list(pipeline(flush_every_k_chunks=2).batch(2).restore(plain))


class Ending(BaseOp):
    """Writes down which process began and ended it."""

    def __init__(self, folder, fails=False):
        super().__init__()
        self.folder = folder
        self.fails = fails

    def traits(self):
        return OpTraits(preserves_cursor_order=True)

    def setup(self, ctx):
        super().setup(ctx)
        self.note("setup")

    def teardown(self):
        self.note("teardown")
        if self.fails:
            raise OSError("still open")

    def note(self, what):
        with open(f"{self.folder}/{os.getpid()}", "a") as file:
            file.write(f"{what} ")

    def process_many(self, elems):
        return elems


@pytest.mark.parametrize("runner", ["inline", "process"])
@pytest.mark.parametrize("early", [False, True])
def test_an_operator_is_ended_where_it_was_begun(runner, early, tmp_path):
    items = iter(pipeline().add_op(Ending(str(tmp_path))).options(runner=runner))
    next(items)
    if early:
        items.close()
    else:
        list(items)
    (found,) = tmp_path.iterdir()
    assert found.read_text() == "setup teardown "
    assert (found.name == str(os.getpid())) == (runner == "inline")


@pytest.mark.parametrize("runner", ["inline", "process"])
def test_an_end_that_fails_is_raised(runner, tmp_path):
    pipe = pipeline().add_op(Ending(str(tmp_path), fails=True)).options(runner=runner)
    message = "^add_op 'Ending': teardown raised OSError: still open, at the end of a worker"
    with pytest.raises(ExecutionError, match=message) as told:
        list(pipe)
    assert isinstance(told.value.__cause__, OSError)


class Placed(BaseOp):
    """Writes into each record where the operator stands."""

    def __init__(self, name, remembers=False):
        super().__init__()
        self.name = name
        self.remembers = remembers

    def traits(self):
        return OpTraits(preserves_cursor_order=True, requires_serial_state=self.remembers)

    def process_many(self, elems):
        place = (self.stage_info.stage_index, self.stage_info.op_index)
        for each in elems:
            each.payload[self.name] = place
        return elems


@pytest.mark.parametrize("runner", ["inline", "process"])
def test_operators_know_where_they_stand(runner):
    pipe = pipeline(runner=runner)
    for name, remembers in (("a", False), ("b", False), ("c", True), ("d", False), ("e", True)):
        pipe.add_op(Placed(name, remembers))
    payload = next(iter(pipe)).payload
    assert [payload[name] for name in "abcde"] == [(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)]
