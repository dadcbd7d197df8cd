"""The arguments of ``to_training``, checked before any row is looked at."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zephon.devices import device_of
from zephon.errors import PlanError, nearest
from zephon.tensors import Target, target_of

ALWAYS_GENERATED = (
    *("ids", "texts", "input_ids", "labels", "positions"),
    *("padding_mask", "num_valid_tokens", "cu_seqlens", "max_seqlen"),
)
_NEED_LABELS = (
    *("return_num_valid_tokens", "return_loss_mask", "return_loss_weights", "eos_mask_loss"),
    "mask_document_boundaries",
)
_FLAGS = (
    *("return_labels", "flatten", "return_num_valid_tokens", "return_loss_mask"),
    *("return_loss_weights", "return_cu_seqlens", "return_padding_mask", "return_document_ids"),
    *("eos_mask_loss", "mask_document_boundaries", "pin_memory", "non_blocking"),
)
_POSITION_MODES = ("preserve", "sequence")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What one call of ``to_training`` asks for; the fields are the call's arguments.

    target: what the ``dtype`` argument means.
    device: as torch knows it.
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
    return_loss_weights: bool
    return_cu_seqlens: bool
    return_padding_mask: bool
    eos_mask_loss: bool
    eos_token_id: int | None
    position_mode: str
    return_document_ids: bool
    mask_document_boundaries: bool
    pad_to: int | str | None
    pad_token_id: int | None
    collate_fields: Mapping[str, Callable[[list[Any]], Any]]
    pin_memory: bool
    device: Any
    non_blocking: bool

    def __post_init__(self) -> None:
        if not isinstance(self.tokens_field, str):
            raise PlanError(
                "to_training: tokens_field must be 'auto' or the name of a field, got "
                f"{self.tokens_field!r}; pass tokens_field='input_ids', or leave it out"
            )
        if self.position_mode not in _POSITION_MODES:
            known = nearest(str(self.position_mode), _POSITION_MODES)
            raise PlanError(
                "to_training: position_mode must be 'preserve' or 'sequence', got "
                f"{self.position_mode!r}; {known}"
            )
        self._check_fields()
        self._check_labels()
        self._check_eos()
        self._check_padding()
        if self.pin_memory and self.target.tensor is None:
            raise PlanError(_no_tensors("pin_memory=True", self.target))

    def _check_fields(self) -> None:
        generated = {*ALWAYS_GENERATED}
        if self.return_labels:
            generated.add("loss_mask")
        if self.return_loss_weights:
            generated.add("loss_weights")
        if self.return_document_ids:
            generated.add("document_ids")
        for name in self.extra_fields:
            if name in generated:
                raise PlanError(
                    f"to_training: extra_fields must name fields of the payload, got {name!r}, "
                    "which to_training makes itself; leave it out"
                )
        for name in self.collate_fields:
            if name in {*generated, "loss_mask", *self.extra_fields}:
                why = "extra_fields names too" if name in self.extra_fields else "is made already"
                raise PlanError(
                    f"to_training: collate_fields must name fields of the payload, got {name!r}, "
                    f"which {why}; leave it out"
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

    def _check_padding(self) -> None:
        if isinstance(self.pad_to, str):
            if self.pad_to != "longest":
                raise PlanError(
                    f"to_training: pad_to must be 'longest', a number of tokens or None, got "
                    f"{self.pad_to!r}; {nearest(self.pad_to, ['longest'])}"
                )
        elif self.pad_to is not None and self.pad_to < 1:
            raise PlanError(
                f"to_training: pad_to must be at least 1, got {self.pad_to}; pass the length of "
                "the longest row, or 'longest'"
            )
        if self.pad_token_id is None:
            return
        if self.pad_to is None:
            raise PlanError(
                f"to_training: pad_token_id={self.pad_token_id} needs pad_to, got None; pass "
                "pad_to='longest', or the length that rows are padded to"
            )
        if self.pad_token_id < 0:
            raise PlanError(
                f"to_training: pad_token_id must be at least 0, got {self.pad_token_id}; pass the "
                "tokenizer's pad_token_id"
            )
        if self.pad_token_id > self.target.high:
            raise PlanError(
                f"to_training: pad_token_id must fit {self.target.name}, got {self.pad_token_id}; "
                "pass a wider dtype, or another pad_token_id"
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
    given = {**arguments, "dtype": target_of(arguments["dtype"])}
    if not isinstance(given["device"], int | None):
        given["device"] = str(given["device"])  # a device of torch by its name
    key = _key_of(given)
    options = None if key is None else _checked_before.get(key)
    if options is None:
        options = _checked(given)
        if key is not None and len(_checked_before) < _MOST_KEPT:
            _checked_before[key] = options
    if options.eos_token_id is not None and not options.eos_mask_loss:
        warnings.warn(
            f"to_training: eos_token_id={options.eos_token_id} does nothing without "
            "eos_mask_loss=True",
            UserWarning,
            stacklevel=3,  # the line that calls to_training
        )
    return options


_MOST_KEPT = 64
_checked_before: dict[tuple[Any, ...], TrainingOptions] = {}
"""Options by the arguments that they were checked of: a training loop asks the same every time."""


def _key_of(arguments: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Make a key of plain arguments; None where one may change, or holds what must not be kept.

    Values count with their types, so that 1 is not taken for True.
    """
    key: list[Any] = []
    for value in arguments.values():
        if type(value) in _PLAIN:
            key += (type(value), value)
        elif type(value) is tuple and all(type(each) is str for each in value):
            key.append(value)
        elif type(value) is dict and all(type(each) is str for each in value.values()):
            key.append(tuple(value.items()))
        else:
            return None
    try:
        hash(found := tuple(key))
    except TypeError:
        return None
    return found


_PLAIN = (type(None), bool, int, str, Target)


def _checked(arguments: Mapping[str, Any]) -> TrainingOptions:
    checked = dict(arguments)
    checked["target"] = checked.pop("dtype")
    for name in ("extra_fields", "exclude_fields"):
        checked[name] = _names(name, checked[name])
    checked["rename_fields"] = dict(_renames(checked["rename_fields"]))
    checked["collate_fields"] = _functions(checked["collate_fields"])
    for name in _FLAGS:
        checked[name] = _flag(name, checked[name])
    checked["ignore_index"] = _whole("ignore_index", checked["ignore_index"])
    for name in ("eos_token_id", "pad_token_id", "pad_to"):
        if checked[name] is not None and not (name == "pad_to" and isinstance(checked[name], str)):
            checked[name] = _whole(name, checked[name])
    if checked["device"] is not None:
        if checked["target"].tensor is None:
            raise PlanError(_no_tensors(f"device={checked['device']!r}", checked["target"]))
        checked["device"] = device_of(checked["device"])
    return TrainingOptions(**checked)


def _no_tensors(argument: str, target: Target) -> str:
    made = "lists" if target.lists else f"NumPy arrays of {target.name}"
    return (
        f"to_training: {argument} needs tensors, got a dtype that gives {made}; pass a torch "
        f"dtype, or leave {argument.partition('=')[0]} out"
    )


def _names(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(
            f"to_training: {argument} must be a list or tuple of names, got {names!r}; "
            f"write {argument}=({names!r},)"
        )
    listed = tuple(names)
    for name in listed:
        _check_name(argument, name)
    return listed


def _check_name(argument: str, name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(
            f"to_training: {argument} must hold names of fields, got {name!r}; write {str(name)!r}"
        )


def _renames(renames: Mapping[str, str] | None) -> Mapping[str, str]:
    if renames is None:
        return {}
    if not isinstance(renames, Mapping):
        raise TypeError(
            "to_training: rename_fields must be a dict from old names to new ones, got "
            f"{renames!r}; write rename_fields={{'input_ids': 'tokens'}}"
        )
    for pair in renames.items():
        for name in pair:
            _check_name("rename_fields", name)
    return renames


def _functions(functions: Any) -> Mapping[str, Callable[[list[Any]], Any]]:
    if functions is None:
        return {}
    if not isinstance(functions, Mapping):
        raise TypeError(
            "to_training: collate_fields must be a dict from fields to functions of their values, "
            f"got {functions!r}; write collate_fields={{'image': stack_images}}"
        )
    for name, function in functions.items():
        _check_name("collate_fields", name)
        if not callable(function):
            raise TypeError(
                f"to_training: collate_fields[{name!r}] must be a function of the rows' values, "
                f"got {function!r}; pass list to get them as they are"
            )
    return functions


def _flag(argument: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise PlanError(
            f"to_training: {argument} must be True or False, got {value!r}; pass {argument}=True "
            "to have it"
        )
    return bool(value)


def _whole(argument: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise PlanError(
            f"to_training: {argument} must be an int, got {value!r}; pass a whole number"
        )
    return int(value)
