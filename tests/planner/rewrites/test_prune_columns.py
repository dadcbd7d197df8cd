"""Fetch reads the columns that steps use, and whole rows only if they reach the top."""

from dataclasses import replace

from tests.planner.plans import batch, fetch, pack, token_lists, tokenize
from zephon.io.fields import Column
from zephon.planner.rewrites.prune_columns import prune_columns

TEXT = (Column(path="text", kind="text"),)


def test_reads_only_the_text_field():
    assert prune_columns(tokenize()) == tokenize(fetch(columns=TEXT, payload=False))


def test_reads_whole_rows_where_the_payload_is_kept():
    plan = batch(tokenize(preserve_upstream_payload=True))
    wanted = batch(tokenize(fetch(columns=TEXT), preserve_upstream_payload=True))
    assert prune_columns(plan) == wanted


def test_reads_the_token_column_of_a_pretokenized_dataset():
    plan = pack(token_lists(), tokens_field="tokens")
    columns = (Column(path="tokens", kind="tokens"),)
    assert prune_columns(plan) == replace(plan, input=token_lists(columns=columns, payload=False))


def test_leaves_a_pruned_plan_alone():
    plan = prune_columns(batch())
    assert prune_columns(plan) is plan
