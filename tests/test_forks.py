"""A fork after Polars had threads: the child is told, whoever used them, and nothing hangs."""

import subprocess
import sys

import pytest

GUARD = 90.0

SCRIPT = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
import polars as pl
from tests.properties.recipes import source, two_datasets
from zephon import Pipeline

def make():
    return Pipeline(source(two_datasets())).filter(pl.col("input_ids").list.len() > 2).batch(2)

def batch():
    assert len(next(iter(make()))) == 2

def in_child(work):
    child = os.fork()
    if not child:
        try:
            work()
            print("worked", flush=True)
        except RuntimeError as exc:
            print(exc, flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


def told(script):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + script], capture_output=True, text=True, timeout=GUARD
    )
    assert not done.stderr
    return done.stdout.splitlines()


def test_what_needs_polars_is_refused_once_a_pipeline_has_used_it():
    """Building one is enough: expressions are tried on a few rows."""
    works, *refused = told(
        "pl.col('x') + 1\n"
        "in_child(batch)\n"  # no thread yet
        "pipe = make()\n"
        "in_child(lambda: next(iter(pipe)))\n"
        "pipe.explain()\n"
        "in_child(lambda: next(iter(pipe)))\n"
        "items = iter(pipe)\n"
        "next(items)\n"
        "in_child(batch)\n"
        "in_child(lambda: in_child(batch))\n"
    )
    assert works == "worked"
    assert len(refused) == 5
    assert refused.pop() == "worked"  # the child, whose own child did not
    for said in refused:
        assert said.endswith(
            "start workers with multiprocessing_context='spawn', or use num_workers=0"
        )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads have names there")
def test_threads_that_somebody_else_started_are_seen():
    assert "lost" in told("pl.select(pl.lit(1) + 1)\ntime.sleep(0.5)\nin_child(make)\n")[0]
