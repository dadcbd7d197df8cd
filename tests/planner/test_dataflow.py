"""What each step is given: typed columns by their names in the source, frames, whole rows."""

import polars as pl
import pyarrow as pa
import pytest

from tests.planner.plans import pack, shuffle, tokenize
from tests.planner.typed_plans import columns, dropped, mapped, renamed, typed_fetch
from zephon.planner.dataflow import flow_of
from zephon.planner.tree import source_first


def flow(plan):
    """Follow columns through the steps of a plan that makes no batches."""
    return flow_of(source_first(plan))


def read(plan):
    """Name what is read of the source: typed, for expressions, and whether whole rows are."""
    found = flow(plan)
    typed, frame = [c.path for c in found.columns], [c.path for c in found.frame]
    return typed, frame, found.rows


def made(plan):
    """Name the columns that must be made before each step that has any."""
    return [[c.path for c in given.made] for given in flow(plan).given if given.made]


def test_text_is_read_typed_and_rows_are_not_read_where_tokens_replace_them():
    assert read(tokenize(typed_fetch())) == (["text"], [], False)


def test_rows_are_read_whole_where_they_reach_the_top():
    assert read(shuffle(typed_fetch())) == ([], [], True)


def test_a_filter_reads_its_columns_beside_the_text():
    plan = tokenize(columns("filter", pl.col("score") > 1, below=typed_fetch()))
    assert read(plan) == (["text"], ["score"], False)
    assert flow(plan).frame[0].values == pa.int64()


def test_a_filter_on_the_text_reads_it_in_both_ways():
    plan = tokenize(columns("filter", pl.col("text") != "", below=typed_fetch()))
    assert read(plan) == (["text"], ["text"], False)


def test_a_computed_text_is_made_typed_from_the_frame():
    plan = tokenize(columns("with_columns", pl.col("url").alias("text"), below=typed_fetch()))
    assert read(plan) == ([], ["url"], False)
    assert made(plan) == [["text"]]
    assert flow(plan).given[1].wanted == {"text"}


def test_a_renamed_field_is_read_under_its_name_in_the_source():
    plan = tokenize(renamed({"url": "link"}, below=typed_fetch()), field="link")
    assert read(plan) == (["url"], [], False)
    assert flow(plan).given[1].moved == (("url", "link"),)


def test_names_that_change_places_are_followed():
    below = renamed({"url": "text", "text": "url"}, below=typed_fetch())
    assert read(tokenize(below)) == (["url"], [], False)
    assert read(tokenize(below, field="url")) == (["text"], [], False)


def test_a_filter_on_a_renamed_field_reads_the_field_under_its_old_name():
    below = renamed({"score": "points"}, below=typed_fetch())
    plan = tokenize(columns("filter", pl.col("points") > 1, below=below))
    assert read(plan) == (["text"], ["score"], False)
    assert [sorted(given.wanted) for given in flow(plan).given] == [["score"], ["points"], [], []]


def test_a_renamed_computed_field_is_made_from_the_frame():
    below = columns("with_columns", (pl.col("score") + 1).cast(pl.String).alias("t"))
    plan = tokenize(renamed({"t": "text2"}, below=below), field="text2")
    assert read(plan) == ([], ["score"], False)
    assert made(plan) == [["text2"]]


def test_what_a_select_leaves_out_is_not_read():
    plan = shuffle(columns("select", pl.col("url"), below=typed_fetch()))
    assert read(plan) == ([], ["url"], False)
    assert flow(plan).given[1].rows_after


def test_a_drop_reads_nothing_of_its_own():
    assert read(dropped("url", below=typed_fetch())) == ([], [], True)


def test_a_function_gets_whole_rows_and_columns_are_made_of_what_it_gives():
    plan = tokenize(mapped(typed_fetch()))
    assert read(plan) == ([], [], True)
    assert made(plan) == [["text"]]


def test_a_function_behind_tokens_needs_no_whole_rows():
    plan = mapped(tokenize(typed_fetch()))
    assert read(plan) == (["text"], [], False)
    assert flow(plan).given[-1].rows_after


@pytest.mark.parametrize("kept", [True, False])
def test_rows_below_tokens_are_read_where_a_function_sees_them(kept):
    plan = pack(mapped(tokenize(typed_fetch(), preserve_upstream_payload=kept)))
    assert flow(plan).rows is kept


def test_steps_on_records_read_everything_of_whole_rows():
    found = flow_of([tokenize(None)], of_records=True)
    assert [c.path for c in found.given[0].made] == ["text"]
    assert (found.columns, found.frame, found.rows) == ((), (), False)
