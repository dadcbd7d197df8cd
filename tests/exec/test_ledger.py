"""What becomes of rows that an operator gets: counted once, and the same from every state."""

import numpy as np
import pytest

from tests.ops.records import record
from zephon.exec import ledger
from zephon.exec.ledger import Account, Ledger
from zephon.ops import tombstones_for_record
from zephon.types import ContributorRef

IDS = np.array([0, 4], np.int32)


def meta(offset, *, ends=True, tokens=None):
    found = record(offset).meta
    object.__setattr__(found, "component_sample_counts", {0: int(ends)})
    object.__setattr__(found, "component_token_counts", tokens)
    return found


def book(account=None):
    account = Account.none(2) if account is None else account
    return Ledger(lambda dataset, meta: 0, IDS, account, counts_tokens=True)


def dropped(found):
    return found.account.rows_dropped.tolist()


def test_what_is_held_is_dropped_only_when_a_flush_brings_nothing_of_it():
    found, came = book(), [meta(n) for n in range(4)]
    assert found.add(0, came, came[:1], came[:1], flushed=False) == 0
    assert dropped(found) == [0, 0]
    assert found.at(0).open[1].tolist() == [1, 2, 3]
    again = book(found.at(0))
    for each in (found, again):
        assert each.add(1, [], came[2:3], came[2:3], flushed=True) == 2
        assert dropped(each) == [2, 0]
        assert each.at(1).open.size == 0


def test_what_the_steps_above_drop_is_no_loss_of_the_operator():
    found, came = book(), [meta(n) for n in range(4)]
    assert found.add(0, came, came, came[:1], flushed=True) == 0
    assert dropped(found) == [3, 0]


def test_a_row_that_was_merged_is_not_dropped_and_a_tombstone_tells():
    found, came = book(), [meta(n) for n in range(3)]
    merged = came[0].with_contributors(ContributorRef(each.cursor) for each in came[:2])
    (tomb,) = tombstones_for_record(record(2))
    assert found.add(0, came, [merged, tomb.meta], [merged], flushed=True) == 0
    assert dropped(found) == [1, 0]


def test_a_row_in_parts_counts_with_its_last_and_lives_on_in_any():
    found = book()
    first, last = meta(5, ends=False), meta(5)
    found.add(0, [first], [first], [first], flushed=True)
    found.add(1, [last], [], [], flushed=True)
    assert dropped(found) == [0, 0]
    assert found.at(1).open.size == 0
    found.add(2, [meta(6, ends=False)], [], [], flushed=True)
    found.add(3, [meta(6)], [], [], flushed=True)
    assert dropped(found) == [1, 0]


def test_tokens_that_came_are_held_then_dropped_and_more_of_them_are_made():
    found, few, many = book(), meta(0, tokens={4: 3}), meta(1, tokens={4: 5})
    found.add(0, [few, many], [], [], flushed=False)
    assert found.account.tokens_held.tolist() == [0, 8]
    found.add(1, [], [few], [few], flushed=True)
    assert (found.account.tokens_held.tolist(), found.account.tokens_dropped.tolist()) == (
        [0, 0],
        [0, 5],
    )
    found.add(2, [few], [few, few], [few, few], flushed=True)
    assert found.account.tokens_made.tolist() == [0, 3]


def test_an_account_is_that_of_its_group_until_it_is_forgotten():
    found = book()
    for group in range(6):
        came = [meta(2 * group), meta(2 * group + 1)]
        found.add(group, came, came[:1], came[:1], flushed=group % 3 == 2)
    wanted = [(found.at(n).rows_dropped.sum(), found.at(n).open[1].tolist()) for n in range(6)]
    assert wanted[3:] == [(3, [7]), (3, [7, 9]), (6, [])]
    found.forget_before(3)
    assert [(found.at(n).rows_dropped.sum(), found.at(n).open[1].tolist()) for n in (3, 4, 5)] == (
        wanted[3:]
    )


def test_an_operator_that_is_never_flushed_cannot_hold_without_end(monkeypatch):
    monkeypatch.setattr(ledger, "_MOST", 10)
    found = book()
    for group in range(9):
        found.add(group, [meta(3 * group + n) for n in range(3)], [], [], flushed=False)
    assert dropped(found) == [17, 0]
    assert found.at(8).open[1].tolist() == list(range(17, 27))


@pytest.mark.parametrize("missing", ["open", "totals"])
def test_an_account_starts_with_nothing(missing):
    assert not getattr(Account.none(2), missing).any()
