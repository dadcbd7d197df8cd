"""What an operator of the user promises, so that the engine knows where it may run."""

from __future__ import annotations

from dataclasses import dataclass, fields

from zephon.errors import PlanError


@dataclass(frozen=True, kw_only=True)
class OpTraits:
    """Promises of an operator; ``BaseOp.traits`` returns them.

    indexable: said for the public interface; it changes nothing here.
    preserves_cursor_order: records leave in the order in which they came. False: it reorders,
        buffers or packs.
    calibration_replayable: the same records may be run through it for calibration.
    parallelism: threads that may call it at once.
    batch_shape_sensitive: what leaves depends on which records come together. Groups depend on
        nothing but the stream here, so that is safe.
    requires_serial_state: the operator itself remembers something between calls, so it sees its
        lane in order.

    Raises:
        PlanError: a promise is neither True nor False, or ``parallelism`` is no integer of at
            least 1.
    """

    indexable: bool = True
    preserves_cursor_order: bool
    calibration_replayable: bool = False
    parallelism: int = 1
    batch_shape_sensitive: bool = False
    requires_serial_state: bool = False

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "parallelism":
                if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                    raise PlanError(
                        f"OpTraits: parallelism must be an integer of at least 1, got {value!r}"
                    )
            elif not isinstance(value, bool):
                raise PlanError(
                    f"OpTraits: {each.name} must be True or False, got {value!r}; pass one"
                )
