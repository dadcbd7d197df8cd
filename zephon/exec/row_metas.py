"""Who a row is as long as nothing else says so: its reference, under public names."""

from __future__ import annotations

from collections.abc import Callable

from zephon.exec.assemble import Naming
from zephon.types import SampleMeta
from zephon.work.refs import Refs


def row_namer(naming: Naming) -> Callable[[Refs, int], SampleMeta]:
    """Give the function that says who one of some references is; any thread may call it.

    The answer is what the record of such a row says in a batch, but for what is known only there:
    its tokens and how it was laid out. Part of a row that is not the last counts no sample.
    """

    def name(refs: Refs, i: int) -> SampleMeta:
        component, child = int(refs.component[i]), int(refs.child[i])
        last = bool(refs.last_child[i])
        shard = int(naming.first_shard[component]) + int(refs.shard[i])
        chunk, offset = divmod(int(refs.ordinal[i]), naming.chunk_size)
        return SampleMeta(
            sample_id=(
                int(naming.dataset_id[component]),
                int(naming.shard_id[shard]),
                int(refs.row[i]),
            ),
            lane_id=int(refs.lane[i]),
            chunk_id=chunk,
            chunk_offset=offset,
            component_sample_counts={int(naming.component_id[component]): int(last)},
            lineage=() if last and not child else (child,),
        )

    return name
