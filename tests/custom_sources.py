"""Work sources as people write them: each deals a list of samples to lanes, chunk by chunk."""

from itertools import islice

from zephon import Dataset, InMemoryShard
from zephon.work import WorkChunk, WorkSource


class Shared(list):
    """A list that all lanes share: what never changes need not be copied for each."""

    def __deepcopy__(self, memo):
        return self


class Dealt(WorkSource):
    """Lane l takes every L-th sample of a list, in chunks of these sizes, one size after another.

    It keeps no state of its own, so a restored lane draws its chunks again.

    samples: of (component name, sample id). rounds: how often the list is gone through; None: for
    ever. short: samples that lanes lose at the end, by lane.
    """

    def __init__(self, datasets, samples, *, sizes=(5,), rounds=1, names=None, short=None):
        self.datasets = dict(datasets)
        self.samples = Shared(samples)
        self.sizes = tuple(sizes)
        self.rounds = rounds
        self.names = names or {
            name: number for number, name in enumerate(dict.fromkeys(n for n, _ in self.samples))
        }
        self.short = short or {}
        self.dealt = 0
        self.chunks = 0

    @property
    def datasets_by_id(self):
        return self.datasets

    def component_ids(self):
        return self.names

    def recipe(self):
        return {"samples": len(self.samples), "sizes": list(self.sizes), "rounds": self.rounds}

    def next_chunk(self):
        size = self.sizes[self.chunks % len(self.sizes)]
        self.chunks += 1
        taken = list(islice(self._rest(), size))
        if not taken and not (size == 0 and next(self._rest(), None)):
            return None
        self.dealt += len(taken)
        components = {}
        for name, sample in taken:
            components.setdefault(name, []).append(sample)
        return WorkChunk(components)

    def _rest(self):
        at = self.lane_id + self.dealt * self.canonical_replicas
        last = None
        if self.rounds is not None:
            last = len(self.samples) * self.rounds
            last -= self.canonical_replicas * self.short.get(self.lane_id, 0)
        while last is None or at < last:
            yield self.samples[at % len(self.samples)]
            at += self.canonical_replicas


class Stateful(Dealt):
    """The same, and it says where it stands: a tuple, so that kinds matter."""

    def state_dict(self):
        return {**super().state_dict(), "at": (self.dealt, self.chunks)}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.dealt, self.chunks = _pair(state["at"])


def _pair(at):
    assert isinstance(at, tuple)
    return at


def numbered(name, rows, shards=(0,), length=3):
    """Make a dataset whose documents are unlike any other; ``shards`` are its shard ids."""
    base = 1000 * (1 + sum(map(ord, name)) % 900)
    documents = [
        {"input_ids": [base * 100 + 10 * row + t for t in range(length + row % 4)]}
        for row in range(rows)
    ]
    size = -(-rows // len(shards))
    return Dataset.from_dict(
        name,
        {
            shard: InMemoryShard(documents[place * size : (place + 1) * size])
            for place, shard in enumerate(shards)
        },
    )


def all_samples(datasets, component_of=None):
    """List every row of the datasets as (component, sample id), datasets in turn."""
    rows = []
    for number, dataset in datasets.items():
        name = dataset.name if component_of is None else component_of[number]
        rows.append(
            [
                (name, (number, int(shard), row))
                for shard, count in zip(dataset.ids(), dataset.counts(), strict=True)
                for row in range(count)
            ]
        )
    longest = max(map(len, rows))
    return [listed[i] for i in range(longest) for listed in rows if i < len(listed)]


def walked(source, lane=0, lanes=1, most=None):
    """Iterate a lane's chunks one after another: the draws that it must have."""
    own = source.clone_for_lane(lane, lanes)
    found = []
    while most is None or len(found) < most:
        chunk = own.next_chunk()
        if chunk is None:
            break
        found += [(name, sample) for sample, name in chunk]
    return found
