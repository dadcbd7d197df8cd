"""What a run tells of itself while it goes on: ``stats`` holds the figures, as frozen values."""

from zephon.observability.stats import MTPQueueStats

__all__ = ["MTPQueueStats"]
