"""Options of storage: documented names and defaults, merging, sizes, and values that cannot be."""

import copy
import os
import pickle
from dataclasses import asdict
from pathlib import Path

import pytest

import zephon.io
from zephon.errors import PlanError
from zephon.io import (
    ArrowOptions,
    CacheOptions,
    LanceOptions,
    ParquetOptions,
    ParquetRGCacheOptions,
    StoreOptions,
    VortexOptions,
)
from zephon.io.options import parse_size_bytes
from zephon.io.own_directory import own_row_group_root

CLASSES = [
    ArrowOptions, CacheOptions, LanceOptions, ParquetOptions, ParquetRGCacheOptions, StoreOptions,
    VortexOptions,
]  # fmt: skip

CACHE = {
    "enabled": False,
    "limit_bytes": None,
    "rg_cache_bytes": None,
    "keep_zip": False,
    "validate_hash": None,
    "download_retry": 12,
    "download_timeout": 180.0,
    "open_retry_attempts": 5,
    "open_retry_initial_backoff": 0.1,
    "open_retry_max_backoff": 2.0,
    "min_slack_bytes": 512 * 1024,
    "max_slack_bytes": 64 * 1024 * 1024,
}
SPILL = {"enabled": None, "root": None, "limit_bytes": None, "min_free_bytes": 1 << 30}


def test_defaults_are_the_documented_ones():
    assert asdict(StoreOptions()) == {
        "cache": {**CACHE, "root": Path("~/.cache/zephon").expanduser()},
        "arrow": {"cpu_threads": 1, "io_threads": 1},
        "parquet": {"use_threads": False, "rg_cache": SPILL},
        "vortex": {"segment_cache_bytes": 64 << 20, "worker_threads": 1},
        "lance": {"worker_threads": 2},
        "metadata_cache_entries": 256,
        "direct": False,
    }
    assert StoreOptions().without_effect == ()


@pytest.mark.parametrize("kind", CLASSES)
def test_options_are_made_of_nothing_a_dict_or_themselves(kind):
    assert kind.from_any(None) == kind.from_any({}) == kind()
    made = kind()
    assert kind.from_any(made) is made
    assert getattr(zephon.io, kind.__name__) is kind
    for wrong in ("a directory", 3, object()):
        with pytest.raises(TypeError, match=f"expected {kind.__name__}, a dict or None, got"):
            kind.from_any(wrong)
    with pytest.raises(PlanError, match=r"io_options.*: unknown option 'enabledd'"):
        kind.from_any({"enabledd": True})


@pytest.mark.parametrize("kind", [CacheOptions, ParquetRGCacheOptions])
def test_caches_are_also_made_of_a_switch(kind):
    assert kind.from_any(True) == kind(enabled=True)
    assert kind.from_any(False) == kind(enabled=False)
    with pytest.raises(TypeError, match="got True"):
        ArrowOptions.from_any(True)


def test_groups_are_dicts_or_instances():
    made = StoreOptions(cache={"enabled": True}, parquet={"rg_cache": False})  # type: ignore[arg-type]
    assert made == StoreOptions.from_any(
        {
            "cache": CacheOptions(enabled=True),
            "parquet": ParquetOptions(rg_cache=ParquetRGCacheOptions(enabled=False)),
        }
    )
    assert made.cache.enabled is True


def test_merging_overlays_what_was_given_and_nothing_else():
    first = StoreOptions.from_any(
        {"cache": {"enabled": True, "limit_bytes": 5}, "parquet": {"rg_cache": {"root": "/spill"}}}
    )
    second = first.merge({"cache": {"root": "/caches"}, "metadata_cache_entries": 3})
    assert (second.cache.enabled, second.cache.limit_bytes) == (True, 5)
    assert (second.cache.root, second.metadata_cache_entries) == ("/caches", 3)
    assert second.parquet.rg_cache.root == "/spill"
    assert first.cache.root == CacheOptions().root  # unchanged
    third = second.merge(StoreOptions(cache=CacheOptions(enabled=False)))
    assert (third.cache.enabled, third.cache.root) == (False, "/caches")
    assert third.merge(None) == third


def test_a_value_that_equals_its_default_counts_as_given():
    on = CacheOptions(enabled=True)
    assert on.merge(CacheOptions()).enabled is True
    assert on.merge(CacheOptions(False)).enabled is False
    assert on.merge({"enabled": False}).merge({"root": "/x"}).enabled is False


def test_none_resets_a_field_but_not_a_count_of_threads():
    cache = CacheOptions(enabled=True, limit_bytes=5, download_retry=1)
    assert cache.merge({"enabled": None, "limit_bytes": None}) == CacheOptions(download_retry=1)
    # It was given, so it resets a third one too.
    assert cache.merge(CacheOptions().merge({"enabled": None})).enabled is False
    assert StoreOptions(cache=cache).merge({"cache": None}).cache == CacheOptions()
    assert ArrowOptions(cpu_threads=4).merge({"cpu_threads": None}).cpu_threads is None
    assert LanceOptions(worker_threads=None).worker_threads is None
    assert VortexOptions(worker_threads=None, segment_cache_bytes=None) == VortexOptions(
        worker_threads=None
    )


def test_copies_remember_what_was_given():
    for other in (copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))):
        found = other(StoreOptions.from_any({"cache": {"enabled": False}, "lance": {}}))
        assert StoreOptions.from_any({"cache": True}).merge(found).cache.enabled is False


def test_sizes_are_bytes_or_text():
    made = CacheOptions.from_any({"limit_bytes": "750gb", "min_slack_bytes": "1mb"})
    assert (made.limit_bytes, made.min_slack_bytes) == (750 << 30, 1 << 20)
    spill = ParquetRGCacheOptions(limit_bytes="8 GB", min_free_bytes="0")
    assert (spill.limit_bytes, spill.min_free_bytes) == (8 << 30, 0)
    assert VortexOptions(segment_cache_bytes="2kb").segment_cache_bytes == 2048


@pytest.mark.parametrize(
    ("size", "wanted"),
    [("750gb", 750 << 30), ("1.5 GB", 3 << 29), ("10", 10), (10, 10), ("1kb", 1024), ("0", 0)],
)
def test_a_size_is_read(size, wanted):
    assert parse_size_bytes(size) == wanted
    assert parse_size_bytes(None) is None


def test_what_is_no_size_is_refused():
    for wrong in ("", "1k", "x", "-1gb", -1):
        with pytest.raises(PlanError, match="a size must be"):
            parse_size_bytes(wrong)
    for wrong in (1.5, True, [1]):
        with pytest.raises(TypeError, match="a size must be bytes or text"):
            parse_size_bytes(wrong)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (ArrowOptions, {"cpu_threads": 0}, "arrow.cpu_threads: expected a whole number of at le"),
        (ArrowOptions, {"io_threads": True}, "arrow.io_threads: .* got True"),
        (LanceOptions, {"worker_threads": 0}, "lance.worker_threads: .* at least 1, got 0"),
        (VortexOptions, {"segment_cache_bytes": -1}, "vortex.segment_cache_bytes: a size must be"),
        (ParquetOptions, {"use_threads": 1}, "parquet.use_threads: expected True or False, got 1"),
        (ParquetRGCacheOptions, {"limit_bytes": 0}, "rg_cache.limit_bytes: .* at least 1 byte"),
        (ParquetRGCacheOptions, {"limit_bytes": "-1gb"}, "rg_cache.limit_bytes: a size must be"),
        (ParquetRGCacheOptions, {"min_free_bytes": -1}, "rg_cache.min_free_bytes: a size must be"),
        (ParquetRGCacheOptions, {"enabled": "yes"}, "rg_cache.enabled: expected True or False"),
        (ParquetRGCacheOptions, {"root": ""}, "rg_cache.root: expected a directory, got ''"),
        (CacheOptions, {"enabled": 1}, "cache.enabled: expected True or False, got 1"),
        (CacheOptions, {"limit_bytes": "12 parsecs"}, "cache.limit_bytes: a size must be"),
        (CacheOptions, {"root": "~nobody-at-all/x"}, "cache.root: expected a directory, got '~nob"),
        (ParquetRGCacheOptions, {"root": "a\0b"}, "rg_cache.root: expected a directory, got"),
        (CacheOptions, {"root": 3}, "cache.root: expected a directory, got 3"),
        (CacheOptions, {"limit_byte": 3}, "unknown option 'limit_byte'; did you mean 'limit_byt"),
        (StoreOptions, {"metadata_cache_entries": -1}, "metadata_cache_entries: .* least 0, got"),
        (StoreOptions, {"cach": True}, "unknown option 'cach'; did you mean 'cache'"),
    ],
)
def test_a_value_that_cannot_be_is_refused(kind, given, message):
    with pytest.raises(PlanError, match=f"io_options.*{message}"):
        kind.from_any(given)


def test_the_old_name_of_the_spill_is_refused_with_the_new_one():
    with pytest.raises(TypeError, match=r"has moved to parquet\.rg_cache"):
        StoreOptions.from_any({"parquet_rg_cache": {}})


def test_the_old_size_of_the_spill_still_works_and_warns():
    with pytest.warns(DeprecationWarning, match="use parquet.rg_cache.limit_bytes"):
        old = StoreOptions.from_any({"cache": {"enabled": True, "rg_cache_bytes": "1mb"}})
    assert old.resolved_parquet_rg_cache().limit_bytes == 1 << 20
    with pytest.warns(DeprecationWarning):
        both = old.merge({"parquet": {"rg_cache": {"limit_bytes": 9}}})
    assert both.resolved_parquet_rg_cache().limit_bytes == 9
    with pytest.warns(DeprecationWarning):
        none = CacheOptions(enabled=True, rg_cache_bytes=0)
    with pytest.warns(DeprecationWarning):
        assert StoreOptions().merge({"cache": none}).resolved_parquet_rg_cache().enabled is False


@pytest.mark.parametrize(
    ("given", "enabled", "root", "limit"),
    [
        ({}, None, "~/.cache/zephon/.parquet-rg-cache", 4 << 30),
        ({"cache": True}, True, "~/.cache/zephon/.parquet-rg-cache", 4 << 30),
        ({"cache": {"root": "/x"}}, None, "/x/.parquet-rg-cache", 4 << 30),
        (
            {"cache": {"enabled": True, "root": "~/x", "limit_bytes": "100gb"}},
            True,
            "~/x/.parquet-rg-cache",
            10 << 30,
        ),
        ({"cache": {"limit_bytes": "1gb"}}, None, "~/.cache/zephon/.parquet-rg-cache", 4 << 30),
        ({"parquet": {"rg_cache": {"root": "~/s"}}}, True, "~/s", 4 << 30),
        ({"parquet": {"rg_cache": {"root": "/s", "limit_bytes": 7}}}, True, "/s", 7),
        (
            {"cache": True, "parquet": {"rg_cache": False}},
            False,
            "~/.cache/zephon/.parquet-rg-cache",
            4 << 30,
        ),
    ],
)
def test_where_the_spill_is_follows_from_other_options(given, enabled, root, limit):
    spill = StoreOptions.from_any(given).resolved_parquet_rg_cache()
    assert spill.enabled is enabled
    assert spill.root == Path(root).expanduser()
    assert (spill.limit_bytes, spill.min_free_bytes) == (limit, 1 << 30)


def test_a_place_is_absolute_and_there_without_a_home(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    spill = StoreOptions.from_any({"cache": {"root": "here"}}).resolved_parquet_rg_cache()
    assert spill.root == tmp_path / "here" / ".parquet-rg-cache"
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])  # a container's user of no name
    assert Path(CacheOptions().root).name == f"zephon-{os.getuid()}"


def test_the_root_that_nobody_names_is_known_as_such():
    assert StoreOptions().resolved_parquet_rg_cache().root == own_row_group_root()
    assert StoreOptions.from_any({"cache": True}).resolved_parquet_rg_cache().root == (
        own_row_group_root()
    )


def test_a_spill_that_must_be_wants_a_place():
    must = StoreOptions.from_any({"parquet": {"rg_cache": True}})
    with pytest.raises(PlanError, match=r"requires parquet\.rg_cache\.root when cache\.enabled=Fa"):
        must.resolved_parquet_rg_cache()
    assert must.merge({"cache": True}).resolved_parquet_rg_cache().enabled is True


def test_given_fields_of_no_meaning_are_listed():
    given = StoreOptions.from_any(
        {
            "cache": {"enabled": True, "keep_zip": False, "download_retry": 3},
            "arrow": {"cpu_threads": None},
            "parquet": {"use_threads": True, "rg_cache": {"limit_bytes": 7}},
            "metadata_cache_entries": 1,
        }
    )
    assert given.without_effect == (
        "metadata_cache_entries",
        "cache.download_retry",
        "cache.keep_zip",
        "arrow.cpu_threads",
        "parquet.use_threads",
    )
    assert "lance.worker_threads" in given.merge({"lance": {"worker_threads": 2}}).without_effect


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("validate_hash", "sha255", "expected the name of a hash, got 'sha255'; did you mean"),
        ("validate_hash", 3, "expected the name of a hash, got 3"),
        ("validate_hash", "shake_128", "expected the name of a hash"),
        ("download_timeout", -1, "expected seconds, a number of at least 0, got -1"),
        ("download_timeout", float("nan"), "expected seconds"),
        ("open_retry_initial_backoff", "1", "expected seconds"),
        ("open_retry_max_backoff", True, "expected seconds"),
        ("download_retry", 1.5, "expected a whole number of at least 0, got 1.5"),
        ("open_retry_attempts", -1, "expected a whole number of at least 0, got -1"),
    ],
)
def test_options_of_fetching_are_checked(name, wrong, said):
    with pytest.raises(PlanError, match=rf"io_options.cache.{name}: {said}"):
        CacheOptions.from_any({name: wrong})
    CacheOptions.from_any({"validate_hash": "sha256", "download_timeout": 3, "download_retry": 0})
