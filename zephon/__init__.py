"""Zephon: from raw datasets to the same training batches on any number of GPUs."""

from __future__ import annotations

__version__ = "0.3.0.dev0"
