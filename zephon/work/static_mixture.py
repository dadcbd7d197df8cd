"""A mixture of datasets, drawn in proportion, in a keyed random order.

The order is arithmetic on positions, so it needs no memory to speak of and starts anywhere. Read
next: interleave.py and course.py (whose turn it is), ends.py (when a dataset or a lane ends), and
order/ (which lane takes which position of a pass, and which row lies there).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from zephon.errors import ExecutionError, PlanError
from zephon.work import arguments
from zephon.work.arguments import CALL, UNSET, Unset
from zephon.work.budget import Amount, checked_budgets
from zephon.work.calibration import MOST_TOKENS
from zephon.work.component import Component, Rules, Settings
from zephon.work.cut_chunks import CutChunks
from zephon.work.description import MOST_LANES, describe
from zephon.work.finite import finite_float
from zephon.work.lane import MixtureLane
from zephon.work.lanes import Lanes
from zephon.work.mixture import MixtureSpec
from zephon.work.mixture_plan import MixturePlan, rules_of
from zephon.work.order.dealt import Former
from zephon.work.schedule import MixtureSchedule, StepSize
from zephon.work.token_estimation import TokenEstimation, TokenRatio, mean_cost, prime_token_ratios
from zephon.work.token_lane import TokenLane
from zephon.work.words import one_of

if TYPE_CHECKING:
    from zephon.io.dataset import Dataset

ShuffleBlockSpec: TypeAlias = int | Literal["auto", "global"] | None


class StaticMixtureWorkSource(CutChunks):
    """Draw from several datasets in proportion, each in an order of its own.

    Every lane draws each dataset within ``len(datasets) + 1`` samples of its share at any point;
    with ``mixture_unit="tokens"``, within one longest document of its share of tokens. By default
    a dataset that is used up begins again, in a fresh order, until the slowest has made one pass:
    so every row is drawn at least once, but for those of a dataset whose weight is taken away or
    whose budget is met.

    Args:
        datasets: at least one; their names differ. A dataset's id is its position here.
        mixture: a weight for each dataset's name; zero for one that is never read.
        chunk_size: at most so many neighbouring rows of a pass go to a lane at a time; also the
            unit in which sample ids count.
        seed: decides every order; a whole number of 64 bits, signed.
        shuffle_shards: permute the shards of each pass.
        shuffle_within_shard: permute the rows of each shard.
        shuffle_block_size: cut what that gives into blocks of so many rows and permute each:
            "auto" is eight times the largest shard of all datasets, "global" the whole dataset.
        exhausted_policy: what happens when a dataset has no row left: "stop" ends the lane just
            before it would draw one more, "repeat" begins the dataset anew, "redistribute" gives
            its weight to the others. One for all, or one a dataset ("stop" where none is given).
        reshuffle_on_repeat: each pass has an order of its own; otherwise all repeat the first. One
            for all, or one a dataset (True where none is given).
        max_repeats: passes after the first that "repeat" makes; then the lane ends as under
            "stop". One for all, or one a dataset (no bound where none is given).
        stop_after_passes: all repeat until each has made so many passes; 1 if neither this nor a
            policy is given.
        lane_assignment: how neighbouring rows go round the lanes: "permute" in a random order of
            lanes each round, or "modulo" in lane order.
        token_estimation: weights mean tokens, by an estimate of the tokens in a mean row.
        mixture_unit: what weights count, "samples" or, exactly, "tokens".
        schedule: weights that change while the run goes on; ``mixture`` holds at its beginning.
        budget: samples, or ``tokens(n)``, of a dataset after which it is finished: its weight goes
            to the others, and no end waits for it.

    Raises:
        PlanError: an argument is wrong, or two do not go together; the message names them.
        DatasetError: a dataset that is to be read has no rows.
    """

    __slots__ = (
        "_blocks_follow",
        "_costs",
        "_laid_out",
        "_plan",
        "token_estimation",
        "token_ratios",
    )

    def __init__(
        self,
        datasets: Sequence[Dataset],
        mixture: MixtureSpec | Mapping[str, float],
        chunk_size: int = 16384,
        seed: int = 0,
        shuffle_shards: bool = True,
        shuffle_within_shard: bool = False,
        shuffle_block_size: ShuffleBlockSpec = None,
        exhausted_policy: str | Mapping[str, str] | None = None,
        reshuffle_on_repeat: bool | Mapping[str, bool] = True,
        max_repeats: int | Mapping[str, int] | None = None,
        stop_after_passes: int | Unset | None = UNSET,
        lane_assignment: str = "permute",
        token_estimation: TokenEstimation | None = None,
        *,
        mixture_unit: str = "samples",
        schedule: MixtureSchedule | None = None,
        budget: Mapping[str, Amount | int] | None = None,
    ) -> None:
        found = arguments.checked_datasets(datasets)
        names = [dataset.name for dataset in found]
        weighed = mixture if isinstance(mixture, MixtureSpec) else MixtureSpec(mixture)
        weights = weighed.normalized_for(names)
        counted = arguments.counted_unit(mixture_unit, token_estimation)
        if token_estimation is not None:
            token_estimation.validate_for(names)
        changes = arguments.checked_schedule(schedule, names, weighed, counted)
        settings = Settings(
            chunk_size=arguments.whole_number("chunk_size", chunk_size, least=1),
            seed=arguments.seed_number(seed),
            shuffle_shards=arguments.flag("shuffle_shards", shuffle_shards),
            shuffle_within_shard=arguments.flag("shuffle_within_shard", shuffle_within_shard),
            lane_assignment=one_of(CALL, "lane_assignment", lane_assignment, ("permute", "modulo")),
        )
        specs = [weighed, *(spec for _, spec in (changes.points if changes else ()))]
        # A weight that was given but vanished in scaling is kept, to be refused as too small.
        read = {name for spec in specs for name, share in spec.weights.items() if share > 0}
        components = tuple(
            Component(name, place, dataset, weights[name], name in read)
            for place, (name, dataset) in enumerate(zip(names, found, strict=True))
        )
        rules = rules_of(
            components,
            arguments.block_size(shuffle_block_size),
            arguments.fresh_passes(reshuffle_on_repeat, names),
            arguments.endings(
                stop_after_passes=stop_after_passes,
                exhausted_policy=exhausted_policy,
                max_repeats=max_repeats,
                names=names,
            ),
            checked_budgets(CALL, budget, names, counted),
        )
        self._plan = MixturePlan.of(
            components,
            rules,
            settings=settings,
            mixture=weighed,
            counted=counted,
            schedule=changes,
        )
        self._blocks_follow = shuffle_block_size == "auto"
        self.token_estimation = token_estimation
        self.token_ratios: dict[str, TokenRatio] = {}
        self._costs: dict[str, float] | None = None
        self._laid_out: tuple[tuple[int, StepSize | None, int | None], Lanes] | None = None
        if token_estimation is not None and self._ratios_are_given():
            self.prime()

    @property
    def components(self) -> tuple[Component, ...]:
        """The datasets and their weights; a reference's component is a position here."""
        return self._plan.components

    @property
    def dataset_ids(self) -> tuple[int, ...]:
        """The ids of the datasets: their positions in the list."""
        return tuple(range(len(self._plan.components)))

    @property
    def datasets_by_id(self) -> Mapping[int, Dataset]:
        """The datasets by id."""
        return MappingProxyType({each.dataset_id: each.dataset for each in self._plan.components})

    def continues_after_exhaustion(self) -> frozenset[str]:
        """Name the datasets after whose end the others go on: redistributed, or with a budget."""
        return frozenset(
            component.name
            for component, rules in self.rules()
            if rules.policy == "redistribute" or rules.budget is not None
        )

    @property
    def seed(self) -> int:
        """The number that decides every order."""
        return self._plan.settings.seed

    @property
    def chunk_size(self) -> int:
        """Neighbouring rows that go to a lane at a time, at most."""
        return self._plan.settings.chunk_size

    @property
    def mixture_unit(self) -> str:
        """What weights count when a lane is drawn: "samples", or "tokens" exactly."""
        return "tokens" if self._plan.counted == "tokens" else "samples"

    @property
    def counted(self) -> str:
        """What weights mean: "samples", "tokens" or "estimated tokens"."""
        return self._plan.counted

    @property
    def schedule(self) -> MixtureSchedule | None:
        """The weights that change, if they do."""
        return self._plan.schedule

    @property
    def shuffles_within_shard(self) -> bool:
        """Whether the rows of each shard are permuted."""
        return self._plan.settings.shuffle_within_shard

    def block_rows(self, component: int) -> int | None:
        """Give the rows of a component that are permuted among themselves; None without blocks."""
        found = (r.rules for r in self._plan.reading if r.component.dataset_id == component)
        return next((rules.block_size for rules in found), None)

    def continued(
        self, recipes: Sequence[Mapping[str, Any]], grown: Collection[str] = ()
    ) -> StaticMixtureWorkSource:
        """Return this source as it goes on with a run.

        Automatic block sizes stay. What was read is read on, if without weight: it may be held.

        Args:
            recipes: of the sources of that run, the latest last.
            grown: datasets with other shards than in that run; their blocks follow from these.
        """
        rules = {name: own for each in recipes for name, own in each.get("rules", {}).items()}
        sizes = {name: r["shuffle_block_size"] for name, r in rules.items() if name not in grown}
        plan = self._plan.with_blocks(sizes) if self._blocks_follow else self._plan
        return self._of(plan.reading_on(recipes[-1].get("rules", {})))

    def grown(self, former: Mapping[str, tuple[Former, ...]]) -> StaticMixtureWorkSource:
        """Return this source for a run in which shards were added, as ``with_former`` has it."""
        return self._of(self._plan.with_former(former))

    def _of(self, plan: MixturePlan) -> StaticMixtureWorkSource:
        if plan is self._plan:
            return self
        other = copy.copy(self)
        other._plan = plan
        other._laid_out = None
        return other

    def rules(self) -> tuple[tuple[Component, Rules], ...]:
        """Say how each component that is read is ordered, and when it ends."""
        return tuple((each.component, each.rules) for each in self._plan.reading)

    @property
    def total_samples(self) -> float:
        """Draws until the source ends, with one lane; infinity if it never does.

        Raises:
            ExecutionError: it depends on what the run reads, or on the size of its steps.
        """
        if self.mixture_unit == "tokens":
            raise ExecutionError(
                f"{CALL}: total_samples is known only once the data are read, since "
                "mixture_unit='tokens' counts their tokens; count what the pipeline delivers"
            )
        length = self.lane_stream(0, 1).length
        return math.inf if length is None else length

    def __len__(self) -> int:
        total = self.total_samples
        if math.isinf(total):
            raise TypeError(
                f"{CALL}: it has no len(), since a dataset repeats without a bound; give "
                "stop_after_passes or max_repeats for an end"
            )
        return int(total)

    def lane_stream(
        self, lane: int, lanes: int, *, step: StepSize | None = None, state: Any = None
    ) -> MixtureLane:
        """Give lane ``lane`` of ``lanes``.

        Args:
            lane: which lane.
            lanes: how many there are.
            step: what a step of the run is, where the schedule counts steps.
            state: a ``Base`` where the lane goes on by these weights, which were others before;
                None: they hold from its beginning.

        Raises:
            PlanError: there is no such lane, or the mixture counts tokens exactly.
            ExecutionError: the tokens of a mean row were not estimated yet.
        """
        lane, lanes = arguments.lane_of("lane_stream", lane, lanes)
        if self.mixture_unit == "tokens":
            raise PlanError(
                "lane_stream: mixture_unit='tokens' orders draws by tokens, which are known only "
                "behind a tokenizer; run it in a Pipeline"
            )
        return self.lanes(lanes, step).stream(lane, state)

    def token_lane(self, lane: int, lanes: int, *, step: StepSize | None = None) -> TokenLane:
        """Give the parts of a lane whose mixture counts tokens exactly.

        Raises:
            PlanError: there is no such lane, or the mixture does not count tokens exactly.
        """
        lane, lanes = arguments.lane_of("token_lane", lane, lanes)
        if self.mixture_unit != "tokens":
            raise PlanError("token_lane: the mixture must count tokens; set mixture_unit='tokens'")
        return self.lanes(lanes, step).token_lane(lane)

    @property
    def requires_token_priming(self) -> bool:
        """Whether tokens of a mean row must be estimated before the first draw."""
        return self.token_estimation is not None and self._costs is None

    @property
    def token_costs(self) -> Mapping[str, float] | None:
        """Estimated tokens of a mean row of each dataset; None before they are known."""
        return None if self._costs is None else MappingProxyType(self._costs)

    def set_token_costs(self, costs: Mapping[str, float]) -> None:
        """Take the estimated tokens of a mean row from elsewhere, such as a checkpoint.

        Raises:
            PlanError: a dataset that is read has none, or one that no row can have.
        """
        found = {}
        for each in self._plan.reading:
            name = each.component.name
            cost = finite_float(costs.get(name))
            if cost is None or not 1 <= cost <= MOST_TOKENS:
                raise PlanError(
                    f"{CALL}: a mean row of dataset {name!r} must have from 1 to 2^40 tokens, got "
                    f"{costs.get(name)!r}; mend its ratio in token_estimation"
                )
            found[name] = cost
        self._costs = found
        self.token_ratios = {}
        self._laid_out = None

    def prime(
        self,
        io_options: object = None,
        counting_spec: Any = None,
        pre_tokenize_replay: object = None,
        mp_context: object = None,
        *,
        known: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Estimate the tokens of a mean row of each dataset that is read.

        Args:
            io_options: accepted; nothing is read here.
            counting_spec: counts the tokens of rows; see ``prime_token_ratios``.
            pre_tokenize_replay: accepted; counting includes every step before the tokenizer.
            mp_context: accepted; no process is started.
            known: tokens of a mean row of datasets that need no estimate.
        """
        if self.token_estimation is None:
            return
        datasets = {
            c.name: c.dataset for c in self._plan.components if c.read and c.name not in known
        }
        ratios = prime_token_ratios(
            self.token_estimation, datasets, seed=self.seed, count=counting_spec
        )
        costs = {name: mean_cost(datasets[name], r) for name, r in ratios.items()}
        self.set_token_costs({**known, **costs})
        self.token_ratios = ratios

    def describe(self, lanes: int, step: StepSize | None = None) -> tuple[str, ...]:
        """Say in words what weights count, how they change, and when lanes end. Reads nothing."""
        lengths: list[int | None] | ExecutionError | None = None
        if lanes <= MOST_LANES and self.mixture_unit != "tokens":
            try:
                lengths = [self.lane_stream(lane, lanes, step=step).length for lane in range(lanes)]
            except ExecutionError as exc:
                lengths = exc
        return tuple(describe(self._plan, lengths))

    def recipe(self) -> dict[str, Any]:
        """List the arguments that change the data; datasets by name, in their order."""
        return self._plan.recipe(self._costs)

    def __repr__(self) -> str:
        shares = ", ".join(f"{each.name}: {each.weight:.4g}" for each in self._plan.components)
        return f"{CALL}({shares}; seed={self.seed})"

    def lanes(self, count: int, step: StepSize | None, components: int | None = None) -> Lanes:
        """Lay out lanes that count so many components, or its own; the last of them are kept."""
        kept, wanted = self._laid_out, (count, step, components)
        if kept is None or kept[0] != wanted:
            lanes = Lanes(self._plan, count, step, self._costs, components)
            kept = self._laid_out = (wanted, lanes)
        return kept[1]

    def _ratios_are_given(self) -> bool:
        estimation = self.token_estimation
        return estimation is not None and all(
            estimation.given_ratio(each.component.name) is not None for each in self._plan.reading
        )
