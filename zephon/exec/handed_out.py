"""What is done about bad rows as soon as the position where they count is handed out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.arrivals import Counts
from zephon.exec.block import Bad
from zephon.io.dataset import Dataset
from zephon.io.far_reading import FarReading
from zephon.io.options import StoreOptions, own_quarantine_root
from zephon.io.quarantine import Condemned, Quarantine
from zephon.io.row_policy import RAISES
from zephon.options import RuntimeOptions


class HandedOut:
    """Writes bad rows down where that is wanted, and remembers the first of each dataset.

    Args:
        datasets: of each component.
        quarantine: where rows are written.
    """

    def __init__(self, datasets: Sequence[Dataset], quarantine: Quarantine) -> None:
        self._datasets = datasets
        self._quarantine = quarantine
        self._first: dict[str, str] = {}  # why the first bad row of a dataset is bad, by name

    @classmethod
    def of(cls, source: Any, options: RuntimeOptions) -> HandedOut:
        """Take a source's datasets, and the place that the options name."""
        root, ours = quarantine_root(options)
        datasets = [component.dataset for component in source.components]
        far = FarReading.of(StoreOptions.from_any(options.io_options))
        return cls(datasets, Quarantine(root, ours=ours, far=far))

    @property
    def writes(self) -> bool:
        """Whether some dataset has its bad rows written down."""
        return any(dataset.policy.on_error == "quarantine" for dataset in self._datasets)

    def open(self) -> None:
        """Refuse a place that cannot be written, before any row is met.

        Raises:
            ExecutionError: it cannot.
        """
        if self.writes:
            self._quarantine.open()

    def write(self, bad: Sequence[Bad]) -> None:
        """Write down rows that are to be; raises as ``Quarantine.write``."""
        rows = [
            Condemned(self._datasets[each.component], each.shard, each.row, *each.why)
            for each in bad
            if each.quarantined
        ]
        if rows:
            self._quarantine.write(rows)

    def take(self, bad: Sequence[Bad]) -> None:
        """Do what there is to do about rows, in order; raises as ``Quarantine.write``."""
        for each in bad:
            self._first.setdefault(self._datasets[each.component].name, each.why.text)
        if bad:
            self.write(bad)

    def lines(self, counts: Sequence[Counts]) -> list[str]:
        """Say how many bad rows of each dataset were left out, and why the first was.

        Args:
            counts: of each lane.
        """
        totals: dict[str, NDArray[np.int64]] = {}
        for number, dataset in enumerate(self._datasets):
            lost = [(each.skipped[number], each.quarantined[number]) for each in counts]
            totals[dataset.name] = totals.get(dataset.name, 0) + np.sum(lost, axis=0)
        lines = []
        for name, lost in totals.items():
            words = zip(lost.tolist(), ("skipped", "quarantined"), strict=True)
            how = [f"{count:,} {word}" for count, word in words if count]
            if how:
                first = self._first.get(name)
                told = "" if first is None else f"; the first here: {first}"
                lines.append(f"dataset {name!r}: bad rows, {' and '.join(how)} so far{told}")
        return lines


def policy_notes(
    source: Any,
    options: RuntimeOptions,
    counted: Callable[[], Mapping[str, Mapping[str, Any]]] | None,
) -> tuple[str, ...]:
    """Say in lines for people what becomes of bad rows, and of nulls where text is read.

    Args:
        source: of the datasets; those where bad rows end the run, and nulls too, are passed over.
        options: say where rows are written.
        counted: gives what ``account`` does; None: nothing has run.
    """
    lines: dict[str, str] = {}
    if all(component.dataset.policy == RAISES for component in source.components):
        return ()
    counts = {} if counted is None else counted()
    for component in source.components:
        name, policy = component.dataset.name, component.dataset.policy
        words = []
        if policy.on_error == "quarantine":
            words.append(f"bad rows are left out, and written to {quarantine_root(options)[0]}")
        elif policy.on_error == "skip":
            words.append("bad rows are left out")
        if policy.null_text != "error":
            means = "drops its row" if policy.null_text == "drop" else "is empty"
            words.append(f"a text that is null {means}")
        found = counts.get(component.name, {})
        words += [
            f"{found[f'rows_{word}']:,} {word} so far"
            for word in ("skipped", "quarantined", "null")
            if found.get(f"rows_{word}")
        ]
        if words:
            lines[component.name] = f"{name}: {'; '.join(words)}"
    return tuple(lines.values())


def quarantine_root(options: RuntimeOptions) -> tuple[Path, bool]:
    """Give the directory of bad rows, and whether nobody named it."""
    if options.quarantine is not None:
        return Path(options.quarantine).expanduser().absolute(), False
    root = StoreOptions.from_any(options.io_options).quarantine_root()
    return root, root == own_quarantine_root()
