"""Calls that add operators of the user: they see lists of records, and may remember."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from zephon.ops import BaseOp
from zephon.ops.arguments import custom_op, stateful
from zephon.planner import logical
from zephon.steps.description import Description, check_fingerprint, check_placement, whole


class CustomSteps(Description):
    """Steps that see records: payloads, and who each is."""

    def add_op(
        self,
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
        placement: str = "auto",
        indexable: bool | None = None,
        batch_shape_sensitive: bool | None = None,
        requires_serial_state: bool | None = None,
        fingerprint: str | None = None,
    ) -> Self:
        """Add an operator of your own: functions under a name, or an instance of ``BaseOp``.

        It gets lists of at most 64 ``SampleRecord``s of one lane, its own copies. If it keeps their
        order and has no accumulator, and nothing before it reorders rows, a list is what is left of
        64 draws, and lists are worked on at once; else they are 64 records in the order of the
        lane, one list after the other.

        Args:
            op: an instance, which says the rest but its name; or the name of one made of functions.
            name: of an instance.
            process_many: makes records of a list of records, and remembers nothing: the same list
                gives the same records. Records that it makes say where they come from: see
                ``zephon.ops.spawn_child`` and ``pack_meta``. Dropped ones are tombstones, or left
                out.
            preserves_cursor_order: whether records leave in the order in which they came.
            calibration_replayable: said for the public interface.
            accumulator: makes what forms lists, and may remember. Every
                ``flush_every_k_chunks`` chunks, 8 if not given, it is flushed and begins anew, so
                that a restored run can make it again; unless it has ``snapshot`` and ``restore``.
            process_one: said for the public interface.
            validation_samples: records to try it with, or a function that makes them.
            parallelism: workers that may be inside it at once; None: its own suggestion.
            placement: "auto" or "local".
            indexable: said for the public interface.
            batch_shape_sensitive: said for the public interface: lists are the same in every run.
            requires_serial_state: whether it remembers something between calls, in itself.
            fingerprint: what a checkpoint knows it by, instead of name, source and closure.

        Raises:
            PlanError: something is missing, or was said although an instance says it.
            TypeError: something is no function.
            RuntimeError: it remembers, and several workers were to call it.
        """
        check_placement("add_op", placement)
        check_fingerprint("add_op", fingerprint)
        self._refuse_after("add_op", logical.Batch)
        fields = custom_op(
            op,
            name=name,
            process_many=process_many,
            preserves_cursor_order=preserves_cursor_order,
            calibration_replayable=calibration_replayable,
            accumulator=accumulator,
            process_one=process_one,
            validation_samples=validation_samples,
            parallelism=whole(parallelism),
            indexable=indexable,
            batch_shape_sensitive=batch_shape_sensitive,
            requires_serial_state=requires_serial_state,
            fingerprint=fingerprint,
        )
        return self._add(logical.CustomOp(input=self._node, **fields))

    def stateful_transform(
        self,
        name: str,
        *,
        init_state: Callable[[], Any],
        push: Callable[..., Any],
        flush: Callable[..., Any] | None = None,
        should_flush: Callable[..., Any] | None = None,
        transform: Callable[..., Any] | None = None,
        snapshot: Callable[[Any], Any] | None = None,
        restore: Callable[[Any], Any] | None = None,
        placement: str = "auto",
        parallelism: int = 1,
        indexable: bool = False,
        preserves_cursor_order: bool = True,
        fingerprint: str | None = None,
    ) -> Self:
        """Transform records with a state of its own in each lane.

        A restored run makes the state again: from what ``snapshot`` wrote down, or by replaying
        records. For that, without ``snapshot``, the state is flushed and begun anew every
        ``flush_every_k_chunks`` chunks, 8 if not given; ``explain`` says how many records that is.

        Args:
            name: for messages.
            init_state: makes the state that a lane begins with.
            push: takes the state and a list of at most 64 records of the lane, in order; returns
                the state, and the records that go on.
            flush: takes the state; returns the records that it holds.
            should_flush: takes the state; True: flush it now, and begin anew.
            transform: makes records of the records that ``push`` or ``flush`` gave together.
            snapshot: takes the state; gives it as JSON values.
            restore: takes what ``snapshot`` gave; makes the state of it.
            placement: "auto" or "local".
            parallelism: accepted; a lane's records are pushed one list after the other.
            indexable: said for the public interface.
            preserves_cursor_order: False: it holds records back, or reorders them.
            fingerprint: what a checkpoint knows it by, instead of names, sources and closures.

        Raises:
            PlanError: it holds records, and nothing saves them where it begins anew; or one of
                ``snapshot`` and ``restore`` is missing.
            TypeError: something is no function.
        """
        check_placement("stateful_transform", placement)
        check_fingerprint("stateful_transform", fingerprint)
        self._refuse_after("stateful_transform", logical.Batch)
        fields = stateful(
            name,
            init_state=init_state,
            push=push,
            flush=flush,
            should_flush=should_flush,
            transform=transform,
            snapshot=snapshot,
            restore=restore,
            parallelism=whole(parallelism),
            indexable=indexable,
            preserves_cursor_order=preserves_cursor_order,
            fingerprint=fingerprint,
        )
        return self._add(logical.Stateful(input=self._node, **fields))
