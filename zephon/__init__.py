"""Zephon: from raw datasets to the same training batches on any number of GPUs."""

from __future__ import annotations

__version__ = "0.3.0.dev0"

from zephon.io import Dataset, InMemoryShard
from zephon.pipeline import Pipeline
from zephon.types import SampleBatch, SampleMeta, SampleRecord
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
