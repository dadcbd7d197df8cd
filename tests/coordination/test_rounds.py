"""Ranks that meet: who is missing is named, who fails is told of, and no job meets another."""

import threading
import time

import pytest

from tests.coordination.meetings import at_once, on_ranks
from zephon.coordination.coordinator import Participant
from zephon.coordination.directory import DirectoryStore
from zephon.coordination.rounds import StoreRounds
from zephon.coordination.shared_mapping import MappingStore
from zephon.errors import CheckpointError, CoordinationError


def join(rounds):
    rank = rounds.participant.rank
    return rounds.round("join", lambda: str(rank).encode(), b"".join)


@pytest.fixture
def shared():
    return {}


def messages(found):
    assert all(isinstance(each, CoordinationError) for each in found), found
    return [str(each) for each in found]


def last_names(folder):
    """The last part of each key that a directory holds."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.name.rpartition("~")[2] for path in files)


def test_many_rounds_leave_only_the_last_answer_behind(tmp_path):
    on_ranks(lambda rank: DirectoryStore(tmp_path), 3, lambda r: [join(r) for _ in range(20)])
    assert last_names(tmp_path) == ["0", "1", "2", "answer", "session"]  # three say hello


def test_a_rank_that_does_not_come_is_named(shared):
    found = on_ranks(lambda rank: MappingStore(shared), 4, join, seconds=0.5, ranks=[0, 2])
    assert "rank 1, rank 3 did not come within 0.5 s" in messages(found)[0]


def test_a_leader_that_does_not_come_is_named(shared):
    found = on_ranks(lambda rank: MappingStore(shared), 3, join, seconds=0.5, ranks=[1, 2])
    assert all("rank 0, which leads, did not come" in text for text in messages(found))


def test_a_rank_that_is_missing_from_a_round_is_named_on_all_others(shared):
    def work(rounds):
        join(rounds)
        return None if rounds.participant.rank == 1 else join(rounds)

    found = on_ranks(lambda rank: MappingStore(shared), 3, work, seconds=1.0)
    assert found.pop(1) is None
    assert all("no word from rank 1 within 1 s" in text for text in messages(found))


def test_names_tell_more_than_numbers(shared):
    names = ("rank 0 (lanes 0, 1)", "rank 1 (lanes 2, 3)")
    who = Participant(0, 2, names)
    with pytest.raises(CoordinationError, match=r"rank 1 \(lanes 2, 3\) did not come"):
        StoreRounds(MappingStore(shared), who, "job", 0.2)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_rank_that_fails_is_told_of_at_once(shared, failing):
    def work(rounds):
        def make():
            if rounds.participant.rank == failing:
                raise CheckpointError("no room")
            return b""

        with pytest.raises((CheckpointError, CoordinationError)) as raised:
            rounds.round("checkpoint", make, b"".join)
        return str(raised.value), join(rounds)  # and the next round is as if nothing had been

    begin = time.monotonic()
    found = on_ranks(lambda rank: MappingStore(shared), 3, work)
    assert time.monotonic() - begin < 20  # of the 30 that they would wait
    told = f"checkpoint: rank {failing} failed with CheckpointError: no room"
    for rank, (text, after) in enumerate(found):
        assert text.startswith("no room" if rank == failing else told)
        assert after == b"012"


def test_what_the_leader_raises_is_raised_on_all_with_its_class(shared):
    def refuse(parts):
        raise CheckpointError("parts do not fit")

    def work(rounds):
        return rounds.round("checkpoint", bytes, refuse)

    found = on_ranks(lambda rank: MappingStore(shared), 3, work)
    assert [(type(each), str(each)) for each in found] == [
        (CheckpointError, "parts do not fit")
    ] * 3


def test_what_a_rank_raises_of_others_is_told_by_class_alone(shared):
    def make():
        raise KeyError("password")

    def work(rounds):
        return rounds.round("checkpoint", make if rounds.participant.rank else bytes, b"".join)

    found = on_ranks(lambda rank: MappingStore(shared), 2, work)
    assert "failed with CoordinationError: KeyError" in str(found[0])
    assert "password" not in str(found[0])


def test_ranks_that_do_different_things_are_told(shared):
    def work(rounds):
        return rounds.round("checkpoint" if rounds.participant.rank else "end", bytes, b"".join)

    found = messages(on_ranks(lambda rank: MappingStore(shared), 2, work))
    assert "end: rank 1 is at 'checkpoint' meanwhile" in found[0]
    assert "checkpoint() on each of them" in found[1]


# Questions


def ask(rounds, number, name="count"):
    return rounds.ask(name, number + rounds.participant.rank)


class Counted(MappingStore):
    """Counts what is looked for. What passes with the leader is waited for until it was read."""

    def __init__(self, mapping, *, passes=False):
        super().__init__(mapping)
        self.passes = passes
        self.looks = 0

    def get(self, key):
        self.looks += 1
        return super().get(key)


def test_others_meet_between_a_question_and_its_answer(shared):
    def work(rounds):
        found = []
        for number in range(5):
            asked = ask(rounds, 10 * number)
            found += [join(rounds) for _ in range(number)]
            asked.look()
            found += [join(rounds), asked.least()]
        return found

    found = on_ranks(lambda rank: MappingStore(shared), 3, work)
    told = [each for number in range(5) for each in [*[b"012"] * (number + 1), 10 * number]]
    assert found == [told] * 3


@pytest.mark.parametrize("looks", [False, True])
def test_who_looks_between_has_the_answer_there_when_it_is_needed(shared, looks):
    """The leader answers when it looks first, so the others find it with one look, later."""

    between, answered = threading.Barrier(3), threading.Barrier(3)

    def work(rounds):
        store = rounds._store
        asked = ask(rounds, 5)
        between.wait(30)
        assert asked.look() is None
        answered.wait(30)
        before = store.looks
        return (asked.look() if looks else None) or asked.least(), store.looks - before

    found = on_ranks(lambda rank: Counted(shared), 3, work)
    assert found == [(5, 0), (5, 1), (5, 1)]


@pytest.mark.parametrize("looks", [False, True])
def test_a_question_that_all_leave_alone_is_not_mixed_with_the_next(tmp_path, looks):
    together = threading.Barrier(3)

    def work(rounds):
        found = []
        for number in range(6):
            asked = ask(rounds, number)
            together.wait(30)
            if number % 3 == 2:
                found.append(asked.least())
            elif looks:
                asked.look()
                asked.look()
        return found

    assert on_ranks(lambda rank: DirectoryStore(tmp_path), 3, work) == [[2, 5]] * 3
    assert last_names(tmp_path) == ["0", "1", "2", "answer", "session"]


def test_a_question_that_some_leave_alone_is_told_of(shared):
    def work(rounds):
        asked = ask(rounds, 1, "batch 1") if rounds.participant.rank else None
        return ask(rounds, 2, "batch 2").least(), asked

    found = messages(on_ranks(lambda rank: MappingStore(shared), 2, work, seconds=1.0))
    assert "batch 2: rank 1 is at 'batch 1' meanwhile" in found[0]


def test_a_rank_that_does_not_ask_is_named_on_all_others(shared):
    def work(rounds):
        return None if rounds.participant.rank == 1 else ask(rounds, 1).least()

    found = on_ranks(lambda rank: MappingStore(shared), 3, work, seconds=1.0)
    assert found.pop(1) is None
    assert all("count: no word from rank 1 within 1 s" in text for text in messages(found))


@pytest.mark.parametrize("ended", [False, True])
def test_who_takes_the_answer_along_lingers_until_it_was_heard(shared, ended):
    left = threading.Event()

    def work(rounds):
        asked = ask(rounds, 3)
        if not rounds.participant.rank:
            found = asked.least()
            rounds.linger(ended=ended)
            left.set()
            return found
        was_left = left.wait(0.3)
        return was_left, asked.least(), left.wait(30)

    found = on_ranks(lambda rank: Counted(shared, passes=True), 3, work)
    assert found == [3, (False, 3, True), (False, 3, True)]


def test_nobody_lingers_for_an_answer_that_it_left_alone(shared):
    together = threading.Barrier(2)

    def work(rounds):
        asked = ask(rounds, 3)
        together.wait(30)
        asked.look()
        begin = time.monotonic()
        rounds.linger(ended=True)
        return time.monotonic() - begin

    found = on_ranks(lambda rank: Counted(shared, passes=True), 2, work)
    assert max(found) < 20  # of the 30 that it would wait


# What lies in the place from before


def test_leftovers_of_a_larger_run_are_never_read(tmp_path):
    def place(rank):
        return DirectoryStore(tmp_path)

    on_ranks(place, 6, lambda r: [join(r) for _ in range(3)])
    assert on_ranks(place, 3, lambda r: [join(r) for _ in range(5)]) == [[b"012"] * 5] * 3
    assert on_ranks(place, 8, join) == [b"01234567"] * 8


def test_a_job_that_died_halfway_does_not_disturb_the_next(shared):
    def dies(rounds):
        if rounds.participant.rank:
            rounds.ask("join", 7)  # no leader answers

    on_ranks(lambda rank: MappingStore(shared), 3, dies)
    on_ranks(lambda rank: MappingStore(shared), 3, join, seconds=0.3, ranks=[1, 2])
    assert on_ranks(lambda rank: MappingStore(shared), 3, join) == [b"012"] * 3


@pytest.mark.parametrize("late", [0, 1, 2])
def test_ranks_may_come_in_any_order_over_what_an_earlier_job_left(shared, late):
    on_ranks(lambda rank: MappingStore(shared), 3, join)

    def one(rank):
        if rank == late:
            time.sleep(0.4)
        return join(StoreRounds(MappingStore(shared), Participant(rank, 3), "job", 30))

    assert at_once([lambda rank=rank: one(rank) for rank in range(3)]) == [b"012"] * 3


def test_two_jobs_with_names_of_their_own_do_not_mix(shared):
    def job(space):
        return on_ranks(
            lambda rank: MappingStore(shared),
            2,
            lambda r: r.round("join", lambda: space.encode(), b"".join),
            space=space,
        )

    assert at_once([lambda: job("a"), lambda: job("b")]) == [[b"aa"] * 2, [b"bb"] * 2]


def test_two_jobs_that_begin_at_once_in_one_place_have_no_rank_twice(shared):
    """They go their ways one after the other, or ranks hear that another says it is them."""
    both = threading.Barrier(4)

    def one(job, rank):
        both.wait()
        rounds = StoreRounds(MappingStore(shared), Participant(rank, 2), "job", 2.0)
        return rounds.round("join", lambda: job, b"".join)

    for _ in range(8):
        shared.clear()
        found = at_once([lambda j=j, r=r: one(j, r) for r in (0, 1) for j in (b"a", b"b")])
        met = [isinstance(each, bytes) for each in found]
        assert all(isinstance(each, bytes | CoordinationError) for each in found), found
        assert sum(met[:2]) == sum(met[2:]), found
        refused = [str(each) for each in found if not isinstance(each, bytes)]
        assert not refused or any("another process says that" in text for text in refused), refused


@pytest.mark.parametrize("rank", [0, 1])
def test_who_waits_is_told_of_another_that_takes_its_place(shared, rank):
    def late():
        time.sleep(0.2)
        return StoreRounds(MappingStore(shared), Participant(rank, 2), "job", 0.5)

    found = at_once(
        [lambda: StoreRounds(MappingStore(shared), Participant(rank, 2), "job", 20), late]
    )
    assert f"another process says that it is rank {rank} in aggregate_store" in str(found[0])
    assert "did not come within" in str(found[1])
