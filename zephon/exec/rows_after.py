"""The first rows of each dataset as they are after some steps: for calls that must know fields.

Functions give rows of fields that nobody knows. So a call that packs or weighs such rows runs the
steps before it on few rows, and looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from zephon.exec import session
from zephon.exec.fingerprint import Told
from zephon.io.dataset import Dataset
from zephon.io.fields import LOOKED_AT, Seen
from zephon.io.formats.first_rows import seen_in_rows
from zephon.io.values import fields_of
from zephon.options import RuntimeOptions
from zephon.planner.compiler import compile_plan
from zephon.planner.fetching import fetch_node
from zephon.planner.logical import Fetch, Node, Take
from zephon.planner.tree import top_first, transform_up
from zephon.types import record_of
from zephon.work import MixtureSpec, StaticMixtureWorkSource, WorkSource


@dataclass(frozen=True, slots=True)
class SeenRows:
    """What some rows of a dataset are seen to have; asked like a dataset."""

    rows: Sequence[Any]

    def first_lists(self, names: Sequence[str]) -> dict[str, Seen]:
        """Say what some fields hold."""
        return seen_in_rows(self.rows, names)

    def held_in(self, name: str) -> str:
        """Say what holds the numbers of a field: "list", "tuple", "np" or "pt"."""
        return self.first_lists([name])[name].container


def seen_after(
    below: Node, source: WorkSource, told: Told | None = None
) -> tuple[Fetch, dict[str, SeenRows]]:
    """Run steps on the first rows of each dataset.

    Args:
        below: the steps, down to where rows are read.
        source: of the pipeline.
        told: of its code, where it comes from another process.

    Returns:
        the rows as a source of a plan would describe them, and what is seen of each dataset.

    Raises:
        ZephonError: what the steps raise, where not even one row of a dataset passes them.
    """
    described = next(node for node in top_first(below) if isinstance(node, Fetch))
    datasets = {c.dataset.name: c.dataset for c in source.components if c.read}
    seen = {name: SeenRows(_rows(below, dataset, told)) for name, dataset in datasets.items()}
    components = tuple(
        replace(c, fields=fields_of(seen[c.dataset].rows), fields_complete=False, all_named=False)
        for c in described.components
    )
    return Fetch(components=components, decided_by=described.decided_by), seen


def _rows(below: Node, dataset: Dataset, told: Told | None) -> list[Any]:
    source = StaticMixtureWorkSource(
        datasets=[dataset],
        mixture=MixtureSpec({dataset.name: 1.0}),
        shuffle_shards=False,
    )
    fetch = fetch_node(source)
    few = transform_up(below, lambda node: fetch if isinstance(node, Fetch) else node)
    plan = Take(input=few, rows=LOOKED_AT)
    options = RuntimeOptions(runner="inline")
    compiled = compile_plan(plan)
    topology = session.topology_of(compiled, options, None)
    engine = session.open_engine(compiled, source, options, topology, None, told=told)
    produced = engine.produced()  # not handed out: bad rows are neither told of nor written
    found: list[Any] = []
    try:
        for together in produced:
            found.extend(record_of(handed.batch, 0).payload for handed, _ in together)
    except Exception:
        if not found:  # else the rows seen will do, and the run says what is wrong with the others
            raise
    finally:
        produced.close()
    return found
