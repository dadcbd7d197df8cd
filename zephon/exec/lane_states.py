"""A lane's state as a tree of integers: what ``history`` remembers of it, and what lies under it.

The file is long because it writes and reads one format, and checks all that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.arrivals import REASONS, Arrivals, Counts
from zephon.exec.block import Known
from zephon.exec.carried import Carried
from zephon.exec.half_used import NO_HALVES, Halves
from zephon.exec.history import Below, LaneState, Tick
from zephon.exec.kept_rows import Interval, KeptRows
from zephon.exec.lane_table import Tree, Verbatim
from zephon.exec.ledger import Account
from zephon.exec.policies import AT_END, Held, Units
from zephon.exec.policies.merge_point import MergePoint
from zephon.exec.policies.policy import NO_INTS
from zephon.exec.saved_values import DAMAGE, MOST, array, flag, integers, listed, whole
from zephon.work.refs import Refs

_HALVES = ("ordinal", "child", "digest")
_MERGE_FIELDS = ("position", "base", "live")
_COUNTS = ("rows", "tokens", "filtered", "dropped")
_RARE_COUNTS = ("skipped", "quarantined", "null")  # written where there are such rows
_USUAL_REASONS = 3  # of those in ``REASONS``; the others are written where there are such rows
_MOST_NARROW = np.iinfo(np.int32).max
_REF_FIELDS = ("component", "shard", "row", "pass_index", "ordinal", "child", "last_child")
_WIDE_REFS = ("shard", "row", "ordinal")


def lane_to_dict(state: LaneState) -> Tree:
    """Write one lane's state as a tree; its arrays are the state's own."""
    tick, log = state.tick, state.log
    known, labels = _distinct(tick)
    saved: Tree = {
        "rows": _one(state.rows),
        "last_draw": _one(state.last_draw),
        "ended": _one(state.ended),
        "tick": _one(tick.ordinal),
        "tick_rows": _one(tick.rows),
        "documents": _known_to_dict(known, merged=tick.merge is not None),
        "stages": [
            _stage_to_dict(held, label) for held, label in zip(tick.stages, labels, strict=True)
        ],
        "drawn": _counts_to_dict(tick.counts),
        "log": {
            "ordinal": log.ordinal,
            "component": log.component,
            "length": log.length,
            "measures": list(log.measures),
        },
    }
    if tick.merge is not None:
        rare = log.skipped[_USUAL_REASONS:].any()
        saved["log"]["skipped"] = list(log.skipped if rare else log.skipped[:_USUAL_REASONS])
        saved["merge"] = {name: getattr(tick.merge, name) for name in _MERGE_FIELDS}
    if state.stopped:
        saved["stopped"] = _one(value=True)
    if state.drawn is not None:
        saved["drawn_in_all"] = _counts_to_dict(state.drawn)
    if state.source is not None:
        saved["source"] = Verbatim(state.source)
    if len(state.halves):
        saved["halves"] = {name: getattr(state.halves, name) for name in _HALVES}
    if state.carried is not None:
        saved["carried"] = _carried_to_dict(state.carried)
    if state.below is not None:
        refs = Refs.empty() if log.refs is None else log.refs
        saved["log"]["refs"] = _refs_to_dict(refs)
        saved["below"] = _below_to_dict(state.below)
    return saved


def lane_from_dict(lane: int, saved: Mapping[str, Any]) -> LaneState:
    """Read one lane's state back.

    Raises:
        CheckpointError: a part is missing or does not fit the others.
    """
    try:
        merge = _merge_from_dict(saved["merge"]) if "merge" in saved else None
        log = _log_from_dict(saved["log"], merge)
        known = _known_from_dict(lane, saved["documents"], merge)
        stages = tuple(_stage_from_dict(stage) for stage in listed(saved, "stages"))
        labels = np.concatenate([np.empty(0, np.int64), *(held.units.seq for held in stages)])
        held = known.take(labels)
        _check_pieces([stage.units for stage in stages], held.length)
        counts = _counts_from_dict(saved["drawn"])
        in_all = None
        if merge is not None and saved["ended"]:
            in_all = _counts_from_dict(saved["drawn_in_all"])
            _same_sizes(in_all.rows, counts.rows)
        if merge is not None:
            _same_sizes(*(getattr(merge, name) for name in _MERGE_FIELDS), counts.rows)
        below = _below_from_dict(lane, saved["below"]) if "below" in saved else None
        if below is not None:
            refs = _refs_from_dict(lane, saved["log"]["refs"])
            _same_sizes(refs.ordinal, log.ordinal)
            log = replace(log, refs=refs)
        tick, tick_rows = whole(saved, "tick"), whole(saved, "tick_rows")
        rows, last_draw = whole(saved, "rows", tick_rows), whole(saved, "last_draw", -1)
        _check_log(log, tick, last_draw)
        _check_components(len(counts.rows), log.component, known.refs.component)
        return LaneState(
            rows=rows,
            last_draw=last_draw,
            tick=Tick(
                ordinal=tick,
                rows=tick_rows,
                stages=stages,
                known=held,
                counts=counts,
                merge=merge,
            ),
            log=log,
            ended=flag(saved, "ended"),
            source=saved["source"].value if "source" in saved else None,
            drawn=in_all,
            stopped="stopped" in saved and flag(saved, "stopped"),
            below=below,
            halves=_halves_from_dict(saved["halves"]) if "halves" in saved else NO_HALVES,
            carried=_carried_from_dict(saved["carried"], counts) if "carried" in saved else None,
        )
    except DAMAGE as exc:
        raise CheckpointError(
            f"restore: lane {lane} of the checkpoint is damaged: {type(exc).__name__} {exc}; "
            "restore an earlier one"
        ) from exc


def _distinct(tick: Tick) -> tuple[Known, list[NDArray[np.int64]]]:
    """Return each document that policies hold once, and which of these each of their pieces is."""
    parts = [held.units.seq for held in tick.stages]
    seqs = np.concatenate([NO_INTS, *parts])
    if not len(seqs):
        return tick.known, parts
    _, firsts, label = np.unique(seqs, return_index=True, return_inverse=True)
    return tick.known.take(firsts), np.split(label, np.cumsum([len(part) for part in parts])[:-1])


def _one(value: int) -> NDArray[np.int64]:
    return np.array([value], np.int64)


def _check_log(log: Arrivals, tick: int, last_draw: int) -> None:
    ordinal = log.ordinal
    steps = np.diff(ordinal, prepend=min(tick, ordinal[0]) if len(ordinal) else 0)
    if len(ordinal) and (ordinal[0] < tick or ordinal[-1] != last_draw or int(steps.min()) < 0):
        raise ValueError("its draws are not those from its tick on")


def _check_pieces(parts: Sequence[Units], tokens: NDArray[np.int64]) -> None:
    """Refuse pieces that are longer than their documents, which have so many tokens."""
    if not parts:
        return
    start, length = (np.concatenate([getattr(u, n) for u in parts]) for n in ("start", "length"))
    if (length > tokens).any() or (start > tokens - length).any():
        raise ValueError("pieces are longer than their documents")


def _check_components(count: int, *columns: NDArray[np.int32]) -> None:
    if any(len(column) and int(column.max()) >= count for column in columns):
        raise ValueError(f"rows of more than {count} components")


def _counts_to_dict(counts: Counts) -> dict[str, Any]:
    found = {name: getattr(counts, name) for name in _COUNTS}
    rare = {name: getattr(counts, name) for name in _RARE_COUNTS}
    return {**found, **{name: count for name, count in rare.items() if count.any()}}


def _counts_from_dict(saved: Mapping[str, Any]) -> Counts:
    found = {name: integers(saved, name) for name in _COUNTS}
    found |= {
        name: integers(saved, name) if name in saved else np.zeros_like(found["rows"])
        for name in _RARE_COUNTS
    }
    counts = Counts(**found)
    _same_sizes(*counts)
    return counts


def _halves_from_dict(saved: Mapping[str, Any]) -> Halves:
    halves = Halves(integers(saved, "ordinal"), integers(saved, "child"), array(saved["digest"]))
    _same_sizes(halves.ordinal, halves.child, halves.digest)
    return halves


def _carried_to_dict(carried: Carried) -> dict[str, Any]:
    dropped = dict(sorted(carried.dropped.items()))
    return {"made": carried.made, "dropped": dropped, "documents": _one(carried.documents)}


def _carried_from_dict(saved: Mapping[str, Any], counts: Counts) -> Carried:
    dropped = {reason: integers(saved["dropped"], reason) for reason in saved["dropped"]}
    carried = Carried(array(saved["made"]), dropped, whole(saved, "documents"))
    _same_sizes(counts.rows, carried.made, *dropped.values())
    return carried


def _below_to_dict(below: Below) -> dict[str, Any]:
    rows = KeptRows.concat([interval.rows() for interval in below.intervals]).distinct()
    sizes = [size for interval in below.intervals for size in interval.sizes()]
    merged = below.lane.tick.merge is not None
    saved: dict[str, Any] = {
        "lane": lane_to_dict(below.lane),
        "final": _one(below.final),
        "intervals": np.array([interval.first for interval in below.intervals], np.int64),
        "groups": np.array([len(interval) for interval in below.intervals], np.int64),
        "snapshots": Verbatim([interval.snapshot for interval in below.intervals]),
        "rows": np.array(sizes, np.int64),
        "documents": _known_to_dict(rows.known, merged=merged),
        "units": _units_to_dict(rows.units, rows.units.seq),
        "totals": list(below.account.totals),
        "open": list(below.account.open),
    }
    if below.weights is not None:
        saved["weights"] = [each.view(np.int64) for each in below.weights.T.copy()]
    return saved


def _below_from_dict(lane: int, saved: Mapping[str, Any]) -> Below:
    under = lane_from_dict(lane, saved["lane"])
    known = _known_from_dict(lane, saved["documents"], under.tick.merge)
    units = _units_from_dict(saved["units"])
    if len(units.seq) and int(units.seq.max()) >= len(known):
        raise ValueError("rows of documents that are not there")
    firsts, groups, sizes = (integers(saved, name) for name in ("intervals", "groups", "rows"))
    snapshots = saved["snapshots"].value
    _same_sizes(firsts, groups, snapshots)
    if int(groups.sum()) != len(sizes) or int(sizes.sum()) != len(units):
        raise ValueError("the groups of rows do not fit the rows")
    rows, stops = KeptRows(units, known), np.cumsum(sizes).tolist()
    parts = [rows.rows(a, b) for a, b in zip([0, *stops], stops, strict=False)]
    ends = np.cumsum(groups).tolist()
    weights = [array(each).view(np.float64) for each in listed(saved, "weights")]
    totals, open_ = ([array(each) for each in listed(saved, name)] for name in ("totals", "open"))
    _same_sizes(*totals, under.tick.counts.rows)
    _same_sizes(*open_)
    if len(totals) != 4 or len(open_) != 4 or not np.isin(open_[2], range(len(totals[0]))).all():
        raise ValueError("what became of its rows is not told")
    return Below(
        lane=under,
        account=Account(np.array(totals), np.array(open_)),
        intervals=tuple(
            Interval(first, snapshot, parts[a:b])
            for first, snapshot, a, b in zip(
                firsts.tolist(), snapshots, [0, *ends], ends, strict=False
            )
        ),
        final=flag(saved, "final"),
        weights=np.array(weights).T if weights else None,
    )


def _stage_to_dict(held: Held, label: NDArray[np.int64]) -> dict[str, Any]:
    return {**_units_to_dict(held.units, label), "numbers": dict(held.numbers)}


def _units_to_dict(units: Units, label: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "sizes": np.diff(units.splits),
        "document": label,
        "start": units.start,
        "length": units.length,
    }


def _stage_from_dict(saved: Mapping[str, Any]) -> Held:
    numbers = {name: array(values) for name, values in saved.get("numbers", {}).items()}
    return Held(_units_from_dict(saved), numbers)


def _units_from_dict(saved: Mapping[str, Any]) -> Units:
    sizes = integers(saved, "sizes")
    document, start, length = (integers(saved, name) for name in ("document", "start", "length"))
    _same_sizes(document, start, length)
    splits = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if (np.diff(splits) < 0).any() or int(splits[-1]) != len(document):
        raise ValueError("a step's units do not fit its pieces")
    return Units(splits, document, start, length, np.full(len(sizes), AT_END))


def _known_to_dict(known: Known, *, merged: bool) -> dict[str, Any]:
    saved = {
        "length": known.length,
        "measures": list(known.measures),
        **_refs_to_dict(known.refs),
    }
    return {**saved, "position": known.position} if merged else saved


def _known_from_dict(lane: int, saved: Mapping[str, Any], merge: MergePoint | None) -> Known:
    refs, length = _refs_from_dict(lane, saved), integers(saved, "length", _MOST_NARROW)
    position = refs.ordinal if merge is None else integers(saved, "position")
    measures = [array(measure) for measure in listed(saved, "measures")]
    _same_sizes(length, position, refs.ordinal, *measures)
    return Known(refs, length, position, _table(measures, len(length)))


def _refs_to_dict(refs: Refs) -> dict[str, Any]:
    return {name: getattr(refs, name) for name in _REF_FIELDS}


def _refs_from_dict(lane: int, saved: Mapping[str, Any]) -> Refs:
    refs = {
        name: integers(saved, name, MOST if name in _WIDE_REFS else _MOST_NARROW)
        for name in _REF_FIELDS
    }
    _same_sizes(*refs.values())
    return Refs(
        lane=np.full(len(refs["row"]), lane, np.int32),
        component=refs["component"].astype(np.int32),
        shard=refs["shard"],
        row=refs["row"],
        pass_index=refs["pass_index"].astype(np.int32),
        ordinal=refs["ordinal"],
        child=refs["child"].astype(np.int32),
        last_child=refs["last_child"].astype(bool),
    )


def _table(rows: Sequence[NDArray[np.int64]], width: int) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(len(rows), width)


def _log_from_dict(saved: Mapping[str, Any], merge: MergePoint | None) -> Arrivals:
    ordinal = integers(saved, "ordinal")
    component = integers(saved, "component", _MOST_NARROW).astype(np.int32)
    length = array(saved["length"])
    measures = [array(measure) for measure in listed(saved, "measures")]
    least = -max(REASONS) if merge is None else 0
    if len(length) and int(length.min()) < least:
        raise ValueError(f"a document of {length.min()} tokens")
    if len(length) and int(length.max()) > _MOST_NARROW:  # a packer would cut it to no end
        raise ValueError(f"a document of {length.max()} tokens")
    position, skipped = ordinal, []
    if merge is not None:
        skipped = [array(each) for each in listed(saved, "skipped")]
        if len(skipped) == _USUAL_REASONS:
            skipped += [np.zeros_like(ordinal)] * (len(REASONS) - _USUAL_REASONS)
        position = _positions(ordinal, component, merge, skipped)
    _same_sizes(ordinal, component, length, position, *measures)
    table, gaps = (_table(rows, len(length)) for rows in (measures, skipped))
    return Arrivals(ordinal, component, length, position, table, gaps)


def _same_sizes(*arrays: Sequence[Any] | NDArray[Any]) -> None:
    if len({len(array) for array in arrays}) != 1:
        raise ValueError("lengths differ")


def _merge_from_dict(saved: Mapping[str, str]) -> MergePoint:
    position, base, live = (array(saved[name]) for name in _MERGE_FIELDS)
    if (position < 0).any() or (base < 0).any() or not np.isin(live, (0, 1)).all():
        raise ValueError("its merge stands nowhere")
    return MergePoint(position, base, live.astype(bool))


def _positions(
    ordinal: NDArray[np.int64],
    component: NDArray[np.int32],
    merge: MergePoint,
    lost: Sequence[NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Find the draw of its strand of each document: behind those that gave none before it."""
    _same_sizes(ordinal, component, *lost)
    if len(lost) != len(REASONS) or any((each < 0).any() for each in lost):
        raise ValueError("the draws between its documents are not told")
    skipped = np.sum(lost, axis=0)
    begins = np.flatnonzero(np.diff(ordinal, prepend=-1))
    gaps, strand = skipped[begins], component[begins]
    if int(gaps.sum()) != int(skipped.sum()):
        raise ValueError("the gaps between its documents are none")
    order, firsts = _by_strand(strand)
    steps = gaps[order] + 1
    total = np.cumsum(steps)
    start = merge.position[strand[order][firsts]] - (total - steps)[firsts]
    position = np.empty(len(begins), np.int64)
    position[order] = total - 1 + np.repeat(start, np.diff(firsts, append=len(order)))
    return np.repeat(position, np.diff(begins, append=len(ordinal)))


def _by_strand(component: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order draws by strand, and say where each strand begins."""
    order = np.argsort(component, kind="stable")
    return order, np.flatnonzero(np.diff(component[order], prepend=-1))
