"""What ``add_op`` and ``stateful_transform`` take, checked; fields of a plan node come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from zephon.errors import PlanError, SerialStateError, WrongKindError
from zephon.ops.accumulators import PassthroughAccumulator
from zephon.ops.base import BaseOp, check_begun, remembers
from zephon.ops.traits import OpTraits
from zephon.types import SampleRecord

_NO_LISTS = (str, bytes, Mapping, SampleRecord)


def custom_op(
    op: str | BaseOp,
    *,
    name: str | None = None,
    process_many: Callable[[list[Any]], list[Any]] | None = None,
    preserves_cursor_order: bool | None = None,
    calibration_replayable: bool | None = None,
    accumulator: Callable[..., Any] | None = None,
    process_one: Callable[[Any], list[Any]] | None = None,
    validation_samples: Any = None,
    parallelism: int | None = None,
    indexable: bool | None = None,
    batch_shape_sensitive: bool | None = None,
    requires_serial_state: bool | None = None,
    fingerprint: str | None = None,
) -> dict[str, Any]:
    """Give the fields of an operator of the user.

    Args:
        op: an instance, which says the rest itself; or the name of one made of functions.
        name: of an instance; None: that of its class.
        process_many: makes records of a list of records.
        preserves_cursor_order: whether records leave in the order in which they came.
        calibration_replayable: whether records may run through it for calibration. None: False,
            here and for the other promises.
        accumulator: makes what forms groups, called with ``deterministic`` and ``ctx`` where it
            takes them.
        process_one: makes records of one record.
        validation_samples: records to try the operator with, or a function that makes them.
        parallelism: threads that may call it at once; None: its own suggestion.
        indexable: said for the public interface.
        batch_shape_sensitive: whether what leaves depends on which records come together.
        requires_serial_state: whether it remembers something between calls.
        fingerprint: what a checkpoint knows it by; None: name and source.

    Raises:
        PlanError: something is missing, or was said although an instance says it.
        WrongKindError: something is of another kind: no operator, or no function.
        SerialStateError: it remembers, and several threads were to call it.
    """
    functional = {
        "process_many": process_many,
        "preserves_cursor_order": preserves_cursor_order,
        "calibration_replayable": calibration_replayable,
        "accumulator": accumulator,
        "process_one": process_one,
        "validation_samples": validation_samples,
        "indexable": indexable,
        "batch_shape_sensitive": batch_shape_sensitive,
        "requires_serial_state": requires_serial_state,
    }
    if isinstance(op, BaseOp):
        said = [key for key, value in functional.items() if value is not None]
        fields = _of_instance(op, name, said)
    elif isinstance(op, str):
        fields = _of_functions(op, name, functional)
    else:
        what = f"the class {op.__name__}" if isinstance(op, type) else repr(op)
        raise WrongKindError(
            f"add_op: an instance of BaseOp was wanted, or a name followed by functions, got "
            f"{what}; pass one of them"
        )
    workers = fields.pop("suggested") if parallelism is None else parallelism
    fields.pop("suggested", None)
    if fields["requires_serial_state"] and workers != 1:
        raise SerialStateError(
            f"add_op {fields['name']!r}: requires_serial_state=True wants parallelism=1, got "
            f"{workers!r}; pass parallelism=1, or keep what it remembers in its accumulator"
        )
    return {**fields, "parallelism": workers, "fingerprint": fingerprint}


def _of_instance(op: BaseOp, name: str | None, said: list[str]) -> dict[str, Any]:
    kind = type(op).__name__
    if said:
        raise PlanError(
            f"add_op: an instance of BaseOp says all but its name itself, got {', '.join(said)} "
            f"with a {kind}; override traits() and the methods of the class, or pass a name and "
            "functions"
        )
    if name is not None:
        _check_name("add_op", name)
    check_begun(op)
    traits = op.traits()
    if not isinstance(traits, OpTraits):
        raise WrongKindError(
            f"add_op: {kind}.traits() must return an OpTraits, got {traits!r:.80}; return "
            "OpTraits(preserves_cursor_order=...)"
        )
    return {
        "name": kind if name is None else name,
        "instance": op,
        "preserves_cursor_order": traits.preserves_cursor_order,
        "calibration_replayable": traits.calibration_replayable,
        "batch_shape_sensitive": traits.batch_shape_sensitive,
        "requires_serial_state": traits.requires_serial_state,
        "indexable": traits.indexable,
        "remembers": remembers(op),
        "suggested": traits.parallelism,
    }


def _of_functions(op: str, name: str | None, given: dict[str, Any]) -> dict[str, Any]:
    _check_name("add_op", op)
    call = f"add_op {op!r}"
    if name is not None:
        raise PlanError(
            f"{call}: the name of an operator made of functions is the first argument, got "
            f"name={name!r} too; leave name= out"
        )
    if given["process_many"] is None:
        raise PlanError(
            f"{call}: process_many is missing; pass the function that makes records of records"
        )
    if given["preserves_cursor_order"] is None:
        raise PlanError(
            f"{call}: preserves_cursor_order is missing; pass True if records leave in the order "
            "in which they came, False if it reorders, buffers or packs"
        )
    for key in ("process_many", "process_one", "accumulator"):
        if given[key] is not None:
            _check_function(call, key, given[key])
    fields = dict(given)
    for key in (
        "preserves_cursor_order",
        "calibration_replayable",
        "indexable",
        "batch_shape_sensitive",
        "requires_serial_state",
    ):
        fields[key] = _flag(call, key, given[key] or False)
    samples = given["validation_samples"]
    if samples is not None and not callable(samples):
        if not isinstance(samples, Iterable) or isinstance(samples, _NO_LISTS):
            raise WrongKindError(
                f"{call}: validation_samples must be a list of SampleRecord, or a function that "
                f"gives one, got {samples!r:.80}; pass one"
            )
        fields["validation_samples"] = tuple(samples)
    forms_groups = given["accumulator"] not in (None, PassthroughAccumulator)
    fields["remembers"] = forms_groups or fields["requires_serial_state"]
    return {**fields, "name": op, "suggested": 1}


def stateful(
    name: str,
    *,
    init_state: Callable[[], Any],
    push: Callable[..., Any],
    flush: Callable[..., Any] | None = None,
    should_flush: Callable[..., Any] | None = None,
    transform: Callable[..., Any] | None = None,
    snapshot: Callable[[Any], Any] | None = None,
    restore: Callable[[Any], Any] | None = None,
    parallelism: int = 1,
    indexable: bool = False,
    preserves_cursor_order: bool = True,
    fingerprint: str | None = None,
) -> dict[str, Any]:
    """Give the fields of a transformation with a state of its own in each lane.

    Args:
        name: for messages.
        init_state: makes the state that a lane begins with.
        push: takes the state and records; returns the state, and records that go on.
        flush: takes the state; returns the records that it holds.
        should_flush: takes the state; True: flush it now, and begin anew.
        transform: makes records of the records that ``push`` or ``flush`` gave together.
        snapshot: takes the state; writes it down as JSON values.
        restore: takes what ``snapshot`` wrote; makes the state of it.
        parallelism: said for the public interface; a lane is pushed in order.
        indexable: said for the public interface.
        preserves_cursor_order: False: it holds records back, or reorders them.
        fingerprint: what a checkpoint knows it by; None: names and sources.

    Raises:
        PlanError: it holds records, and nothing saves them where lanes are flushed; or one of
            ``snapshot`` and ``restore`` is missing.
        WrongKindError: something is no function.
    """
    _check_name("stateful_transform", name)
    call = f"stateful_transform {name!r}"
    optional = {
        "flush": flush,
        "should_flush": should_flush,
        "transform": transform,
        "snapshot": snapshot,
        "restore": restore,
    }
    for key, value in {"init_state": init_state, "push": push, **optional}.items():
        if value is not None or key not in optional:
            _check_function(call, key, value)
    if (snapshot is None) != (restore is None):
        here, missing = ("restore", "snapshot") if snapshot is None else ("snapshot", "restore")
        raise PlanError(
            f"{call}: snapshot and restore go together, got {here} alone; pass {missing} too, or "
            "neither"
        )
    _flag(call, "indexable", indexable)
    in_order = _flag(call, "preserves_cursor_order", preserves_cursor_order)
    if not in_order and flush is None and snapshot is None:
        raise PlanError(
            f"{call}: preserves_cursor_order=False says that it holds records, got neither flush "
            "nor snapshot, so those held where lanes are flushed would be lost; pass flush, which "
            "returns them, or snapshot and restore"
        )
    return {
        "name": name,
        "init_state": init_state,
        "push": push,
        **optional,
        "parallelism": parallelism,
        "indexable": indexable,
        "preserves_cursor_order": preserves_cursor_order,
        "fingerprint": fingerprint,
    }


def _check_name(call: str, name: object) -> None:
    if not isinstance(name, str):
        raise WrongKindError(f"{call}: the name must be a string, got {name!r:.80}; pass one")
    if not name:
        raise PlanError(f"{call}: the name must not be empty; pass one that messages can use")


def _check_function(call: str, key: str, value: object) -> None:
    if not callable(value):
        raise WrongKindError(f"{call}: {key} must be a function, got {value!r:.80}; pass one")


def _flag(call: str, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise PlanError(f"{call}: {key} must be True or False, got {value!r:.80}; pass one")
    return value
