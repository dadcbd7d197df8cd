"""Functions of the user on delivered batches, called on the caller's thread."""

from __future__ import annotations

from collections.abc import Sequence

from zephon.errors import ExecutionError, told
from zephon.planner.logical import MapBatch
from zephon.types import SampleBatch


def mapped(batch: SampleBatch, calls: Sequence[MapBatch]) -> SampleBatch | None:
    """Call functions one after the other; None: one of them dropped the batch.

    Raises:
        ExecutionError: a function failed, or gave something else than a batch.
    """
    for call in calls:
        try:
            found = call.function(batch)
        except Exception as exc:
            ids = batch.ids
            raise ExecutionError(
                f"map_batch: the function raised {told(exc)}, on the batch that "
                f"begins with sample {ids[0] if ids else 'none'}; mend the function"
            ) from exc
        if found is None:
            if call.drop_none:
                return None
            continue
        if not isinstance(found, SampleBatch):
            raise ExecutionError(
                f"map_batch: the function must return a SampleBatch or None, got a "
                f"{type(found).__name__}; make one of records with SampleBatch(records)"
            )
        batch = found
    return batch
