"""Jobs on files that processes of their own go on with: `python -m tests.cases.resuming_job`.

The argument is JSON, the fields of `Start`. The process restores the checkpoint that it finds, or
begins anew, and writes two things: a log with a line for each row that it was given, and again and
again a checkpoint, atomically. Whoever started it may kill it at any moment.
"""

import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from tests.properties.recipes import rows_of
from tests.written import lines, parquet
from zephon import Dataset, MixtureSpec, Pipeline, StaticMixtureWorkSource
from zephon.io.atomic import written_atomically

ROOT = Path(__file__).parents[2]
STEP = 24
LANES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One process.

    job: a name in `JOBS`. folder: that `write_data` wrote. degree, group: of the data ranks; group
    None: all of them, step after step. rows: to stop at, None: never; of all ranks from the
    beginning, or of one rank, its own from now on. every: rows from one checkpoint to the next.
    found: files with the checkpoints to go on from, of which those that are there are restored.
    left: the file to leave one in. log: the file of lines. options: those of speed.
    """

    job: str
    folder: str
    degree: int = 1
    group: int | None = None
    microbatch: int = 1
    rows: int | None = None
    every: int = 1
    found: tuple[str, ...] = ()
    left: str
    log: str
    options: dict

    def command(self):
        return [sys.executable, "-m", "tests.cases.resuming_job", json.dumps(asdict(self))]


def write_data(folder):
    """Write two components: row groups in Parquet files, and lines in compressed ones."""
    rng = np.random.default_rng(5)
    for place, (name, count, most) in enumerate((("prose", 900, 40), ("code", 400, 90))):
        first = 10_000_000 * (place + 1)
        rows = [
            {"input_ids": list(range(first + 1000 * i, first + 1000 * i + int(n))), "k": i}
            for i, n in enumerate(rng.integers(0, most, count))
        ]
        for shard, some in enumerate((rows[: count // 2], rows[count // 2 :])):
            if name == "prose":
                parquet(folder / name, f"{shard}.parquet", some, row_group_size=50)
            else:
                lines(folder / name, f"{shard}.jsonl.zst", some)


def summed(total, records):
    """Append to each record the tokens so far: a memory that only replaying can make again."""
    for record in records:
        total += len(record.payload["input_ids"])
        record.payload["input_ids"] = [*record.payload["input_ids"], total]
    return total, records


def shortened(row):
    return None if row["k"] % 7 == 0 else {**row, "input_ids": row["input_ids"][:60]}


def flat(pipeline, algorithm, **settings):
    return pipeline.pack_flat(
        65, algorithm=algorithm, pad_token_id=0, tokens_field="input_ids", **settings
    )


JOBS = {
    "wrap": lambda p: flat(p, "wrap"),
    "shuffled": lambda p: flat(
        p.filter(pl.col("k") % 5 > 0).map_transform(shortened).shuffle(50, seed=1), "best_fit",
        num_bins=4,
    ).shuffle(7),
    "exact tokens": lambda p: flat(p.shuffle(20), "best_fit_wrap", candidate_pool_size=8),
    "replayed": lambda p: flat(
        p.shuffle(20).stateful_transform("sum", init_state=int, push=summed), "first_fit",
        num_bins=3, drop_oversized=True,
    ),
}  # fmt: skip


def described(start, group=0):
    """Describe a rank's pipeline; its data never end."""
    schemas = {"prose": None, "code": {"k": "int64"}}
    datasets = [
        Dataset.from_path(name, f"{start.folder}/{name}", schema=schema)
        for name, schema in schemas.items()
    ]
    work = StaticMixtureWorkSource(
        datasets=datasets,
        mixture=MixtureSpec({"prose": 0.7, "code": 0.3}),
        seed=3,
        chunk_size=16,
        shuffle_within_shard=True,
        exhausted_policy="repeat",
        mixture_unit="tokens" if start.job == "exact tokens" else "samples",
    )
    pipeline = JOBS[start.job](Pipeline(work)).batch(start.microbatch)
    return pipeline.options(
        global_batch_size=STEP,
        canonical_replicas=LANES,
        dp_degree=start.degree,
        dp_group_id=group,
        flush_every_k_chunks=12,
        **start.options,
    )


def lines_of(batch):
    """Give a line for each row: what it holds, and where all of it came from."""
    return [
        hashlib.blake2b(repr(row).encode(), digest_size=8).hexdigest() for row in rows_of(batch)
    ]


def saved(path):
    """Read a checkpoint: rows handed out, and the states of the ranks."""
    kept = json.loads(Path(path).read_bytes())
    return kept["rows"], kept["states"]


def main():
    start = Start(**json.loads(sys.argv[1]))
    groups = range(start.degree) if start.group is None else [start.group]
    pipelines = [described(start, group) for group in groups]
    done, states = 0, []
    for path in start.found:
        if Path(path).exists():
            done, some = saved(path)
            states += some
    done = done if start.group is None else 0
    if states:
        for pipeline in pipelines:
            pipeline.restore(states if len(states) > 1 else states[0])
    log = os.open(start.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, f"{done}\n".encode())
    items = [iter(pipeline) for pipeline in pipelines]
    # one rank goes on batch by batch, several by whole steps
    together = STEP // start.degree // start.microbatch if len(items) > 1 else 1
    kept = done
    while start.rows is None or done < start.rows:
        made = [row for each in items for b in islice(each, together) for row in lines_of(b)]
        os.write(log, "".join(f"{line}\n" for line in made).encode())
        done += len(made)
        if done - kept >= start.every or (start.rows is not None and done >= start.rows):
            kept = done
            states = [pipeline.checkpoint(scope="local") for pipeline in pipelines]
            with written_atomically(Path(start.left)) as draft:
                draft.write_text(json.dumps({"rows": done, "states": states}))
    for each in items:
        each.close()


if __name__ == "__main__":
    main()
