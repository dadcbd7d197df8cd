"""What a run of a pipeline is besides its steps: where it stands, and the states it is saved in."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from zephon.errors import PlanError, nearest
from zephon.options import RuntimeOptions
from zephon.steps import Steps
from zephon.work import WorkSource

if TYPE_CHECKING:
    from zephon.exec.engine import Engine
    from zephon.exec.hosting import HostedEngine
    from zephon.exec.lanes import Topology
    from zephon.exec.ranks import Ranks
    from zephon.planner.compiler import Plan

_SCOPES = ("global", "local")


class Resuming(Steps):
    """A description of steps that can be run, and goes on from the states of a run."""

    def __init__(self, work_source: WorkSource) -> None:
        super().__init__(work_source)
        self._options = RuntimeOptions()
        self._plan: Plan | None = None
        self._engine: Engine | HostedEngine | None = None
        self._running: Engine | HostedEngine | None = None
        self._ready: Engine | HostedEngine | None = None  # which the next run begins with
        self._ranks: Ranks | None = None
        self._alone = False  # looks at the data beside the job, and meets nobody
        self._restored: dict[str, Any] | None = None
        self._allowed: frozenset[str] = frozenset()
        self._changes = 0  # calls and restores, of which an iterator must have seen all

    @overload
    def checkpoint(
        self, *, as_bytes: Literal[False] = False, scope: Literal["global", "local"] = "global"
    ) -> dict[str, Any]: ...

    @overload
    def checkpoint(
        self, *, as_bytes: Literal[True], scope: Literal["global", "local"] = "global"
    ) -> bytes: ...

    @overload
    def checkpoint(
        self, *, as_bytes: bool, scope: Literal["global", "local"] = "global"
    ) -> dict[str, Any] | bytes: ...

    def checkpoint(
        self, *, as_bytes: bool = False, scope: Literal["global", "local"] = "global"
    ) -> dict[str, Any] | bytes:
        """Return the state right after the last item that was handed out.

        Items made ahead are not part of it. Works before the first item, inside the loop, and
        after the end; after ``restore()`` and before iterating it is the restored state. That may
        tell of other ranks, too; among parts that are restored together it tells of this one alone.

        Of several ranks all call it after the same item, and all get the same: the state of the
        whole job, from which any number of ranks goes on.

        Args:
            as_bytes: compressed bytes instead of a dict of JSON values.
            scope: "local": only this rank's part, without asking others. ``restore`` takes the
                list of all ranks' parts.

        Raises:
            CoordinationError: ranks do not meet, since one is missing or nothing is set by which
                they could: ``aggregate_dir``, ``aggregate_store``, or a running torch.distributed.
            CheckpointError: ranks stand at different places.
        """
        state = self._state(scope)
        return self._runs().to_bytes(state) if as_bytes else state

    def _state(self, scope: str = "global") -> dict[str, Any]:
        if scope not in _SCOPES:
            known = nearest(str(scope), _SCOPES)
            raise PlanError(f"checkpoint: scope={scope!r} is unknown; {known}")
        engine = self._engine
        if self._restored is not None:
            plan, allowed = self._compiled(), self._allowed
            waits = self._runs().waiting_state(plan, self._options, self._restored, allowed)
            state = copy.deepcopy(waits)
        else:
            engine = engine or self._launch(None)
            state = self._runs().state_of(engine)
        if scope == "local":
            return state
        begun = self._restored is None
        ranks = self._ranks_of(engine if begun else None)
        if ranks is not None:
            return ranks.united(state)
        if begun and engine is not None:
            self._runs().refuse_without_coordinator(state, engine.topology)
        return state

    def restore(
        self,
        state: Mapping[str, Any] | bytes | Sequence[Mapping[str, Any] | bytes],
        allow: Iterable[str] = (),
    ) -> Self:
        """Go on from a checkpoint at the next iteration, with exactly the rows that follow it.

        Args:
            state: what ``checkpoint()`` returned, in either form; or a list of what it returned on
                several ranks, in any order. With ``global_batch_size`` any number of ranks goes on
                from that, each given the same list.
            allow: words of the changes to let through. ``"partial_step"``: of a checkpoint within a
                step, another number of ranks delivers the step again from its first row.
                ``"functions"``: filters, maps and other functions are others now: what was held
                is read and made again, and what is gone, or changed though delivered in part, is
                dropped and counted as ``edit``. ``"datasets"``: some are added, removed, or listed
                in another order, and each goes on where it stands; what was held of those that
                are gone is dropped and counted so, too.

        Raises:
            PlanError: a word of ``allow`` names no change.
            TypeError: ``state`` is neither a dict nor bytes.
            CheckpointError: it is no checkpoint, is damaged, or comes from a newer version; or the
                parts are not of one checkpoint. When it belongs to another recipe, lacks lanes of
                this rank, or stands within a step of other ranks, the iteration raises it.
        """
        runs = self._runs()
        words = runs.checked_words(allow)
        if isinstance(state, list | tuple):
            self._restored = runs.from_parts([_plain(part) for part in state])
        else:
            self._restored = runs.from_any(_plain(state))
        self._allowed = words
        self._changes += 1
        self._close()
        return self

    def accounting(self) -> dict[str, Any]:
        """Count, per component, rows drawn and tokens made, delivered, held and dropped.

        Each component tells the same under ``"lanes"`` of every lane that this rank runs. Ranks may
        share lanes, and then say the same of them: whoever adds up ranks takes each lane once.

        With ``global_batch_size`` whole steps are counted: what this rank has handed out of the
        step in which it stands counts with the last of its rows.
        """
        engine = self._engine
        if engine is None:
            engine = self._ready = self._next_engine()
        return self._runs().account(engine)

    def _ranks_of(self, engine: Engine | HostedEngine | None) -> Ranks | None:
        """Let ranks meet, once; None: there is one, or nothing by which they could."""
        runs = self._runs()
        if self._ranks is None and not self._alone and runs.can_meet(self._options):
            engine = engine or self._next_engine()
            self._ranks = runs.open_ranks(self._options, engine.topology, engine.identity.recipe)
        return self._ranks

    def _changed(self) -> Self:
        self._plan = None
        self._changes += 1
        self._close()
        if self._ranks is not None:
            self._ranks.close()
            self._ranks = None
        return self

    def _close(self) -> None:
        if self._engine is not None:
            self._engine.stop()
        self._engine = self._running = self._ready = None

    def _compiled(self) -> Plan:
        if self._plan is None:
            runs = self._runs()
            chunks = self._options.flush_every_k_chunks
            size = self._source.chunk_size_hint() or runs.CHUNK_SIZE
            rows = runs.BARRIER_ROWS if chunks is None else chunks * size
            self._plan = runs.compile_plan(self._node, barrier_rows=rows)
        return self._plan

    def _next_engine(self) -> Engine | HostedEngine:
        """Give the engine of the next run: to make it may take reading all that lanes hold."""
        if self._ready is not None:
            return self._ready
        if self._options.mtp_mode:
            from zephon.exec import hosting  # late: only runs in a child process need it

            sent = copy.copy(self)
            sent._options = self._options.hosted()
            if (
                hosted := hosting.open_hosted(sent._opened, self._source, self._options)
            ) is not None:
                return hosted
        return self._opened()

    def _opened(self) -> Engine:
        """Try the operators of the user, and open an engine here."""
        self._runs().run_auto_validation(self._node, self._options.auto_validation)
        return self._launch(self._restored)

    def _topology(self, restored: dict[str, Any] | None) -> Topology:
        """Say what this process delivers."""
        return self._runs().topology_of(self._compiled(), self._options, restored)

    def _launch(self, restored: dict[str, Any] | None) -> Engine:
        plan, runs = self._compiled(), self._runs()
        topology = self._topology(restored)
        return runs.open_engine(
            plan, self._source, self._options, topology, restored, self._allowed, self._told
        )


def _plain(state: object) -> object:
    return dict(state) if isinstance(state, Mapping) else state
