"""What a run must draw to whose datasets shards are added: pass after pass, dealt row by row."""

from tests.properties.recipes import source
from tests.work.order.test_deal import slow_deal
from zephon import Dataset, InMemoryShard, seeds

SEED, CHUNK = 7, 3
NUMBER = {"prose": 1 + ord("p") % 7, "code": 1 + ord("c") % 7}
ORDERS = {
    "as they are": {"shuffle_shards": False, "lane_assignment": "modulo"},
    "shards": {},
    "rows of shards": {"shuffle_within_shard": True},
    "blocks": {"shuffle_block_size": 8, "shuffle_within_shard": True},
    "automatic blocks": {"shuffle_block_size": "auto"},
    "all rows": {"shuffle_block_size": "global"},
    "all passes alike": {"reshuffle_on_repeat": False, "shuffle_within_shard": True},
}


def length_of(document):
    return 1 + document % 7


def document_of(key, row):
    return 16 * key + row


def dataset(name, shards):
    """Make a dataset of so many documents a shard, by the key of the shard."""
    found = {}
    for key, count in shards.items():
        rows = []
        for row in range(count):
            document = document_of(key, row)
            first = 1_000_000 * NUMBER[name] + 1000 * document
            rows.append({"input_ids": list(range(first, first + length_of(document)))})
        found[key] = InMemoryShard(rows)
    return Dataset.from_dict(name, found)


def documents_of(found):
    """Tell, of each lane and component, which documents begin in rows, in order."""
    alone = {}
    for lane, tokens in found:
        for token in tokens:
            if token % 1000 == 0:
                component = next(n for n, each in NUMBER.items() if each == token // 1_000_000)
                alone.setdefault((lane, component), []).append(token % 1_000_000 // 1000)
    return alone


class Expected:
    """The passes of one component, while shards are added to it.

    Args:
        name: of the component.
        lanes: how many there are.
        order: of the passes, a value of ``ORDERS``.
    """

    def __init__(self, name, lanes, order):
        self.name, self.lanes, self.order = name, lanes, order
        self.hands = [[] for _ in range(lanes)]  # of each lane: pass and document, in order
        self.passes = 0
        self._rows = 0

    def add_passes(self, count, everything):
        """Make passes over the shards that there are now, given those of all components."""
        shards, order = everything[self.name], dict(self.order)
        total = sum(shards.values())
        if order.get("shuffle_block_size") == "auto":
            largest = max(rows for each in everything.values() for rows in each.values())
            order["shuffle_block_size"] = min(8 * largest, total)
        work = source([dataset(self.name, shards)], exhausted_policy="repeat", **order)
        whole, keys = work.lane_stream(0, 1), sorted(shards)
        dealt = slow_deal(
            total,
            self.lanes,
            CHUNK,
            count,
            permuted=order.get("lane_assignment") != "modulo",
            fresh=order.get("reshuffle_on_repeat", True),
            key=seeds.key(SEED, self.name, "turns"),
            first_pass=self.passes,
            first_row=self._rows,
        )
        first = self.passes * total
        draws = whole.draw(first, count * total)
        places = zip(draws.shard.tolist(), draws.row.tolist(), strict=True)
        drawn = [document_of(keys[shard], row) for shard, row in places]
        for hand, dealt_to in zip(self.hands, dealt, strict=True):
            hand += [(n, drawn[n * total + position - first]) for n, position in dealt_to]
        self.passes += count
        self._rows += count * total

    def begin_anew_from(self, drawn, was):
        """Take back the passes of ``was`` that no lane has begun, given what each has drawn."""
        begun = [self.hands[lane][count - 1][0] + 1 for lane, count in enumerate(drawn) if count]
        begun = max(begun, default=0)
        self.hands = [[each for each in hand if each[0] < begun] for hand in self.hands]
        self._rows -= (self.passes - begun) * was
        self.passes = begun
