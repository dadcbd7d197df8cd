"""What one cache is told: the documented options, checked, with an absolute root."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zephon.io.own_directory import default_root

SPACE_VARIABLE = "ZEPHON_DISABLE_CACHE_SPACE_CHECK"
_SLACK_SHARE, _MOST_SLACK_SHARE = 16, 4  # one part in so many of the limit


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """See ``CacheOptions``; ``ours`` says that nobody named the root."""

    root: Path
    limit_bytes: int | None = None
    min_slack_bytes: int = 512 << 10
    max_slack_bytes: int = 64 << 20
    validate_hash: str | None = None
    attempts: int = 12
    timeout_s: float = 180.0
    open_attempts: int = 5
    open_backoff_s: float = 0.1
    open_most_backoff_s: float = 2.0
    ours: bool = False

    @classmethod
    def of(cls, options: Any) -> CacheSettings:
        """Take up ``CacheOptions``."""
        root = Path(os.fsdecode(options.root)).expanduser().absolute()
        return cls(
            root=root,
            limit_bytes=options.limit_bytes,
            min_slack_bytes=options.min_slack_bytes,
            max_slack_bytes=options.max_slack_bytes,
            validate_hash=options.validate_hash,
            attempts=max(options.download_retry, 1),
            timeout_s=options.download_timeout,
            open_attempts=max(options.open_retry_attempts, 1),
            open_backoff_s=options.open_retry_initial_backoff,
            open_most_backoff_s=options.open_retry_max_backoff,
            ours=root == default_root().absolute(),
        )

    @property
    def shared(self) -> str:
        """What all processes that use one root at a time must agree on."""
        if self.limit_bytes is None:
            return "no limit"
        return f"limit_bytes={self.limit_bytes:,}, slack {self.slack:,}"

    @property
    def slack(self) -> int:
        """Bytes that are freed beyond need, so that freeing is not needed each time."""
        if self.limit_bytes is None:
            return 0
        share = min(
            max(self.limit_bytes // _SLACK_SHARE, self.min_slack_bytes), self.max_slack_bytes
        )
        return min(share, self.limit_bytes // _MOST_SLACK_SHARE)


def space_unchecked() -> bool:
    """Tell whether the user said not to ask the file system how much is free."""
    return os.environ.get(SPACE_VARIABLE, "").strip().lower() not in ("", "0", "false", "no")
