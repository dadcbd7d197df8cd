"""Expressions are known by the bytes that Polars writes, which are the same under 2.0.0 and 2.1.0.

A release under which one of these changes refuses checkpoints that hold it, and names both
releases.
"""

import hashlib

import polars as pl
import pytest

from tests.exec.changed_recipes import pipe
from zephon.errors import CheckpointError
from zephon.exec.checkpoint import content_digest

COL = pl.col


@pytest.mark.parametrize(
    ("expression", "digest"),
    [
        (COL("n") > 3, "d23405aaa1cd3b79"),
        (COL("t").str.contains("a+"), "b4b1a1af1f3fece7"),
        (COL("t").str.len_chars().cast(pl.Int32), "773ecb977fbd069f"),
        (pl.when(COL("a") == 1).then(pl.lit("x")).otherwise(None), "b2516a653d714daf"),
        (COL("n").is_in([1, 2, 3]), "8ee8746549c63fc9"),
        (COL("x").list.eval(pl.element() + 1), "a550ce4320965417"),
        (pl.struct("a", "b"), "8e30c6d32904ad1e"),
    ],
)
def test_bytes_of_expressions_stay(expression, digest):
    assert hashlib.sha256(expression.meta.serialize()).hexdigest()[:16] == digest


def few(limit):
    return pipe(steps=lambda p: p.filter(COL("n") > limit))


def with_polars(state, release):
    changed = {**state, "polars": release}
    return {**changed, "digest": content_digest(changed)}


def test_a_state_says_which_polars_wrote_its_expressions():
    assert few(3).checkpoint()["polars"] == pl.__version__
    assert "polars" not in pipe().checkpoint()


def test_another_polars_is_fine_while_it_writes_the_same():
    state = with_polars(few(3).checkpoint(), "2.0.0")
    wanted = [record.payload for record in few(3)]
    assert [record.payload for record in few(3).restore(state)] == wanted != []


def test_where_expressions_differ_both_releases_are_named():
    state = few(3).checkpoint()
    with pytest.raises(CheckpointError) as caught:
        iter(few(4).restore(with_polars(state, "1.40.0")))
    assert str(caught.value).splitlines()[-1] == (
        "  expressions are compared as Polars writes them: the checkpoint's were written by "
        f"1.40.0, this is {pl.__version__}; where only the release differs, restore it under 1.40.0"
    )
    with pytest.raises(CheckpointError) as caught:
        iter(few(4).restore(state))
    assert "Polars" not in str(caught.value)
