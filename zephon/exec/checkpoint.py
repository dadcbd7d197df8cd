"""States as documents: a dict of JSON values, or the same as bytes. Never pickle.

Integer arrays are delta-coded, stored in the narrowest type, and compressed with zstd. What a state
means is in ``history.py``.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from zephon.errors import CheckpointError
from zephon.exec.block import Known
from zephon.exec.fingerprint import digest
from zephon.exec.history import Arrivals, Counts, LaneState, Tick
from zephon.exec.policies import AT_END, Held, Units
from zephon.exec.policies.token_merge import MergePoint
from zephon.io.formats.zstd_module import zstd
from zephon.work.refs import Refs

FORMAT = "zephon.checkpoint"
VERSION = 2
_MAGIC = b"ZEPHONCP"
_WIDTHS = ("i1", "i2", "i4", "i8")
_MERGE_FIELDS = ("position", "base", "live")
_REF_FIELDS = ("component", "shard", "row", "pass_index", "ordinal", "child", "last_child")


def to_bytes(state: Mapping[str, Any]) -> bytes:
    """Return a checkpoint dict as bytes: magic, version, zstd of msgpack."""
    return _MAGIC + VERSION.to_bytes(2, "big") + zstd.compress(msgspec.msgpack.encode(state))


def from_any(state: object) -> dict[str, Any]:
    """Return a copy of the checkpoint dict that ``state``, a dict or bytes, stands for.

    Raises:
        TypeError: neither dict nor bytes.
        CheckpointError: it is no checkpoint, is cut off, or is of a newer version.
    """
    if isinstance(state, bytes | bytearray | memoryview):
        state = _from_bytes(bytes(state))
        if not isinstance(state, dict):
            raise CheckpointError(
                "restore: the checkpoint's bytes are damaged: they hold no dict; "
                "restore an earlier one"
            )
    if not isinstance(state, dict):
        raise TypeError(f"restore: expected a checkpoint dict or bytes, got {type(state).__name__}")
    if state.get("format") != FORMAT:
        raise CheckpointError(
            f"restore: this is no checkpoint of ours (format {state.get('format')!r}, expected "
            f"{FORMAT!r}); pass what checkpoint() returned"
        )
    if state.get("version") != VERSION:
        _refuse_version(state.get("version"))
    try:
        sound = state.get("digest") == content_digest(state)
    except (TypeError, ValueError):  # values that JSON does not know
        sound = False
    if not sound:
        raise CheckpointError(
            "restore: the checkpoint is damaged: its content does not have the digest that was "
            "written with it; restore an earlier one"
        )
    return copy.deepcopy(state)


def _refuse_version(version: object) -> NoReturn:
    what = "older" if isinstance(version, int) and version < VERSION else "newer"
    remedy = "restore it with the release that wrote it" if what == "older" else "upgrade zephon"
    raise CheckpointError(
        f"restore: checkpoint version {version!r} is {what} than the supported version {VERSION}; "
        f"{remedy}"
    )


def content_digest(state: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all of a checkpoint but its own ``digest``."""
    content = {name: value for name, value in state.items() if name != "digest"}
    return digest(content)


def _from_bytes(data: bytes) -> object:
    head = len(_MAGIC) + 2
    if not data.startswith(_MAGIC) or len(data) < head:
        raise CheckpointError(
            "restore: these bytes are no checkpoint: they lack its first bytes; pass what "
            "checkpoint(as_bytes=True) returned"
        )
    version = int.from_bytes(data[len(_MAGIC) : head], "big")
    if version != VERSION:
        _refuse_version(version)
    try:
        return msgspec.msgpack.decode(zstd.decompress(data[head:]))
    except (zstd.ZstdError, msgspec.DecodeError, ValueError) as exc:
        raise CheckpointError(
            f"restore: the checkpoint's bytes are damaged: {exc}; restore an earlier one"
        ) from exc


def lane_to_dict(state: LaneState) -> dict[str, Any]:
    """Write one lane's state as JSON values."""
    tick, log = state.tick, state.log
    seqs = np.concatenate([np.empty(0, np.int64), *(held.units.seq for held in tick.stages)])
    _, firsts, label = np.unique(seqs, return_index=True, return_inverse=True)
    known = tick.known.take(firsts)
    sizes = np.cumsum([len(held.units.seq) for held in tick.stages])
    labels = np.split(label, sizes[:-1]) if len(sizes) else []
    saved: dict[str, Any] = {
        "rows": state.rows,
        "last_draw": state.last_draw,
        "ended": state.ended,
        "tick": tick.ordinal,
        "tick_rows": tick.rows,
        "documents": {
            "length": pack(known.length),
            "measures": [pack(measure) for measure in known.measures],
            **{name: pack(getattr(known.refs, name)) for name in _REF_FIELDS},
        },
        "stages": [
            _stage_to_dict(held, label) for held, label in zip(tick.stages, labels, strict=True)
        ],
        "drawn": {"rows": pack(tick.counts.rows), "tokens": pack(tick.counts.tokens)},
        "log": {
            "ordinal": pack(log.ordinal),
            "component": pack(log.component),
            "length": pack(log.length),
            "measures": [pack(measure) for measure in log.measures],
        },
    }
    if tick.merge is not None:
        saved["documents"]["position"] = pack(known.position)
        saved["log"]["skipped"] = pack(_skipped(log, tick.merge))
        saved["merge"] = {name: pack(getattr(tick.merge, name)) for name in _MERGE_FIELDS}
    if state.source is not None:
        saved["source"] = state.source
    return saved


def lane_from_dict(lane: int, saved: Mapping[str, Any]) -> LaneState:
    """Read one lane's state back.

    Raises:
        CheckpointError: a part is missing or does not fit the others.
    """
    try:
        drawn = saved["drawn"]
        merge = _merge_from_dict(saved["merge"]) if "merge" in saved else None
        log = _log_from_dict(saved["log"], merge)
        known = _known_from_dict(lane, saved["documents"], merge)
        stages = tuple(_stage_from_dict(stage) for stage in saved["stages"])
        labels = np.concatenate([np.empty(0, np.int64), *(held.units.seq for held in stages)])
        counts = Counts(unpack(drawn["rows"]), unpack(drawn["tokens"]))
        _same_sizes(counts.rows, counts.tokens)
        if merge is not None:
            _same_sizes(*(getattr(merge, name) for name in _MERGE_FIELDS), counts.rows)
        return LaneState(
            rows=int(saved["rows"]),
            last_draw=int(saved["last_draw"]),
            tick=Tick(
                ordinal=int(saved["tick"]),
                rows=int(saved["tick_rows"]),
                stages=stages,
                known=known.take(labels),
                counts=counts,
                merge=merge,
            ),
            log=log,
            ended=bool(saved["ended"]),
            source=saved.get("source"),
        )
    except (KeyError, IndexError, TypeError, ValueError) as exc:
        raise CheckpointError(
            f"restore: lane {lane} of the checkpoint is damaged: {type(exc).__name__} {exc}; "
            "restore an earlier one"
        ) from exc


def _stage_to_dict(held: Held, label: NDArray[np.int64]) -> dict[str, Any]:
    units = held.units
    return {
        "sizes": pack(np.diff(units.splits)),
        "document": pack(label),
        "start": pack(units.start),
        "length": pack(units.length),
        "numbers": {name: pack(values) for name, values in held.numbers.items()},
    }


def _stage_from_dict(saved: Mapping[str, Any]) -> Held:
    sizes = unpack(saved["sizes"])
    document, start, length = (unpack(saved[name]) for name in ("document", "start", "length"))
    _same_sizes(document, start, length)
    splits = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if (sizes < 0).any() or int(splits[-1]) != len(document) or (document < 0).any():
        raise ValueError("a step's units do not fit its pieces")
    units = Units(splits, document, start, length, np.full(len(sizes), AT_END))
    return Held(units, {name: unpack(values) for name, values in saved["numbers"].items()})


def _known_from_dict(lane: int, saved: Mapping[str, Any], merge: MergePoint | None) -> Known:
    refs = {name: unpack(saved[name]) for name in _REF_FIELDS}
    length = unpack(saved["length"])
    position = refs["ordinal"] if merge is None else unpack(saved["position"])
    measures = [unpack(measure) for measure in saved["measures"]]
    _same_sizes(length, position, *refs.values(), *measures)
    return Known(
        refs=Refs(
            lane=np.full(len(length), lane, np.int32),
            component=refs["component"].astype(np.int32),
            shard=refs["shard"],
            row=refs["row"],
            pass_index=refs["pass_index"].astype(np.int32),
            ordinal=refs["ordinal"],
            child=refs["child"].astype(np.int32),
            last_child=refs["last_child"].astype(bool),
        ),
        length=length,
        position=position,
        measures=np.array(measures, np.int64).reshape(len(measures), len(length)),
    )


def _log_from_dict(saved: Mapping[str, Any], merge: MergePoint | None) -> Arrivals:
    ordinal, component = unpack(saved["ordinal"]), unpack(saved["component"]).astype(np.int32)
    length = unpack(saved["length"])
    measures = [unpack(measure) for measure in saved["measures"]]
    position = ordinal
    if merge is not None:
        position = _positions(ordinal, component, merge, unpack(saved["skipped"]))
    _same_sizes(ordinal, component, length, position, *measures)
    table = np.array(measures, np.int64).reshape(len(measures), len(length))
    return Arrivals(ordinal, component, length, position, table)


def _same_sizes(*arrays: NDArray[Any]) -> None:
    if len({len(array) for array in arrays}) != 1:
        raise ValueError("lengths differ")


def _merge_from_dict(saved: Mapping[str, str]) -> MergePoint:
    position, base, live = (unpack(saved[name]) for name in _MERGE_FIELDS)
    if (position < 0).any() or (base < 0).any() or not np.isin(live, (0, 1)).all():
        raise ValueError("its merge stands nowhere")
    return MergePoint(position, base, live.astype(bool))


def _skipped(log: Arrivals, merge: MergePoint) -> NDArray[np.int64]:
    """Count, for each draw of a log, the draws of its strand before it that gave no document."""
    begins = np.flatnonzero(np.diff(log.ordinal, prepend=-1))
    component, position = log.component[begins], log.position[begins]
    order, firsts = _by_strand(component)
    before = np.concatenate([[0], position[order][:-1] + 1])
    before[firsts] = merge.position[component[order][firsts]]
    skipped = np.empty(len(begins), np.int64)
    skipped[order] = position[order] - before[: len(order)]
    return skipped


def _positions(
    ordinal: NDArray[np.int64],
    component: NDArray[np.int32],
    merge: MergePoint,
    skipped: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Undo ``_skipped``; one position a document."""
    begins = np.flatnonzero(np.diff(ordinal, prepend=-1))
    if len(skipped) != len(begins):
        raise ValueError(f"{len(begins)} draws and {len(skipped)} gaps before them")
    strand = component[begins]
    order, firsts = _by_strand(strand)
    steps = skipped[order] + 1
    total = np.cumsum(steps)
    start = merge.position[strand[order][firsts]] - (total - steps)[firsts]
    position = np.empty(len(begins), np.int64)
    position[order] = total - 1 + np.repeat(start, np.diff(firsts, append=len(order)))
    return np.repeat(position, np.diff(begins, append=len(ordinal)))


def _by_strand(component: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order draws by strand, and say where each strand begins."""
    order = np.argsort(component, kind="stable")
    return order, np.flatnonzero(np.diff(component[order], prepend=-1))


def pack(values: NDArray) -> str:
    """Write integers as text: type, then base64 of zstd of their differences.

    >>> unpack(pack(np.array([5, 6, 7, 1 << 40])))
    array([            5,             6,             7, 1099511627776])
    """
    wide = np.asarray(values).astype(np.int64)
    delta = np.diff(wide, prepend=0)
    low, high = (int(delta.min()), int(delta.max())) if len(delta) else (0, 0)
    kind = next(k for k in _WIDTHS if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    data = zstd.compress(delta.astype("<" + kind).tobytes())
    return f"{kind}:{base64.b64encode(data).decode('ascii')}"


def unpack(text: str) -> NDArray[np.int64]:
    """Read what ``pack`` wrote."""
    kind, _, data = text.partition(":")
    if kind not in _WIDTHS:
        raise ValueError(f"integers of type {kind!r}")
    try:
        raw = zstd.decompress(base64.b64decode(data, validate=True))
    except zstd.ZstdError as exc:
        raise ValueError(str(exc)) from exc
    return np.cumsum(np.frombuffer(raw, "<" + kind), dtype=np.int64)
