"""Zephon: from raw datasets to the same training batches on any number of GPUs."""

from __future__ import annotations

from zephon.io import Dataset, InMemoryShard
from zephon.pipeline import Pipeline
from zephon.types import SampleBatch, SampleMeta, SampleRecord
from zephon.version import __version__
from zephon.work import MixtureSpec, StaticMixtureWorkSource, WorkSource

__all__ = [
    "Dataset",
    "InMemoryShard",
    "MixtureSpec",
    "Pipeline",
    "SampleBatch",
    "SampleMeta",
    "SampleRecord",
    "StaticMixtureWorkSource",
    "WorkSource",
    "__version__",
]
