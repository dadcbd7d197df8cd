"""How a run reads: memory, whether there is a spill, and what is expected of it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.properties.recipes import packed, source, two_datasets
from tests.written import in_order, parquet
from zephon import Dataset, Pipeline
from zephon.errors import PlanError
from zephon.exec.lanes import make_topology
from zephon.exec.reading import CACHE_SHARE, plan_reading
from zephon.io import StoreOptions
from zephon.io.shards import Shards
from zephon.options import DEFAULT_MEMORY_BUDGET, MOST_DEFAULT_BUDGET, RuntimeOptions

MB = 1 << 20


def topology(lanes=1, ranks=1):
    return make_topology(
        global_batch_size=lanes, canonical_replicas=lanes, dp_degree=ranks, dp_group_id=0,
        mapping_strategy="contiguous",
    )  # fmt: skip


def described(
    group_bytes, *, shards=8, groups=5, rows=1000, name="big", path="/nowhere", end=".parquet"
):
    """A dataset of which only the shape is there."""
    return Dataset(
        name,
        "parquet" if end == ".parquet" else "jsonl",
        path,
        Shards(
            directory=path,
            names=pa.array([f"{n:06}{end}" for n in range(shards)], pa.large_string()),
            rows=np.full(shards, groups * rows),
            bytes=np.full(shards, 10),
            decoded_bytes=np.full(shards, groups * group_bytes),
            group_starts=np.arange(shards + 1) * groups,
            group_rows=np.full(shards * groups, rows),
        ),
    )


def read(dataset, lanes=1, *, ranks=1, work=None, **options):
    found = in_order(*(dataset if isinstance(dataset, list) else [dataset]), **(work or {}))
    return plan_reading(found, RuntimeOptions(**options), topology(lanes, ranks))


def test_one_lane_in_order_needs_no_spill():
    reading = read(described(6 * MB))
    assert reading.budget == DEFAULT_MEMORY_BUDGET
    assert reading.cache_bytes == int(DEFAULT_MEMORY_BUDGET * CACHE_SHARE)
    assert (reading.spill, reading.amplification) == (None, 1.0)
    assert reading.lines == (
        "the order touches 1 row group at a time (6.3 MB); memory holds them, up to 113.2 MB",
    )


def test_lanes_do_not_make_the_budget_grow_where_there_is_a_spill():
    reading = read(described(6 * MB, shards=100), 64)
    assert reading.budget == DEFAULT_MEMORY_BUDGET
    assert reading.spill is not None
    assert reading.spill.root == Path("~/.cache/zephon/.parquet-rg-cache").expanduser()
    assert (reading.spill.limit_bytes, reading.spill.min_free_bytes) == (4 << 30, 1 << 30)
    assert reading.amplification == 1.0
    assert reading.lines == (
        "the order touches 64 row groups at a time (402.7 MB), of which memory holds 113.2 MB",
        f"spill: groups that leave memory are mapped from {reading.spill.root}, which may hold "
        "4,295.0 MB",
        "rows decoded for each row drawn: about 1",
    )


def test_a_rank_counts_its_own_lanes():
    assert read(described(6 * MB, shards=100), 64, ranks=8).spill is None
    assert "touches 8 row groups" in read(described(6 * MB, shards=100), 64, ranks=8).lines[0]
    assert "touches 16 row groups" in read(described(6 * MB, shards=100), 64, ranks=4).lines[0]


OFF = {"io_options": {"parquet": {"rg_cache": False}}}


def test_without_a_spill_the_budget_grows_up_to_a_bound():
    assert read(described(MB), 64, **OFF).budget == DEFAULT_MEMORY_BUDGET
    grown = read(described(6 * MB, shards=100), 64, **OFF)
    assert grown.budget == int(64 * 6 * MB / CACHE_SHARE)
    assert (grown.spill, grown.amplification) == (None, 1.0)
    assert read(described(1 << 30, shards=100), 64, **OFF).budget == MOST_DEFAULT_BUDGET


def test_rows_in_memory_never_spill_so_their_budget_grows():
    work = source(two_datasets())
    small = plan_reading(work, RuntimeOptions(), topology(4))
    assert (small.budget, small.spill) == (DEFAULT_MEMORY_BUDGET, None)
    must = RuntimeOptions(io_options={"parquet": {"rg_cache": {"root": "/x"}}})
    assert plan_reading(work, must, topology(4)).spill is None
    tight = plan_reading(work, RuntimeOptions(memory_budget="1kb"), topology(4))
    assert (tight.budget, tight.spill) == (1024, None)


def test_a_budget_that_was_set_is_kept():
    reading = read(described(6 * MB, shards=100), 64, memory_budget="7mb", **OFF)
    assert (reading.budget, reading.cache_bytes) == (7 * MB, int(7 * MB * CACHE_SHARE))


@pytest.mark.parametrize(
    ("work", "groups"),
    [
        ({}, 1),
        ({"shuffle_within_shard": True}, 5),
        ({"shuffle_block_size": 1000}, 2),
        ({"shuffle_block_size": 3000}, 4),
        ({"shuffle_block_size": 1000, "shuffle_within_shard": True}, 6),
        ({"shuffle_block_size": 10_000, "shuffle_within_shard": True}, 15),
        ({"shuffle_block_size": 10_000}, 11),
        ({"shuffle_block_size": "global"}, 40),
        ({"shuffle_block_size": "auto"}, 40),
    ],
)
def test_what_the_order_touches_at_a_time(work, groups):
    lines = read(described(MB), work=work).lines
    assert lines[0].startswith(f"the order touches {groups} row group")


def test_lanes_share_what_they_touch():
    def touched(lanes, **work):
        return int(read(described(MB), lanes, work=work).lines[0].split()[3])

    assert touched(4) == 4
    assert touched(64) == 40
    assert touched(2, shuffle_within_shard=True) == 10
    assert touched(64, shuffle_within_shard=True) == 40
    assert touched(64, shuffle_block_size="global") == 40


def test_components_add_up_and_a_weight_of_zero_is_not_read():
    both = [described(MB, name="one"), described(MB, name="two")]
    assert "touches 2 row groups" in read(both).lines[0]
    work = source(both, {"one": 1.0, "two": 0.0})
    assert "touches 1 row group " in plan_reading(work, RuntimeOptions(), topology()).lines[0]


GLOBAL = {"shuffle_block_size": "global", "shuffle_within_shard": True}


def test_a_global_shuffle_of_more_than_there_is_room_for_is_warned_of():
    reading = read(described(6 * MB, shards=1000), work=GLOBAL)
    assert reading.amplification > 100
    (warning,) = [line for line in reading.lines if line.startswith("warning: ")]
    for part in (
        "31.5 GB of row groups fit neither into memory nor into the spill",
        "a global shuffle of big will decode a row group for some 1 rows",
        "shuffle_within_shard with a shuffle buffer",
        "a smaller shuffle_block_size",
        "io_options.parquet.rg_cache.limit_bytes",
    ):
        assert part in warning
    roomy = {"parquet": {"rg_cache": {"limit_bytes": "64gb"}}}
    reading = read(described(6 * MB, shards=1000), work=GLOBAL, io_options=roomy)
    assert reading.amplification == 1.0
    assert not any("warning" in line for line in reading.lines)


def test_without_a_spill_the_advice_is_memory_or_a_spill():
    reading = read(described(6 * MB, shards=100), work=GLOBAL, **OFF)
    assert reading.amplification > 10
    assert "raise memory_budget, or let the spill be on" in reading.lines[-1]
    forward = read(described(60 * MB, shards=100), 64, **OFF)
    assert "are decoded again and again; raise memory_budget" in forward.lines[-1]


def test_the_expected_amplification_falls_with_room():
    factors = [
        read(described(6 * MB), work=GLOBAL, memory_budget=f"{size}mb", **OFF).amplification
        for size in (16, 64, 128, 256, 512)
    ]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] > 10
    assert factors[-1] == 1.0


def test_a_spill_that_is_asked_for_is_there_whatever_the_order():
    wanted = {"cache": {"root": "/caches", "enabled": True, "limit_bytes": "100gb"}}
    for io_options in (wanted, StoreOptions.from_any(wanted)):
        spill = read(described(MB), io_options=io_options).spill
        assert spill is not None
        assert (spill.root, spill.limit_bytes) == (Path("/caches/.parquet-rg-cache"), 10 << 30)
    spill = read(described(MB), io_options={"parquet": {"rg_cache": {"root": "/s"}}}).spill
    assert spill is not None
    assert spill.root == Path("/s")


def test_a_spill_that_must_be_and_has_no_place_is_refused_when_the_run_opens(tmp_path):
    parquet(tmp_path, "a.parquet", [{"input_ids": [1, 2]}] * 5)
    pipe = (
        Pipeline(in_order(Dataset.from_path("d", tmp_path)))
        .pack_flat(max_length=3, algorithm="wrap")
        .options(io_options={"parquet": {"rg_cache": True}})
    )
    for call in (pipe.explain, lambda: iter(pipe)):
        with pytest.raises(PlanError, match=r"requires parquet\.rg_cache\.root"):
            call()
    pipe.options(io_options={"cache": {"enabled": True, "root": tmp_path / "caches"}})
    assert f"mapped from {tmp_path / 'caches' / '.parquet-rg-cache'}" in pipe.explain()
    assert len(list(pipe)) > 0
    assert not (tmp_path / "caches").exists()  # nothing left memory


def test_io_options_change_no_recipe_and_are_merged():
    pipe = packed(io_options={"cache": {"enabled": True}})
    pipe.options(io_options={"cache": {"root": "/caches", "keep_zip": True}})
    found = pipe._options.io_options
    assert (found.cache.enabled, found.cache.root) == (True, "/caches")
    assert pipe.fingerprint() == packed().fingerprint()
    assert "io_options without effect here: cache.keep_zip" in pipe.explain()
    assert "io_options without effect" not in packed(io_options={"cache": True}).explain()
    with pytest.raises(PlanError, match="unknown option 'cashe'; did you mean 'cache'"):
        packed(io_options={"cashe": True})


def test_a_source_that_says_nothing_of_its_order_is_taken_to_read_forward():
    work = in_order(described(MB))

    class Plain:
        components = work.components

    reading = plan_reading(Plain(), RuntimeOptions(), topology(4))
    assert "touches 4 row groups" in reading.lines[0]


@pytest.mark.parametrize(
    ("end", "group_bytes", "work", "lanes", "spills"),
    [
        (".gz", 4 * MB, {"shuffle_within_shard": True}, 1, True),
        (".XZ", 4 * MB, {"shuffle_block_size": 10**9}, 1, True),
        ("", 4 * MB, {"shuffle_within_shard": True}, 1, False),
        (".gz", MB, {"shuffle_within_shard": True}, 1, False),  # all of it is held
        (".gz", 4 * MB, {}, 1, False),
        (".gz", 4 * MB, {}, 4, False),  # lanes lie near each other
        (".gz", 40 * MB, {}, 4, True),
    ],
)
def test_compressed_lines_that_are_wanted_further_back_need_a_spill(
    end, group_bytes, work, lanes, spills
):
    """What memory holds is not enough: a block that it does not hold yet lies behind others."""
    dataset = described(group_bytes, end=f".jsonl{end}")
    reading = read(dataset, lanes, work=work, memory_budget="4gb")
    assert (reading.spill is not None) == spills
    off = {"parquet": {"rg_cache": {"enabled": False}}}
    assert read(dataset, lanes, work=work, memory_budget="4gb", io_options=off).spill is None


def test_huge_row_groups_are_warned_of_with_the_peak(tmp_path, monkeypatch):
    monkeypatch.setattr("zephon.io.formats.parquet_units.HUGE_BYTES", 1000)
    monkeypatch.setattr("zephon.io.formats.parquet_units.UNIT_BYTES", 500)
    parquet(tmp_path, "a.parquet", [{"n": n} for n in range(2000)], row_group_size=2000)
    dataset = Dataset.from_path("d", tmp_path)
    groups = len(dataset.group_sizes())
    assert groups > 20
    reading = read(dataset)
    warning = reading.lines[-1]
    assert warning.startswith("warning: row groups of d take up to 0.0 MB once decoded; they are ")
    assert "so the peak is some 113.2 MB of these and 100.7 MB for each worker" in warning
    assert (reading.spill, reading.amplification) == (None, 1.0)
    # In blocks at random, parts are passed that nobody wants: of so many, eight readers stand.
    blocks = read(dataset, work={"shuffle_block_size": 100})
    assert (
        1
        < blocks.amplification
        == pytest.approx(dataset.shards.huge_group_bytes() / dataset.mean_group_bytes() / 9)
    )
