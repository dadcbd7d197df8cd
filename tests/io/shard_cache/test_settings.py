"""What the documented options come to."""

import os
from pathlib import Path

from zephon.io import CacheOptions
from zephon.io.own_directory import default_root
from zephon.io.shard_cache import CacheSettings


def test_options_become_settings(monkeypatch):
    given = {
        "root": "~/shards",
        "limit_bytes": "1mb",
        "min_slack_bytes": 5,
        "max_slack_bytes": 7,
        "validate_hash": "md5",
        "download_retry": 0,
        "download_timeout": 3,
        "open_retry_attempts": 2,
        "open_retry_initial_backoff": 0.5,
        "open_retry_max_backoff": 4,
    }
    assert CacheSettings.of(CacheOptions.from_any(given)) == CacheSettings(
        root=Path(os.environ["HOME"], "shards"),
        limit_bytes=1 << 20,
        min_slack_bytes=5,
        max_slack_bytes=7,
        validate_hash="md5",
        attempts=1,
        timeout_s=3,
        open_attempts=2,
        open_backoff_s=0.5,
        open_most_backoff_s=4,
    )


def test_the_root_that_nobody_named_is_the_user_s_own():
    told = CacheSettings.of(CacheOptions())
    assert (told.root, told.ours) == (default_root().absolute(), True)
    assert told.root == Path(os.environ["HOME"], ".cache", "zephon")
    assert not CacheSettings.of(CacheOptions(root="cache")).ours
    assert CacheSettings.of(CacheOptions(root="cache")).root == Path.cwd() / "cache"
