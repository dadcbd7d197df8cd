"""Programs of calls on several ranks that share global steps, against the list of all rows.

Each rank takes batches by itself. What they save together goes on on any number of ranks between
steps; within one on as many as there were, or by beginning it again.
"""

import json
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from tests.properties.programs import KINDS, STEP, Recipe, known, make, plain, whole_run
from zephon.errors import CheckpointError

DEGREES = (1, 2, 3, 4, 6, 12)
RUNNERS = ("inline", "inline", "inline", "threads")


@dataclass(frozen=True)
class Saved:
    """Parts of all ranks; what each had of the step that all of them stand in, None: not one."""

    parts: tuple
    step: int | None
    within: tuple


class ProgramsOfRanks(RuleBasedStateMachine):
    """A program on one recipe."""

    kind = "packers"
    saved = Bundle("saved")

    @initialize(data=st.data(), degree=st.sampled_from(DEGREES))
    def choose(self, data, degree):
        self.recipe = Recipe(self.kind, data.draw(st.sampled_from(KINDS[self.kind])), "steps")
        self.whole = whole_run(self.recipe)
        self.items = []
        self._stand(self._ranks(degree, 1), 0, [0] * degree)

    def _ranks(self, degree, microbatch, runner="inline"):
        self.microbatch = microbatch
        return [
            make(self.recipe, microbatch, dp_degree=degree, dp_group_id=group, runner=runner)
            for group in range(degree)
        ]

    def _stand(self, ranks, step, within):
        self.teardown()
        self.ranks, self.degree, self.share = ranks, len(ranks), STEP // len(ranks)
        self.done = [step * self.share + rows for rows in within]
        self.items = [iter(rank) for rank in ranks]

    def _take(self, group):
        """Take a batch of a rank; nothing behind the last step that all lanes hold."""
        done = self.done[group]
        if done >= len(self.whole) // STEP * self.share:
            return
        found = [plain(record) for record in next(self.items[group])]
        first = done // self.share * STEP + group * self.share + done % self.share
        assert found == self.whole[first : first + self.microbatch]
        self.done[group] += len(found)

    @rule(data=st.data(), batches=st.integers(1, 6))
    def take(self, data, batches):
        group = data.draw(st.integers(0, self.degree - 1))
        for _ in range(batches):
            self._take(group)

    @rule(steps=st.integers(0, 4))
    def meet(self, steps):
        """Let all ranks go on to the end of the same step."""
        goal = max(-(-done // self.share) for done in self.done) + steps
        goal = min(goal, len(self.whole) // STEP)
        for group in range(self.degree):
            while self.done[group] < goal * self.share:
                self._take(group)

    @rule(target=saved, as_bytes=st.booleans(), backwards=st.booleans())
    def save(self, as_bytes, backwards):
        parts = [rank.checkpoint(as_bytes=as_bytes, scope="local") for rank in self.ranks]
        parts = tuple(parts[::-1] if backwards else parts)
        steps = {done // self.share for done in self.done}
        if len(steps) > 1:
            with pytest.raises(CheckpointError, match="of different moments"):
                make(self.recipe).restore(parts)
            return Saved(parts, None, ())
        within = tuple(done % self.share for done in self.done)
        (step,) = steps
        if not any(within):
            state = json.dumps(make(self.recipe).restore(parts).checkpoint())
            assert known(self.recipe).setdefault(("state", step * STEP, False), state) == state
            self._count(self.ranks[0], step)
            self._count(self.ranks[-1], step)
        return Saved(parts, step, within)

    def _count(self, rank, step):
        """See that a lane is counted alike by all that share it, on any number of ranks."""
        for name, told in rank.accounting().items():
            for lane, count in told["lanes"].items():
                assert known(self.recipe).setdefault((name, lane, step), count) == count

    @rule(
        saved=saved,
        degree=st.one_of(st.none(), st.sampled_from(DEGREES)),
        microbatch=st.sampled_from([1, 2, 3, 4]),
        runner=st.sampled_from(RUNNERS),
    )
    def go_on(self, saved, degree, microbatch, runner):
        if saved.step is None:
            return
        degree = degree or len(saved.within)
        within, allow = list(saved.within), ()
        if degree != len(within):
            if any(within):
                with pytest.raises(CheckpointError, match=f"inside step {saved.step} with"):
                    iter(make(self.recipe, dp_degree=degree, dp_group_id=0).restore(saved.parts))
                allow = {"partial_step"}
            within = [0] * degree
        left = [STEP // degree - rows for rows in within]
        microbatch = microbatch if not any(rows % microbatch for rows in left) else 1
        ranks = self._ranks(degree, microbatch, runner)
        for rank in ranks:
            rank.restore(saved.parts, allow=allow)
        self._stand(ranks, saved.step, within)

    def teardown(self):
        for each in self.items:
            each.close()
