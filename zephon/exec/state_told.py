"""What a checkpoint says, in lines for people, and in what two of them differ.

Nothing of the data's text is in a checkpoint, and so in none of these lines. Where every token went
at its very position only a pipeline can tell, since its policies must be rolled there: see
``Pipeline.accounting``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.exec.arrivals import Counts
from zephon.exec.change import cut
from zephon.exec.data_change import between_states
from zephon.exec.data_changes import rows_of, shards_of
from zephon.exec.edits import Edit, with_removed
from zephon.exec.history import LaneState
from zephon.exec.lane_states import lane_from_dict
from zephon.exec.lane_table import trees_of
from zephon.exec.recipe_changes import changes, lines

_HEADS = ("rows drawn", "filtered", "dropped", "bad", "null text", "tokens made")
_RARE = ("bad", "null text")  # shown where there are such rows
_NOTHING = (0,) * len(_HEADS)
_MOST_LINES, _WIDEST = 20, 40


def told_state(state: Mapping[str, Any]) -> list[str]:
    """Say what a sound checkpoint is of, where it stands, and what it has drawn and holds."""
    recipe, lanes = state["recipe"], _lanes(state)
    held = [lane.tick.known for lane in lanes.values()]
    tokens = sum(int(each.length.sum()) for each in held)
    since = sum(len(lane.log.ordinal) for lane in lanes.values())
    return [
        f"written by   {_writers(state)}",
        f"fingerprint  {state['fingerprint']}",
        f"stands       {_position(state)}",
        f"lanes        {_lanes_told(state)}",
        f"data         {_data(recipe)}",
        f"steps        {cut(', '.join(step['call'] for step in recipe['steps'])) or 'none'}",
        *(f"edits        {edit}" for edit in _edits(state)),
        "",
        *_table(_counted(state, lanes)),
        "",
        f"held at the lanes' last ticks: {_many(sum(map(len, held)), 'document')} of "
        f"{_many(tokens, 'token')}; drawn since then: {since:,}",
    ]


def told_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Say in what two sound checkpoints differ; nothing if they do not."""
    if one["digest"] == other["digest"]:
        return []
    data = between_states(one, other)
    found = changes(one["recipe"], other["recipe"], str(one["library"]), data)
    told = [f"{len(found):,} parts of the recipe differ", *lines(found)] if found else []
    tellers = {"written by": _writers, "stands": _position, "lanes": _lanes_told}
    for name, tell in tellers.items():
        was, now = tell(one), tell(other)
        if was != now:
            told.append(f"{name}: was {was}, is {now}")
    edits = [_edits(state) for state in (one, other)]
    if edits[0] != edits[1]:
        told.append(f"edits: was {cut('; '.join(edits[0]))}, is {cut('; '.join(edits[1]))}")
    told += [
        f"data of {_safe(name)}: files were written again, and look the same"
        for name, change in data.items()
        if change.touched or change.some_touched
    ]
    counted = [_counted(state, _lanes(state)) for state in (one, other)]
    found = [
        f"{name}, {head}: was {was:,}, is {now:,}"
        for name in {**counted[0], **counted[1]}
        for head, was, now in zip(
            _HEADS, *(each.get(name, _NOTHING) for each in counted), strict=True
        )
        if was != now
    ]
    told += found[:_MOST_LINES]
    if len(found) > _MOST_LINES:
        told.append(f"and {len(found) - _MOST_LINES:,} more counts")
    return told or ["they stand at one place, and remember other documents"]


def _lanes(state: Mapping[str, Any]) -> dict[int, LaneState]:
    return {lane: lane_from_dict(lane, tree) for lane, tree in trees_of(state["lanes"]).items()}


def _writers(state: Mapping[str, Any]) -> str:
    writers = [f"zephon {state['library']}"]
    writers += [f"{each['backend']} {each['version']}" for each in state["tokenizer_backends"]]
    writers += [f"polars {state['polars']}"] if "polars" in state else []
    return cut(", ".join(writers))


def _data(recipe: Mapping[str, Any]) -> str:
    told = []
    for name, manifest in recipe["data"].items():
        shards = shards_of(manifest)
        count = manifest["shards"] if shards is None else len(shards)
        told.append(
            f"{_safe(name)} of {_many(rows_of(manifest), 'row')} in {_many(count, 'shard')}"
        )
    return cut("; ".join(told) or "none")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _safe(name: str) -> str:
    """Write a name so that no terminal takes it for a command."""
    return repr(name)[1:-1]


def _position(state: Mapping[str, Any]) -> str:
    where, size = state["position"], state["recipe"]["global_batch_size"]
    if state.get("ended"):
        return "at the end of the run"
    if size is None:
        return "between batches, without a global batch"
    if "delivered" not in where:
        return f"before step {where['step']:,} of {size:,} rows"
    rows = ", ".join("?" if each is None else f"{each:,}" for each in where["delivered"])
    return cut(f"inside step {where['step']:,} of {size:,} rows; handed out by each group: {rows}")


def _edits(state: Mapping[str, Any]) -> list[str]:
    """Tell each edit of the run: its words, where it stands, what was drawn before it."""
    told = []
    for saved in state.get("edits", ()):
        edit = Edit.from_dict(saved, state["lane_count"])
        rows = int(edit.rows.sum())
        where = f"after {rows:,} rows" if edit.step is None else f"before step {edit.step:,}"
        drawn = (f"{_safe(name)} {int(each.sum()):,}" for name, each in edit.drawn.items())
        grown = (
            f", {_safe(name)} with {_many(len(each.added), 'shard')} more after "
            f"{each.stop:,} pass{'' if each.stop == 1 else 'es'}"
            for name, each in edit.grown.items()
        )
        words = f"{', '.join(edit.words)} {where}{''.join(grown)}"
        told.append(cut(f"{words}, drawn until then: {', '.join(drawn)}"))
    return told[-_MOST_LINES:] or ["none"]


def _lanes_told(state: Mapping[str, Any]) -> str:
    lanes = _lanes(state)
    held = "all" if len(lanes) == state["lane_count"] else f"{len(lanes)}"
    rows = sum(lane.rows for lane in lanes.values())
    ended = sum(lane.ended for lane in lanes.values())
    over = f", {ended} at their end" if ended else ""
    return f"{held} of {state['lane_count']}, {rows:,} rows delivered{over}"


def _counted(state: Mapping[str, Any], lanes: Mapping[int, LaneState]) -> dict[str, list[int]]:
    """Count by component: rows drawn, those that were lost, by why, and tokens made."""
    counts = [each for each in map(_counts_of, lanes.values()) if each is not None]
    if not counts:
        return {}
    whole = counts[0]
    for each in counts[1:]:
        whole = whole.plus(each)
    names = _names(state, len(whole.rows))
    columns = (
        whole.rows, whole.filtered, whole.dropped, whole.bad(), whole.null, whole.tokens,
    )  # fmt: skip
    found: dict[str, NDArray[np.int64]] = {}
    for place, name in enumerate(names):
        row = np.array([column[place] for column in columns])
        found[name] = found.get(name, 0) + row
    return {name: row.tolist() for name, row in found.items()}


def _counts_of(lane: LaneState) -> Counts:
    """Count rows where they are drawn, tokens behind the last operator that made any."""
    floors = [lane]
    while floors[-1].below is not None:
        floors.append(floors[-1].below.lane)
    counts = [floor.counts() for floor in floors]
    tokens = next((each.tokens for each in counts if each.tokens.any()), counts[-1].tokens)
    return replace(counts[-1], tokens=tokens)


def _names(state: Mapping[str, Any], count: int) -> Sequence[str]:
    """Name what references count by: a custom source's components, once for each dataset.

    Those that are gone from the run stand last.
    """
    components = state["recipe"]["source"]["components"]
    names = [each if isinstance(each, str) else each[0] for each in components]
    edits = [Edit.from_dict(saved, state["lane_count"]) for saved in state.get("edits", ())]
    names = [_safe(name) for name in with_removed(names, edits)]
    return [names[place * len(names) // count] for place in range(count)]


def _table(counted: Mapping[str, Sequence[int]]) -> Iterator[str]:
    names = [name[:_WIDEST] for name in counted][:_MOST_LINES]
    width = max(map(len, ["component", *names]))
    sums = [sum(column) for column in zip(*counted.values(), strict=True)]
    shown = [at for at, head in enumerate(_HEADS) if head not in _RARE or (sums and sums[at])]
    yield f"{'component':<{width}}" + "".join(f"{_HEADS[at]:>15}" for at in shown)
    for name, row in zip(names, counted.values(), strict=False):
        yield f"{name:<{width}}" + "".join(f"{row[at]:>15,}" for at in shown)
    if len(counted) > len(names):
        yield f"and {len(counted) - len(names):,} more"
