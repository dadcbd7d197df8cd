"""Expressions are values: equal, hashed, written down alike in every process, and short to read."""

import pickle
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from tests.expressions.known import resolved, step
from zephon.column_steps import ColumnStep, no_columns

K, TEXT = pl.col("k"), pl.col("text")


def test_equal_expressions_are_equal_and_hash_alike():
    (first,), (second,), (other,) = (resolved("filter", n > K) for n in (5, 5, 6))
    assert first == second
    assert hash(first) == hash(second)
    assert first != other
    assert pickle.loads(pickle.dumps(first)) == first
    assert first.build().meta.eq(K < 5)
    assert (first.reads, first.name, first.type) == (("k",), "k", pa.bool_())


def test_bytes_are_the_same_in_another_process():
    program = """
import hashlib, polars as pl
from tests.expressions.known import resolved
k, text = pl.col("k"), pl.col("text")
given = (k.is_in([3, 1, 2]), text.str.contains("a+"), text.replace({"a": "b", "c": "d"}),
         pl.when(k > 1).then(text).otherwise(None), k.cast(pl.Float32), pl.struct("k", "text"))
digest = hashlib.sha256()
for each in given:
    digest.update(resolved("select", each.alias("x"))[0].data)
print(digest.hexdigest())
"""
    told = {
        subprocess.run(
            (sys.executable, "-c", program),
            capture_output=True, text=True, check=True, timeout=60, env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[1],
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(told) == 1


@pytest.mark.parametrize(
    ("given", "column"),
    [(K, "k"), (K.alias("x"), "k"), (K + 0, None), (K.cast(pl.Int64), None), (pl.lit(1), None)],
)
def test_a_column_that_is_handed_on_is_known(given, column):
    assert resolved("select", given)[0].column == column


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (K < 5, 'col("k") < 5'),
        ((K < 5) & ((K + 1) * 2 > 0.5), '(col("k") < 5) & (((col("k") + 1) * 2) > 0.5)'),
        ((K + 1).alias("x"), '(col("k") + 1).alias("x")'),
        (TEXT.str.contains("[(]") | (K > 0), 'col("text").str.contains(["[(]"]) | (col("k") > 0)'),
        (K.is_in([1, 2]), 'col("k").is_in([[1, 2]])'),
        (pl.col("k", "score") * 2, "k of cs.by_name('k', 'score', require_all=true) * 2"),
    ],
)  # fmt: skip
def test_expressions_are_short_to_read(given, shown):
    assert str(resolved("select", given)[0]) == shown


def test_long_expressions_are_cut():
    text = str(resolved("filter", TEXT == "x" * 500)[0])
    assert len(text) == 120
    assert text.endswith("...")


def test_steps_are_short_to_read():
    assert str(step("filter", K < 5)) == 'filter(col("k") < 5)'
    assert str(ColumnStep("rename", names=(("a", "b"),))) == "rename(a -> b)"
    assert str(ColumnStep("drop", names=("a", "b"))) == "drop(a, b)"


def test_a_batch_without_columns_has_rows():
    assert (no_columns(3).num_rows, no_columns(3).num_columns) == (3, 0)
    assert no_columns(0).num_rows == 0
