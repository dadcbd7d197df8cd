"""One line of many megabytes: memory holds it a few times, not a few times for each layer."""

import gzip
import json
import subprocess
import sys

import pytest

MEGABYTES = 60
PROGRAM = """
import resource, sys
from zephon import Dataset, Pipeline, StaticMixtureWorkSource
import zephon.running

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

begin = peak()
work = StaticMixtureWorkSource(
    datasets=[Dataset.from_path("d", sys.argv[1])], mixture={"d": 1.0}, shuffle_shards=False
)
found = [len(record.payload["text"]) for record in Pipeline(work).options(runner="inline")]
print(found, peak() - begin)
"""


@pytest.mark.parametrize("end", ["", ".gz"])
def test_memory_holds_a_large_object_a_few_times(tmp_path, end):
    texts = ["a", "x" * (MEGABYTES << 20), "c"]
    content = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    (tmp_path / f"a.jsonl{end}").write_bytes(gzip.compress(content, 1) if end else content)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, growth = done.stdout.rsplit(" ", 1)
    assert json.loads(found) == list(map(len, texts))
    assert float(growth) < 5 * MEGABYTES + 50
