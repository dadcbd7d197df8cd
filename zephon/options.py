"""Settings of a run: who delivers what, how fast, with how much memory.

The file is long because every documented setting and its check stand here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from zephon.device_mesh import from_device_mesh
from zephon.errors import NotYetError, PlanError, nearest

__all__ = ["DEFAULT_RUN_ID", "IpcTransport", "RuntimeOptions", "from_device_mesh", "parse_size"]

DEFAULT_RUN_ID = "default_run_id"
DEFAULT_MEMORY_BUDGET = 144 << 20
MOST_DEFAULT_BUDGET = 1 << 30  # where no spill takes the row groups that leave memory

IpcTransport = Literal["socketpair", "pipe"]

RUNNERS = ("auto", "threads", "inline", "process")
_LATER_RUNNERS = ("ray", "remote")
_MAPPINGS = ("contiguous", "interleaved")
_VERIFIED = ("sampled", "full")
_BACKENDS = ("auto", "gigatoken", "tokenizers")
_RENAMED = {"shm_min_size": "shm_min_item_bytes", "coalesce_tensors": "shm_coalesce"}
_LATER = {
    "ledger": None,
    "token_cache": None,
    "progress": False,
    "on_metrics": None,
    "metrics_sink_config": None,
    "execution_tracking": None,
}
NO_EFFECT = (
    "mp_context", "worker_allocation", "deterministic", "default_stage_prefetch",
    "per_stage_prefetch", "op_queue_capacity", "ipc_transport", "ipc_buffer_bytes",
    "mixture_config", "allow_latency_flush_in_deterministic", "shutdown_mode",
    "mtp_buffer", "mtp_buffer_bytes", "mtp_prefetch", "mtp_auto_checkpoint",
    "shm_enabled", "shm_coalesce", "shm_min_item_bytes", "shm_min_new_allocation_bytes",
    "shm_min_forward_bytes", "shm_compact_above_ratio", "shm_compact_min_savings_bytes",
    "shm_max_coalesced_bytes", "aggregate_serializer", "aggregate_compressor",
)  # fmt: skip
_HOSTED = ("mtp_buffer", "mtp_buffer_bytes", "mtp_auto_checkpoint")  # these have, with mtp_mode


@dataclass(slots=True, kw_only=True)
class RuntimeOptions:
    """All settings of ``Pipeline.options`` with their defaults.

    Of these, ``canonical_replicas`` and ``global_batch_size`` decide what is delivered, and
    ``flush_every_k_chunks`` where operators that remember begin anew; all others decide how fast,
    to whom, and with how much memory. ``aggregate_dir``, a directory or a prefix in an object
    store, or ``aggregate_store``, which is `torch://[host:port]`, a mapping that all ranks reach or
    a process group, is where ranks meet; ``run_id`` tells jobs apart that meet in one place.
    ``verify_data="full"`` reads every shard whole where a run begins or goes on, to hold it against
    the checkpoint, and has states tell its hash. ``quarantine`` is the directory in which datasets
    with ``on_error="quarantine"`` have their bad rows written, one file a row; by default
    ``quarantine`` below ``io_options.cache.root``. Those in ``NO_EFFECT`` are accepted for code
    that sets them; ``explain()`` lists the ones that were set.

    ``mtp_mode`` runs the engine in a child process, ``mtp_buffer`` batches or ``mtp_buffer_bytes``
    of them ahead of the caller; ``mtp_auto_checkpoint`` takes the state at the end of the data, so
    that the child need not stay for it.
    """

    runner: str | None = None
    per_stage_runner: dict[int, str] = field(default_factory=dict)
    run_id: str = DEFAULT_RUN_ID
    mp_context: Any = "spawn"
    worker_allocation: str = "fit_to_ops"
    max_workers: int | None = None
    deterministic: bool = True
    prefetch_batches: int | None = None
    default_stage_prefetch: int | None = None
    per_stage_prefetch: dict[int, int] = field(default_factory=dict)
    op_queue_capacity: int | None = None
    ipc_transport: IpcTransport = "socketpair"
    ipc_buffer_bytes: int = 512 << 10
    mixture_config: Any = None
    io_options: Any = None
    allow_latency_flush_in_deterministic: bool = True
    flush_every_k_chunks: int | None = None
    shutdown_mode: str = "graceful"
    auto_validation: str = "strict"
    mtp_mode: bool = False
    mtp_buffer: int | None = None
    mtp_buffer_bytes: int = 8 << 20
    mtp_prefetch: int | None = None
    mtp_auto_checkpoint: bool = True
    world_size: int = 1
    global_rank: int = 0
    dp_degree: int | None = None
    dp_group_id: int | None = None
    canonical_replicas: int | None = None
    mapping_strategy: str | None = None
    shm_enabled: bool = True
    shm_coalesce: bool = True
    shm_min_item_bytes: int = 4096
    shm_min_new_allocation_bytes: int = 1 << 20
    shm_min_forward_bytes: int = 128 << 10
    shm_compact_above_ratio: float = 8.0
    shm_compact_min_savings_bytes: int = 16 << 20
    shm_max_coalesced_bytes: int = 64 << 20
    max_worker_retries: int = 3
    aggregate_dir: str | None = None
    aggregate_store: Any = None
    aggregate_timeout_s: float = 180.0
    aggregate_serializer: str = "msgpack"
    aggregate_compressor: str = "zstd"
    execution_tracking: Any = None
    metrics_sink_config: Any = None
    global_batch_size: int | None = None
    memory_budget: int | str | None = None
    tokenizer_backend: str = "auto"
    verify_data: str = "sampled"
    quarantine: str | None = None
    ledger: str | None = None
    token_cache: Any = None
    progress: bool = False
    on_metrics: Any = None
    _given: frozenset[str] = field(default=frozenset(), repr=False)

    def update(self, **settings: Any) -> None:
        """Set options by name; all are checked before any is set.

        Raises:
            TypeError: a name that was replaced; names its successor.
            PlanError: an unknown name or a value that cannot be; names the nearest right one.
            NotYetError: a documented setting that this version does not have.
        """
        known = {f.name for f in fields(self) if not f.name.startswith("_")}
        for name, value in settings.items():
            if name in _RENAMED:
                raise TypeError(f"options: {name} was replaced by {_RENAMED[name]}")
            if name not in known:
                raise PlanError(f"options: unknown option {name!r}; {nearest(name, known)}")
            _check(name, value)
        for name, value in settings.items():
            setattr(self, name, value)
        self._given |= settings.keys()
        if self.aggregate_dir is not None and self.aggregate_store is not None:
            raise PlanError(
                "options: aggregate_dir and aggregate_store are two places for ranks to meet; set "
                "one of them"
            )

    def data_identity(self) -> tuple[int, int]:
        """Return ``dp_degree`` and ``dp_group_id``; they default to ``world_size`` and rank.

        Raises:
            PlanError: the ranks do not fit each other; names both settings.
        """
        world, rank = self.world_size, self.global_rank
        degree = world if self.dp_degree is None else self.dp_degree
        group = rank if self.dp_group_id is None else self.dp_group_id
        if "world_size" in self._given:
            if rank >= world:
                raise PlanError(
                    f"options: global_rank must be in [0, world_size={world}), got {rank}"
                )
            if world % degree:
                raise PlanError(
                    f"options: world_size={world} must be a multiple of dp_degree={degree}; as "
                    "many ranks read each group's data as any other's"
                )
            if self.dp_group_id is None and degree < world:
                raise PlanError(
                    f"options: world_size={world} ranks share dp_degree={degree} groups of data, "
                    f"and dp_group_id is not set; set that of rank {rank}, the same as of the "
                    "ranks that read the same data, or use from_device_mesh()"
                )
        return degree, group

    def coordination_identity(self) -> tuple[int, int]:
        """Return ``world_size`` and ``global_rank``: who takes part where ranks meet.

        They default to ``dp_degree`` and ``dp_group_id``.
        """
        if self._given & {"world_size", "global_rank"}:
            return self.world_size, self.global_rank
        return self.data_identity()

    def hosted(self) -> RuntimeOptions:
        """Give the options of an engine that is in a child process already."""
        return replace(self, mtp_mode=False, mp_context="spawn", aggregate_store=None)

    def hosted_room(self) -> int:
        """Say how many batches an engine in a child process may be ahead of the caller.

        Several cross at once: with room for 4 small ones, a run takes a quarter more processor time
        than with room for 32. ``mtp_buffer_bytes`` bounds large ones.
        """
        if self.mtp_buffer is not None:
            return self.mtp_buffer
        workers = self.max_workers or min(max(os.cpu_count() or 1, 4), 16)
        ahead = self.prefetch_batches
        return max(32, (2 * workers if ahead is None else ahead) // 2)

    @property
    def names_ranks(self) -> bool:
        """Whether something was said about ranks, be it that there is one."""
        return not self._given.isdisjoint(("world_size", "global_rank", "dp_degree", "dp_group_id"))

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Names that were set and mean nothing to this engine."""
        found = self._given.intersection(NO_EFFECT)
        return tuple(sorted(found.difference(_HOSTED) if self.mtp_mode else found))


_SUFFIXES = {"tb": 1 << 40, "gb": 1 << 30, "mb": 1 << 20, "kb": 1 << 10, "b": 1}


def parse_size(size: int | str, *, least: int = 1) -> int:
    """Read a size in bytes; suffixes are powers of 1,024.

    >>> parse_size("1.5gb")
    1610612736

    Raises:
        PlanError: it is no size, or less than ``least`` bytes.
    """
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise PlanError(f"a size must be bytes or text such as '512mb', got {size!r}")
    if isinstance(size, int):
        value = size
    else:
        text = size.strip().lower()
        suffix = next((s for s in _SUFFIXES if text.endswith(s)), "")
        try:
            number = float(text.removesuffix(suffix))
            value = int(number * _SUFFIXES.get(suffix, 1))
        except (ValueError, OverflowError):
            raise PlanError(f"a size must be bytes or text such as '512mb', got {size!r}") from None
    if value < least:
        unit = "byte" if least == 1 else "bytes"
        raise PlanError(f"a size must be at least {least} {unit}, got {size!r}")
    return value


def _check(name: str, value: Any) -> None:
    if name in _LATER and value is not None and value != _LATER[name]:
        raise NotYetError(f"options: {name}={value!r} is not there yet; leave it out")
    match name:
        case "runner" if value is not None:
            _runner(name, value)
        case "per_stage_runner":
            _stage_runners(value)
        case "flush_every_k_chunks" if value is not None:
            _integer(name, value, 1)
        case "max_worker_retries":
            _integer(name, value, 0)
        case "mapping_strategy" if value is not None:
            _one_of(name, value, _MAPPINGS)
        case "tokenizer_backend":
            _one_of(name, value, _BACKENDS)
        case "verify_data":
            _one_of(name, value, _VERIFIED)
        case "auto_validation":
            _one_of(name, value, ("strict", "warn", "off"))
        case "run_id":
            _text(name, value)
        case "aggregate_dir" | "quarantine" if value is not None:
            _text(name, value)
        case "aggregate_store" if isinstance(value, str):
            _text(name, value)
        case "aggregate_timeout_s":
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise PlanError(f"options: {name} must be seconds above 0, got {value!r}")
        case "memory_budget" if value is not None:
            try:
                parse_size(value)
            except PlanError as exc:
                raise PlanError(f"options: memory_budget: {exc}") from None
        case "mtp_mode" | "mtp_auto_checkpoint" if not isinstance(value, bool):
            raise PlanError(f"options: {name} must be True or False, got {value!r}")
        case "mtp_buffer_bytes":
            _integer(name, value, 1)
        case "mtp_buffer" if value is not None:
            _integer(name, value, 1)
        case "world_size":
            _integer(name, value, 1)
        case "global_rank" | "dp_group_id" | "prefetch_batches" if value is not None:
            _integer(name, value, 0)
        case "dp_degree" | "canonical_replicas" | "global_batch_size" | "max_workers" if (
            value is not None
        ):
            _integer(name, value, 1)


def _runner(name: str, value: Any) -> None:
    if value in _LATER_RUNNERS:
        raise NotYetError(f"options: {name}={value!r} is not there yet; use 'process'")
    _one_of(name, value, RUNNERS)


def _stage_runners(value: Any) -> None:
    if not isinstance(value, dict):
        raise PlanError(
            f"options: per_stage_runner must be a dict from stage numbers to runners, got {value!r}"
        )
    for stage, runner in value.items():
        if isinstance(stage, bool) or not isinstance(stage, int) or stage < 0:
            raise PlanError(
                f"options: per_stage_runner must have stage numbers as keys, got {stage!r}; "
                "explain() lists the stages"
            )
        _runner(f"per_stage_runner[{stage}]", runner)


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise PlanError(f"options: {name}={value!r} is unknown; {nearest(str(value), known)}")


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise PlanError(f"options: {name} must be text, got {value!r}")


def _integer(name: str, value: Any, bound: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < bound:
        raise PlanError(f"options: {name} must be an integer of at least {bound}, got {value!r}")
