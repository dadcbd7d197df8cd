"""Programs of public calls, made up by Hypothesis, against a list: the rows of one whole run.

What a pipeline is asked for in any order (iterate, take, save, restore, set speed, copy, close,
leave) must give the rows that the list has at that place, and a state must depend on the place
alone. The model of a pipeline is four values: where it stands, whether it has met its end, whether
a restored position waits, and the iterator that is open.
"""

import copy
import gc
import json
from dataclasses import dataclass
from functools import cache

import cloudpickle
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from tests.properties import chains, function_chains
from tests.properties.recipes import packed
from tests.properties.works import WORKS, two
from zephon.errors import CheckpointError, ExecutionError

STEP = 12

MODES = {
    "one lane": {},
    "lanes in turn": {"canonical_replicas": 3},
    "steps": {"global_batch_size": STEP, "canonical_replicas": 4},
}

SPEED = {
    "runner": ["inline", "inline", "threads"],
    "memory_budget": ["4kb", "1mb", None],
    "prefetch_batches": [0, 3],
    "max_workers": [1, 2],
}


@dataclass(frozen=True)
class Recipe:
    """What is run: a kind of chains, one of them, and how lanes are shared."""

    kind: str
    name: str
    mode: str


@cache
def described(kind, name):
    """Describe the steps up to rows, once: calls run those before them, to see fields."""
    if kind == "mixtures":
        pipeline = packed(two(), work=WORKS[name], max_length=29)
        pipeline._node = pipeline._node.input  # without the batch
        return pipeline
    return {"packers": chains.CHAINS, "functions": function_chains.CHAINS}[kind][name]()


KINDS = {
    "packers": sorted(chains.CHAINS),
    "functions": sorted(function_chains.CHAINS),
    "mixtures": sorted(WORKS),
}


def make(recipe, microbatch=1, **speed):
    pipeline = copy.copy(described(recipe.kind, recipe.name))
    settings = {"runner": "inline", "auto_validation": "off", **MODES[recipe.mode], **speed}
    pipeline.batch(microbatch).options(flush_every_k_chunks=8, **settings)
    return pipeline


def plain(record):
    """Give a record as plain values: who it is, and what it holds."""
    fields = {name: _plain(value) for name, value in record.payload.items()}
    packing = record.meta.tags.get("_packing_metadata")
    return record.meta.cursor.as_key(), record.meta.lane_id, repr(packing), fields


def _plain(value):
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if hasattr(value, "__iter__") else value


@cache
def whole_run(recipe):
    return [plain(record) for batch in make(recipe) for record in batch]


@cache
def known(recipe):
    """What was seen at a place, by what it is: each must be the same whenever it is seen."""
    return {}


class Programs(RuleBasedStateMachine):
    """A program on one recipe."""

    kind = "packers"
    states = Bundle("states")

    @initialize(data=st.data(), mode=st.sampled_from(sorted(MODES)))
    def choose(self, data, mode):
        name = data.draw(st.sampled_from(KINDS[self.kind]))
        self.recipe = Recipe(self.kind, name, mode)
        self.whole = whole_run(self.recipe)
        self.items = None
        self._stand(make(self.recipe), 1)

    def _stand(self, pipeline, microbatch):
        self.pipeline, self.microbatch = pipeline, microbatch
        self._begin_anew()

    def _begin_anew(self):
        self.at, self.ended, self.waits = 0, False, False

    def _drop_iterator(self, raises=False):
        """Be done with the open iterator; it may have to say that it was ended from outside."""
        if self.items is None:
            return
        if raises and not self.exhausted:
            with pytest.raises(ExecutionError, match="changed or restored"):
                next(self.items)
        self.items.close()
        self.items = None

    @rule()
    def iterate(self):
        if self.items is None:
            self.items = iter(self.pipeline)
            self.begun = self.exhausted = False
            if not self.waits:
                self._begin_anew()

    @rule(batches=st.one_of(st.integers(1, 5), st.just(10_000)))
    def take(self, batches):
        self.iterate()
        for _ in range(batches):
            batch = next(self.items, None)
            self.begun, self.waits = True, False
            left = self.whole[self.at :]
            if batch is None:
                assert not left
                self.ended = self.exhausted = True
                break
            found = [plain(record) for record in batch]
            assert len(found) == self.microbatch
            assert found == left[: len(found)]
            self.at += len(found)

    @rule()
    def close(self):
        self._drop_iterator()

    @rule()
    def leave(self):
        self.items = None
        gc.collect(0)

    @rule()
    def iterate_twice(self):
        if self.items is not None and self.begun and not self.exhausted:
            with pytest.raises(ExecutionError, match="already being iterated"):
                next(iter(self.pipeline))

    @rule(target=states, as_bytes=st.booleans())
    def save(self, as_bytes):
        state = self.pipeline.checkpoint()
        self._agrees("state", json.dumps(state, allow_nan=False))
        return (self.pipeline.checkpoint(as_bytes=True) if as_bytes else state, self.at, self.ended)

    @rule(saved=states)
    def restore(self, saved):
        state, at, ended = saved
        if not self._fits(at):
            return
        self.pipeline.restore(state)
        self._drop_iterator(raises=True)
        self.at, self.ended, self.waits = at, ended, True

    def _fits(self, at):
        """Say whether what is left of a step can be cut into microbatches."""
        return (STEP - at % STEP) % self.microbatch == 0

    @rule(saved=st.one_of(st.none(), states), microbatch=st.sampled_from([1, 2, 3, 4, 6]))
    def another_pipeline(self, saved, microbatch):
        self._drop_iterator()
        self._stand(
            make(self.recipe, microbatch if self.recipe.mode == "steps" else 1),
            microbatch if self.recipe.mode == "steps" else 1,
        )
        if saved is not None:
            self.restore(saved)

    @rule(saved=states, data=st.data())
    def restore_damaged(self, saved, data):
        state = saved[0]
        if isinstance(state, bytes):
            state = state[: data.draw(st.integers(0, len(state) - 1))]
        else:
            gone = data.draw(st.sampled_from(sorted(state)))
            state = {key: value for key, value in state.items() if key != gone}
        with pytest.raises(CheckpointError):
            self.pipeline.restore(state)

    @rule(
        speed=st.fixed_dictionaries({}, optional={n: st.sampled_from(v) for n, v in SPEED.items()})
    )
    def set_speed(self, speed):
        self.pipeline.options(**speed)
        self._drop_iterator(raises=True)
        if not self.waits:
            self._begin_anew()

    @rule()
    def count(self):
        told = self.pipeline.accounting()
        for each in told.values():
            rest = sum(each["tokens_dropped"].values())
            assert each["tokens_made"] == each["tokens_delivered"] + each["tokens_held"] + rest
        self._agrees("account", told)

    @rule(
        how=st.sampled_from(
            [copy.copy, copy.deepcopy, lambda p: cloudpickle.loads(cloudpickle.dumps(p))]
        )
    )
    def go_on_with_a_copy(self, how):
        other = how(self.pipeline)
        self._drop_iterator()
        self.pipeline = other
        if not self.waits:
            self._begin_anew()

    @rule(batches=st.integers(0, 3))
    def collect(self, batches):
        found = [plain(r) for batch in self.pipeline.collect(batches) for r in batch]
        assert found == self.whole[: len(found)]
        assert len(found) == min(batches * self.microbatch, len(self.whole))

    @rule()
    def look(self):
        self._agrees("fingerprint", self.pipeline.fingerprint(), anywhere=True)
        assert self.pipeline.explain()

    def _agrees(self, what, found, anywhere=False):
        place = what if anywhere else (what, self.at, self.ended)
        assert known(self.recipe).setdefault(place, found) == found, place

    def teardown(self):
        self._drop_iterator()
