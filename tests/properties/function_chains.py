"""Chains with functions, filters and operators of the user, in every place where they may stand."""

import polars as pl

from tests.properties.recipes import lengths, source
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.ops import Accumulator, CountingAccumulator, spawn_child, tombstones_for_record
from zephon.types import SampleRecord

PAD = 9


def dataset(name, sizes, shards=2):
    """Make rows of tokens that tell where they come from, with a number to filter by."""
    base = 1_000_000 * (1 + ord(name[0]) % 7)
    rows = [
        {"input_ids": list(range(base + 1000 * i, base + 1000 * i + n)), "n": n, "k": i}
        for i, n in enumerate(sizes)
    ]
    size = -(-len(rows) // shards)
    return Dataset.from_dict(
        name, {s: InMemoryShard(rows[s * size : (s + 1) * size]) for s in range(shards)}
    )


DATASETS = [dataset("prose", lengths(1, 230), 3), dataset("code", lengths(2, 120, 60), 2)]
WEIGHTS = {"prose": 0.6, "code": 0.4}


def start(**work):
    """Draw every row once."""
    settings = {"chunk_size": 8, "shuffle_within_shard": True, "exhausted_policy": "redistribute"}
    return Pipeline(source(DATASETS, WEIGHTS, **{**settings, **work}))


def flat(pipeline, algorithm="wrap"):
    bins = {"num_bins": 3} if algorithm == "first_fit" else {}
    return pipeline.pack_flat(
        33, algorithm=algorithm, pad_token_id=PAD, tokens_field="input_ids", **bins
    )


def shorter(row):
    """Drop some rows, and shorten others."""
    if row["k"] % 5 == 0:
        return None
    return {**row, "input_ids": row["input_ids"][: 40 - row["k"] % 3]}


def marked(row):
    """Change packed rows."""
    return {**row, "input_ids": [int(t) + 1 for t in row["input_ids"]]}


def counted(records):
    """Tell each record how many came with it, and drop some."""
    found = []
    for record in records:
        if record.payload["k"] % 7 == 0:
            found += tombstones_for_record(record)
            continue
        record.payload["input_ids"] = [*record.payload["input_ids"], len(records)]
        found.append(record)
    return found


def halved(records):
    """Make two records of each long one."""
    found = []
    for record in records:
        ids = record.payload["input_ids"]
        if len(ids) < 4:
            found.append(record)
            continue
        for i, part in enumerate((ids[: len(ids) // 2], ids[len(ids) // 2 :])):
            meta = spawn_child(record.meta, i, is_last_child=i == 1)
            found.append(SampleRecord(meta, {**record.payload, "input_ids": part}))
    return found


def with_running_sum(total, records):
    """Append to each record the tokens so far."""
    for record in records:
        total += len(record.payload["input_ids"])
        record.payload["input_ids"] = [*record.payload["input_ids"], total]
    return total, records


def hold(held, records):
    """Let records go in pairs, the later one first."""
    found = []
    for record in records:
        held = [*held, record]
        if len(held) == 2:
            found += held[::-1]
            held = []
    return held, found


class Fives(Accumulator):
    """Forms groups of five records of a lane, whatever comes together, and can be written down."""

    def __init__(self):
        self.held = []

    def push_many(self, elems):
        self.held += elems
        full, self.held = len(self.held) // 5 * 5, self.held
        groups = [(self.held[i : i + 5], 0) for i in range(0, full, 5)]
        self.held = self.held[full:]
        return groups

    def flush(self, *, reset=False, lane_id=None):
        groups, self.held = ([(self.held, 0)] if self.held else []), []
        return groups

    def has_pending_data(self, lane_id=None):
        return bool(self.held)


def talked(row):
    """Say the tokens in turns, each as a block."""
    ids = row["input_ids"][:40]
    turns = [
        {"from": ("human", "gpt")[at // 5 % 2], "value": [{"type": "ids", "ids": ids[at : at + 5]}]}
        for at in range(0, len(ids), 5)
    ]
    return {"conversations": turns, "n": row["n"], "k": row["k"]}


def one_more(block):
    return {**block, "ids": [each + 1 for each in block["ids"]]}


def heard(row):
    said = [each for message in row["messages"] for each in message["content"][0]["ids"]]
    return {"input_ids": said, "n": row["n"], "k": row["k"]}


def conversations(pipeline):
    """Make rows of each answered turn: some become several, some none."""
    talks = pipeline.map_transform(talked).normalize_chat(format="auto", on_block=one_more)
    return talks.expand_chat().map_transform(heard)


def nines():
    """By a name: a copy that went through cloudpickle has lost the source of a lambda."""
    return CountingAccumulator(9)


def summed(pipeline, **hooks):
    return pipeline.stateful_transform("sum", init_state=int, push=with_running_sum, **hooks)


def in_pairs(pipeline):
    return pipeline.stateful_transform(
        "pairs", init_state=list, push=hold, flush=lambda held: held, preserves_cursor_order=False
    )


def grouped(pipeline, function=counted, **changes):
    changes = {"preserves_cursor_order": True, **changes}
    return pipeline.add_op("groups", process_many=function, **changes)


def as_it_is(value):
    return value


CHAINS = {
    "map": lambda: flat(start().map_transform(shorter)),
    "map, shuffle": lambda: flat(start().map_transform(shorter).shuffle(40), "first_fit"),
    "shuffle, map": lambda: flat(start().shuffle(40).map_transform(shorter)),
    "map behind packing": lambda: flat(start(), "first_fit").map_transform(marked).shuffle(6),
    "shuffle, map behind packing": lambda: flat(start().shuffle(30)).map_transform(marked),
    "filter": lambda: flat(start().filter(pl.col("n") % 3 > 0).shuffle(20)),
    "filter, map": lambda: flat(
        start().filter(pl.col("n") > 5).map_transform(shorter), "first_fit"
    ),
    "filter, exact tokens": lambda: flat(
        start(mixture_unit="tokens", exhausted_policy="stop").filter(pl.col("k") % 4 > 0)
    ),
    "conversations": lambda: flat(conversations(start())),
    "conversations, shuffle": lambda: flat(conversations(start()).shuffle(40), "first_fit"),
    "shuffle, conversations": lambda: conversations(start().shuffle(30)),
    "documents mapped": lambda: start().map_transform(shorter).shuffle(30),
    "groups": lambda: flat(grouped(start())),
    "groups, shuffle": lambda: flat(grouped(start()).shuffle(30), "first_fit"),
    "groups that split": lambda: flat(grouped(start(), halved).shuffle(30)),
    "groups behind a shuffle": lambda: flat(grouped(start().shuffle(30))),
    "groups behind packing": lambda: grouped(
        flat(start()), lambda records: records[::-1], preserves_cursor_order=False
    ),
    "accumulator": lambda: flat(grouped(start(), accumulator=Fives)),
    "counting accumulator": lambda: flat(
        grouped(start().shuffle(20), accumulator=nines).shuffle(25)
    ),
    "state": lambda: flat(summed(start())),
    "state, shuffle": lambda: flat(summed(start()).shuffle(30), "first_fit"),
    "shuffle, state": lambda: flat(summed(start().shuffle(30))),
    "state written down": lambda: flat(
        summed(start().shuffle(30), snapshot=as_it_is, restore=as_it_is).shuffle(20)
    ),
    "state that holds records": lambda: flat(in_pairs(start().shuffle(12)).shuffle(8)),
    "two with memory": lambda: flat(summed(in_pairs(start()).shuffle(10)).map_transform(shorter)),
    "memory behind packing": lambda: in_pairs(flat(start())).map_transform(marked),
}
