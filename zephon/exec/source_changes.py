"""What became of a work source since a checkpoint was taken: datasets, weights, rules and data."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from zephon.exec.change import Change, differences, part_of, shown, without
from zephon.exec.data_change import DataChange
from zephon.exec.data_changes import data_changes, shards_of
from zephon.work.mixture_plan import AUTO_BLOCK_SHARDS

_ORDER = "it decides the order of rows; set it back"
_RULES = "it decides the order of its rows, or when they end; set it back"
_COSTS = "it decides how much of each dataset is drawn; give the costs of then"
_CUSTOM = "a source of your own decides order and ends; build it as then"

_NOT_LOOKED: Mapping[str, DataChange] = MappingProxyType({})

Recipe = Mapping[str, Any]


def source_changes(
    saved: Recipe, current: Recipe, data: Mapping[str, DataChange] = _NOT_LOOKED
) -> Iterator[Change]:
    """List what differs in two recipes' work sources, and in the data of their datasets.

    Args:
        saved: the checkpoint's recipe.
        current: the present one.
        data: how the shards of datasets differ, where they were looked at.
    """
    if {each["source"].get("source") for each in (saved, current)} == {"static_mixture"}:
        yield from _mixture_changes(saved, current, data)
        return
    for path, was, now in differences(saved["source"], current["source"], "work source"):
        yield Change(path, was, now, None, _CUSTOM)
    before, after = saved["data"], current["data"]
    for name in sorted({*before, *after}):
        if name in before and name in after:
            for change in data_changes(name, before[name], after[name], data.get(name)):
                yield replace(change, word=None, why=change.why or _CUSTOM)
        else:
            was, now = (shown(data[name]) if name in data else None for data in (before, after))
            yield Change(f"data of {name!r}", was, now, None, _CUSTOM)


@dataclass(frozen=True, slots=True)
class Kept:
    """The datasets that two mixtures have in common, and what differs only for want of others."""

    names: tuple[str, ...]
    others: bool  # one of the mixtures has a dataset that the other has not
    moved: bool  # they stand in another order

    @classmethod
    def of(cls, before: Recipe, after: Recipe) -> Kept:
        """Compare what two recipes say of their sources; custom ones keep nothing."""
        old, new = (each["source"].get("components", []) for each in (before, after))
        names = tuple(name for name in new if name in old)
        moved = names != tuple(name for name in old if name in new)
        return cls(names, len(old) != len(names) or len(new) != len(names), moved)

    def same_shares(self, was: Mapping[str, float], now: Mapping[str, float]) -> bool:
        """Whether weights are the same to each other, as far as both mixtures have datasets."""
        if not self.others:
            return was == now
        old, new = (self._shares(weights) for weights in (was, now))
        return all(math.isclose(old[name], new[name], rel_tol=1e-9) for name in self.names)

    def _shares(self, weights: Mapping[str, float]) -> dict[str, float]:
        total = math.fsum(weights.get(name, 0) for name in self.names) or 1
        return {name: weights.get(name, 0) / total for name in self.names}

    def same_argument(self, name: str, was: Any, now: Any) -> bool:
        """Whether an argument of a step means the same for the datasets in common."""
        if was == now or not (self.others or self.moved) or not was or not now:
            return was == now
        if name == "mixture":
            return self.same_shares(dict(was), dict(now))
        return name == "domains" and self._domains(was) == self._domains(now)

    def _domains(self, domains: Iterable[Iterable[str]]) -> list[list[str]]:
        kept = ([name for name in each if name in self.names] for each in domains)
        return sorted(sorted(each) for each in kept if each)


def _mixture_changes(
    saved: Recipe, current: Recipe, data: Mapping[str, DataChange]
) -> Iterator[Change]:
    before, after = saved["source"], current["source"]
    kept = Kept.of(saved, current)
    for name in before["components"]:
        if name not in kept.names:
            yield Change(f"dataset {name!r}", _weight(before, name), None, "datasets")
    for name in after["components"]:
        if name not in kept.names:
            yield Change(f"dataset {name!r}", None, _weight(after, name), "datasets")
    if kept.moved:
        order = [name for name in before["components"] if name in kept.names]
        yield Change("order of datasets", shown(order), shown(list(kept.names)), "datasets")
    yield from _weight_changes(before, after, kept)
    grown = set()
    for name in kept.names:
        if name in saved["data"] and name in current["data"]:
            was, now = (each["data"][name] for each in (saved, current))
            found = list(data_changes(name, was, now, data.get(name)))
            grown |= {name for change in found if change.word == "data"}
            yield from found
    for name in kept.names:
        yield from _rule_changes(name, saved, current, kept.others, grown)
    yield from _cost_changes(before["token_costs"], after["token_costs"], kept)
    told = ("components", "weights", "rules", "schedule", "token_costs")
    for path, was, now in differences(without(before, told), without(after, told)):
        yield Change(part_of("work source", path), was, now, None, _ORDER)


def _weight(source: Mapping[str, Any], name: str) -> str:
    return f"of weight {source['weights'].get(name, 0):.4g}"


def _weight_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], kept: Kept
) -> Iterator[Change]:
    if not kept.same_shares(before["weights"], after["weights"]):
        for name in kept.names:
            was, now = (source["weights"].get(name, 0) for source in (before, after))
            if was != now:
                told = (f"{was:.4g}", f"{now:.4g}")
                if told[0] == told[1]:  # they differ further on
                    told = (repr(was), repr(now))
                yield Change(f"weight of {name!r}", *told, "weights")
    for name in kept.names:
        drawn, draws = (name in source["rules"] for source in (before, after))
        if drawn != draws:
            was, now = ("drawn", "never drawn") if drawn else ("never drawn", "drawn")
            yield Change(f"dataset {name!r}", was, now, "weights")
    old, new = before["schedule"], after["schedule"]
    if not _same_schedule(old, new, kept):
        yield Change("schedule", shown(old), shown(new), "weights")


def _same_schedule(old: Any, new: Any, kept: Kept) -> bool:
    if old is None or new is None:
        return old is new
    points = list(zip(old["points"], new["points"], strict=False))
    return (
        [old["unit"], old["interpolation"], len(old["points"])]
        == [new["unit"], new["interpolation"], len(new["points"])]
        and all(was[0] == now[0] for was, now in points)
        and all(kept.same_shares(was[1], now[1]) for was, now in points)
    )


def _rule_changes(
    name: str, saved: Recipe, current: Recipe, others: bool, grown: Collection[str]
) -> Iterator[Change]:
    """List rules that differ; a block size that follows from the data does not count.

    Args:
        name: of the dataset.
        saved: the checkpoint's recipe.
        current: the present one.
        others: datasets came or went.
        grown: those to which shards were added.
    """
    sides = [each["source"]["rules"].get(name) for each in (saved, current)]
    if None in sides:
        return
    for rule, was, now in differences(sides[0], sides[1]):
        word = None
        if rule == "shuffle_block_size" and (grown or others):
            sizes = [_sizes_that_follow(name, each) for each in (saved, current)]
            found = [side[rule] for side in sides]
            if any(list(follows) == found for follows in zip(*sizes, strict=True)):
                continue
            # What it was may have followed from what was there when shards were added before.
            if name in grown and (found[1] in sizes[1] or -1 in sizes[1]):
                word = "data"
        yield Change(part_of(f"rules of {name!r}", rule), was, now, word, "" if word else _RULES)


def _sizes_that_follow(name: str, recipe: Recipe) -> tuple[int, int]:
    """Give the block sizes that "global" and "auto" mean for a dataset, -1 where that is open."""
    shards = {each: shards_of(recipe["data"][each]) for each in recipe["source"]["rules"]}
    sizes = {each: [rows for _, rows, _ in found] for each, found in shards.items() if found}
    total = sum(sizes[name]) if name in sizes else recipe["data"][name]["rows"]
    if sizes.keys() != shards.keys():
        return max(1, total), -1
    largest = AUTO_BLOCK_SHARDS * max(max(each) for each in sizes.values())
    return max(1, total), max(1, min(largest, total))


def _cost_changes(before: Any, after: Any, kept: Kept) -> Iterator[Change]:
    """List mean costs that differ; a dataset that is never drawn has none."""
    if before is None or after is None:
        for path, was, now in differences(before, after, "token_costs"):
            yield Change(path, was, now, None, _COSTS)
        return
    for name in (name for name in kept.names if name in before and name in after):
        for _, was, now in differences(before[name], after[name]):
            yield Change(f"token cost of {name!r}", was, now, None, _COSTS)
