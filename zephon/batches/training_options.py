"""The arguments of ``to_training``, checked before any row is looked at."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zephon.errors import PlanError, nearest
from zephon.tensors import Target, target_of

ALWAYS_GENERATED = (
    *("ids", "texts", "input_ids", "labels", "positions"),
    *("padding_mask", "num_valid_tokens", "cu_seqlens", "max_seqlen"),
)
_NEED_LABELS = ("return_num_valid_tokens", "return_loss_mask", "eos_mask_loss")
_POSITION_MODES = ("preserve", "sequence")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What one call of ``to_training`` asks for; the fields are the call's arguments.

    target: what the ``dtype`` argument means.
    """

    tokens_field: str
    return_labels: bool
    target: Target
    extra_fields: tuple[str, ...]
    ignore_index: int
    rename_fields: Mapping[str, str]
    flatten: bool
    exclude_fields: tuple[str, ...]
    return_num_valid_tokens: bool
    return_loss_mask: bool
    return_cu_seqlens: bool
    return_padding_mask: bool
    eos_mask_loss: bool
    eos_token_id: int | None
    position_mode: str

    def __post_init__(self) -> None:
        if not isinstance(self.tokens_field, str):
            raise PlanError(
                "to_training: tokens_field must be 'auto' or the name of a field, got "
                f"{self.tokens_field!r}"
            )
        if self.position_mode not in _POSITION_MODES:
            known = nearest(str(self.position_mode), _POSITION_MODES)
            raise PlanError(
                "to_training: position_mode must be 'preserve' or 'sequence', got "
                f"{self.position_mode!r}; {known}"
            )
        self._check_extra_fields()
        self._check_labels()
        self._check_eos()

    def _check_extra_fields(self) -> None:
        generated = {*ALWAYS_GENERATED, "loss_mask"} if self.return_labels else ALWAYS_GENERATED
        for name in self.extra_fields:
            if name in generated:
                raise PlanError(
                    f"to_training: extra_fields must name fields of the payload, got {name!r}, "
                    "which to_training makes itself; leave it out"
                )

    def _check_labels(self) -> None:
        if not self.return_labels:
            for name in _NEED_LABELS:
                if getattr(self, name):
                    raise PlanError(
                        f"to_training: {name}=True needs labels, got return_labels=False; "
                        "pass return_labels=True"
                    )
        elif not self.target.low <= self.ignore_index <= self.target.high:
            raise PlanError(
                f"to_training: ignore_index must fit {self.target.name}, got {self.ignore_index}; "
                "pass a wider dtype, or another ignore_index"
            )

    def _check_eos(self) -> None:
        if self.eos_token_id is None:
            if self.eos_mask_loss:
                raise PlanError(
                    "to_training: eos_mask_loss=True needs eos_token_id, got None; pass the "
                    "tokenizer's eos_token_id"
                )
        elif self.eos_token_id < 0:
            raise PlanError(
                f"to_training: eos_token_id must be at least 0, got {self.eos_token_id}; pass the "
                "tokenizer's eos_token_id"
            )


def options_of(arguments: Mapping[str, Any], unknown: Mapping[str, Any]) -> TrainingOptions:
    """Check the arguments of one call.

    Args:
        arguments: by name, all that ``to_training`` documents.
        unknown: by name, whatever else was passed.

    Raises:
        TypeError: a name is unknown, or names were given as one string.
        PlanError: a value is not allowed, or not in this company.
    """
    for name in unknown:
        raise TypeError(f"to_training: no argument {name!r}; {nearest(name, arguments)}")
    checked = dict(arguments)
    checked["target"] = target_of(checked.pop("dtype"))
    for name in ("extra_fields", "exclude_fields"):
        checked[name] = _names(name, checked[name])
    checked["rename_fields"] = _renames(checked["rename_fields"])
    checked["ignore_index"] = _whole("ignore_index", checked["ignore_index"])
    if checked["eos_token_id"] is not None:
        checked["eos_token_id"] = _whole("eos_token_id", checked["eos_token_id"])
    options = TrainingOptions(**checked)
    if options.eos_token_id is not None and not options.eos_mask_loss:
        warnings.warn(
            f"to_training: eos_token_id={options.eos_token_id} does nothing without "
            "eos_mask_loss=True",
            UserWarning,
            stacklevel=3,  # the line that calls to_training
        )
    return options


def _names(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(
            f"to_training: {argument} must be a list or tuple of names, got {names!r}; "
            f"write {argument}=({names!r},)"
        )
    return tuple(names)


def _renames(renames: Mapping[str, str] | None) -> Mapping[str, str]:
    if renames is None:
        return {}
    if not isinstance(renames, Mapping):
        raise TypeError(
            "to_training: rename_fields must be a dict from old names to new ones, got "
            f"{renames!r}; write rename_fields={{'input_ids': 'tokens'}}"
        )
    return renames


def _whole(argument: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise PlanError(f"to_training: {argument} must be an int, got {value!r}")
    return int(value)
