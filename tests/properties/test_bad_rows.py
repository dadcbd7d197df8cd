"""Bad rows that are left out: what is good comes as if they were filtered, on every way."""

import json
import warnings
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.bad_rows import (
    BAD,
    CHAINS,
    KINDS,
    NULL,
    WORKS,
    begin,
    mixed,
    rows_of,
    write,
)  # fmt: skip

COUNT = 90
BATCHES = 60
LOST = ("rows_filtered", "rows_skipped", "rows_quarantined", "rows_null")
WAYS = {
    "inline": {"runner": "inline", "memory_budget": "100kb"},
    "little memory": {"runner": "threads", "memory_budget": "1kb"},
    "threads": {"runner": "threads", "max_workers": 2},
    "processes": {"runner": "process", "max_workers": 1},
    "hosted": {"mtp_mode": True},
}
pytestmark = pytest.mark.filterwarnings("ignore:dataset .*bad rows", "ignore:rank . of")


def two(folder, chain, count=COUNT, **policy):
    """Give datasets with bad rows, and the same with good ones to be filtered."""
    policy = {"on_error": "skip", "null_text": "drop", **policy}
    parts = [
        write(folder, name, size, mixed(size, *KINDS[chain]), **policy)
        for name, size in (("prose", count), ("code", count // 2))
    ]
    return zip(*parts, strict=True)


def job(datasets, chain, tokenizer_file, *, clean=False, work="rows", **options):
    pipeline = begin(list(datasets), clean=clean, **WORKS[work])
    return CHAINS[chain](pipeline, tokenizer_file).options(**options)


def run(pipeline, batches=None):
    found = [row for batch in islice(iter(pipeline), batches) for row in rows_of(batch)]
    return found, pipeline.accounting()


def told(account):
    """Say of each component what does not depend on why a row is lost."""
    return {
        name: [each["rows_drawn"], sum(each[word] for word in LOST), each["tokens_made"]]
        for name, each in account.items()
    }


def reconciles(account):
    for each in account.values():
        for part in (each, *each["lanes"].values()):
            assert part["rows_drawn"] >= part["rows_dropped"] + sum(part[word] for word in LOST)


@pytest.mark.parametrize(
    ("chain", "work"),
    [
        *((chain, "rows") for chain in CHAINS),
        *((chain, "tokens") for chain in ("splits", "map", "expression")),
        ("splits", "endless"),
    ],
)
def test_good_rows_come_as_if_bad_ones_were_filtered(tmp_path, tokenizer_file, chain, work):
    broken, clean = two(tmp_path, chain)
    shape = {"work": work, "canonical_replicas": 3, "dp_degree": 1, **WAYS["inline"]}
    wanted, clean_account = run(job(clean, chain, tokenizer_file, clean=True, **shape), BATCHES)
    found, account = run(job(broken, chain, tokenizer_file, **shape), BATCHES)
    assert found == wanted and len(found) > 20
    assert told(account) == told(clean_account)
    assert all(each["rows_skipped"] for each in account.values())
    assert all(each["rows_filtered"] == 0 or chain == "expression" for each in account.values())
    reconciles(account)


@pytest.mark.parametrize(
    ("chain", "way"), list(zip(["splits", "map"] * 2, [*WAYS][1:], strict=True))
)
def test_every_way_leaves_out_the_same(tmp_path, tokenizer_file, chain, way):
    broken, _ = two(tmp_path, chain, 60, on_error="quarantine")
    broken = list(broken)
    written = []
    for number, each in enumerate(("inline", way)):
        shape = {"canonical_replicas": 3, "quarantine": str(tmp_path / str(number))}
        found = run(job(broken, chain, tokenizer_file, **shape, **WAYS[each]))
        written.append((found, quarantined(tmp_path / str(number))))
    assert written[0] == written[1]
    (_, account), rows = written[0]
    assert len(rows) == sum(each["rows_quarantined"] for each in account.values()) > 10


def quarantined(root):
    """Give what is written down, by where it is."""
    files = list(root.rglob("*.jsonl"))
    found = {str(path.relative_to(root)): json.loads(path.read_text()) for path in files}
    assert all(path.read_text().count("\n") == 1 for path in files)
    return found


@pytest.mark.parametrize(
    ("chain", "work"),
    [("splits", "tokens"), ("groups", "rows"), ("map behind packing", "rows")],
)
def test_whoever_goes_on_from_any_state_counts_and_writes_the_same(
    tmp_path, tokenizer_file, chain, work
):
    broken, _ = two(tmp_path, chain, 16, on_error="quarantine")
    broken = list(broken)
    shape = {"work": work, "canonical_replicas": 2, "dp_degree": 1, **WAYS["inline"]}

    def make(root):
        return job(broken, chain, tokenizer_file, **shape, quarantine=str(tmp_path / root))

    whole, account = run(make("whole"))
    rows = quarantined(tmp_path / "whole")
    assert len(rows) == sum(each["rows_quarantined"] for each in account.values())
    pipe, found, restored = make("parts"), [], None
    for _ in range(2 * len(whole)):  # each state once, and what is written until then
        if restored is not None:
            pipe = make("parts").restore(restored)
        batch = next(iter(pipe), None)
        if batch is None:
            break
        found += rows_of(batch)
        restored = json.loads(json.dumps(pipe.checkpoint()))
        until = sum(each["rows_quarantined"] for each in pipe.accounting().values())
        assert len(quarantined(tmp_path / "parts")) == until
    assert found == whole
    assert pipe.accounting() == account
    assert quarantined(tmp_path / "parts") == rows


@pytest.mark.parametrize(("chain", "work"), [("splits", "endless"), ("map", "tokens")])
def test_any_number_of_ranks_delivers_and_writes_the_same(tmp_path, tokenizer_file, chain, work):
    broken, clean = two(tmp_path, chain, on_error="quarantine")
    broken, steps = list(broken), 2
    shape = {"work": work, "global_batch_size": 12, "canonical_replicas": 4, **WAYS["inline"]}
    oracle = job(clean, chain, tokenizer_file, clean=True, **shape, dp_degree=1, dp_group_id=0)
    whole, wanted = run(oracle, steps * 12)
    for degree in (1, 2, 3, 4):
        root, found, lanes = tmp_path / f"of {degree}", [], {}
        for group in range(degree):
            rank = {"dp_degree": degree, "dp_group_id": group, "quarantine": str(root)}
            rows, account = run(
                job(broken, chain, tokenizer_file, **shape, **rank), steps * 12 // degree
            )
            found.append(rows)
            for name, each in account.items():
                for lane, part in each["lanes"].items():
                    assert lanes.setdefault((name, lane), part) == part
            reconciles(account)
        size = 12 // degree
        mine = [r for s in range(steps) for rows in found for r in rows[s * size : (s + 1) * size]]
        assert mine == whole
        lost = sum(part[word] for part in lanes.values() for word in LOST)
        assert lost == sum(sum(each[word] for word in LOST) for each in wanted.values())
        rows = quarantined(root)
        if work == "tokens":  # one pass: each row counts once
            assert len(rows) == sum(part["rows_quarantined"] for part in lanes.values())
        if degree == 1:
            first = rows
        assert rows == first


@settings(max_examples=8, deadline=None)
@given(
    st.dictionaries(st.integers(0, 39), st.sampled_from([*BAD.values(), NULL]), max_size=40),
    st.integers(1, 4),
    st.sampled_from(["inline", "little memory"]),
    st.sampled_from(["wrap", "splits", "map"]),
    st.sampled_from(["error", "drop"]),
)
def test_any_rows_may_be_bad(tmp_path_factory, tokenizer_file, bad, lanes, way, chain, null_text):
    folder = tmp_path_factory.mktemp("bad")
    policy = {"on_error": "skip", "null_text": null_text}
    broken, clean = write(folder, "prose", 40, bad, **policy)
    shape = {"canonical_replicas": lanes, **WAYS[way]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows no batch may be whole
        wanted, clean_account = run(job([clean], chain, tokenizer_file, clean=True, **shape))
        found, account = run(job([broken], chain, tokenizer_file, **shape))
    assert found == wanted
    assert told(account) == told(clean_account)
    nulls = sum(line in (NULL, BAD["no field"]) for line in bad.values())
    nulls *= chain != "map"  # its function raises for these
    lost = account["prose"]
    assert lost["rows_null"] == (nulls if null_text == "drop" else 0)
    assert lost["rows_skipped"] == len(bad) - lost["rows_null"]
