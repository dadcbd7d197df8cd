"""Ranks as threads of one process, each with a coordinator of its own."""

import threading

from zephon.coordination.coordinator import Participant
from zephon.coordination.rounds import StoreRounds

SECONDS = 30.0


def at_once(calls):
    """Run calls in threads; give what each returned or raised."""
    found = [None] * len(calls)

    def run(number, call):
        try:
            found[number] = call()
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return found


def on_ranks(store_of, size, work, *, space="job", seconds=SECONDS, ranks=None):
    """Let ranks meet, and do something with the coordinator of each.

    store_of: gives the store of a rank. work: called with a rank's coordinator. ranks: those that
    come; all by default.
    """

    def one(rank):
        rounds = StoreRounds(store_of(rank), Participant(rank, size), space, seconds)
        return work(rounds)

    return at_once([lambda rank=rank: one(rank) for rank in ranks or range(size)])
