"""The public package zephon 0.2.0 with a function on rows; run by the Python of its environment.

The argument is a job of `benchmarks.row_runs` as JSON; prints one line of JSON, a reading of it.
"""

from __future__ import annotations

import json
import sys
import time

from row_functions import function
from zephon import Dataset, Pipeline, StaticMixtureWorkSource


def main() -> None:
    """Run the job once."""
    job = json.loads(sys.argv[1])
    start = first = time.perf_counter()
    dataset = Dataset.from_path("rows", job["folder"])
    source = StaticMixtureWorkSource(
        datasets=[dataset],
        mixture={"rows": 1.0},
        shuffle_shards=False,
        exhausted_policy="redistribute",
    )
    pipeline = Pipeline(source).map_transform(function(job)).batch(8, drop_last=False)
    rows = total = 0
    for batch in pipeline.options(runner=job["runner"]):
        if not rows:
            first = time.perf_counter()
        rows += len(batch.records)
        total += sum(int(record.payload["k"]) for record in batch.records)
    seconds = time.perf_counter() - start
    print(json.dumps({"rows": rows, "total": total, "seconds": seconds, "first": first - start}))


if __name__ == "__main__":
    main()
