"""What arrays come from and leave as: lists, NumPy arrays or torch tensors.

The only module that loads torch for batches, and only when somebody asks for a tensor. Values
are never changed silently: a number that a wanted type cannot hold exactly is found before it is
cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zephon.errors import MissingExtraError, PlanError

_EXACT = 2**53  # up to here a float64 holds every whole number


@dataclass(frozen=True, slots=True)
class Target:
    """What the arrays of one answer become.

    name: the type in words, for messages.
    array: the NumPy type that token fields are computed in.
    narrows: the type is narrower than ``array``: NumPy has no counterpart of it.
    tensor: the torch type that token fields leave in; None: no tensors.
    lists: True when everything leaves as nested lists.
    low, high: every whole number from low to high is exact in the type.
    largest: the largest finite value of the type.
    whole: the type holds whole numbers only.
    """

    name: str
    array: np.dtype[Any]
    narrows: bool
    tensor: Any
    lists: bool
    low: int
    high: int
    largest: float
    whole: bool


def target_of(dtype: Any) -> Target:
    """Read the ``dtype`` argument of ``to_training``.

    Args:
        dtype: "auto" (torch.long where torch is installed, else int64 arrays), a torch or NumPy
            type, or None for nested lists.

    Raises:
        PlanError: it is none of these, or no type of numbers.
    """
    try:
        return _target_of(dtype)
    except TypeError:
        raise PlanError(
            "to_training: dtype must be 'auto', a torch or NumPy type of numbers, or None for "
            f"lists, got {dtype!r}; leave dtype out for int64"
        ) from None


@lru_cache(maxsize=64)
def _target_of(dtype: Any) -> Target:
    if dtype is None:
        return _numpy_target(np.dtype(np.int64), lists=True)
    if isinstance(dtype, str) and dtype == "auto":
        torch = installed_torch()
        return _numpy_target(np.dtype(np.int64)) if torch is None else _torch_target(torch.long)
    if type(dtype).__module__ == "torch":
        return _torch_target(dtype)
    return _numpy_target(np.dtype(dtype))


def _numpy_target(dtype: np.dtype[Any], *, lists: bool = False) -> Target:
    floating = dtype.kind == "f"
    low, high = _exact_range(dtype.kind in "iu", floating, np, dtype)
    largest = float(np.finfo(dtype).max) if floating else float(high)
    return Target(str(dtype), dtype, False, None, lists, low, high, largest, whole=not floating)


def _torch_target(dtype: Any) -> Target:
    torch = torch_or_refuse()
    floating = dtype.is_floating_point
    whole = not (floating or dtype.is_complex or dtype == torch.bool)
    plain = str(dtype).removeprefix("torch.")
    narrows = not hasattr(np, plain)  # bfloat16 and the like: float32 until the very end
    if whole and narrows:
        raise TypeError(dtype)  # quantized, or whole numbers of a few bits
    low, high = _exact_range(whole, floating, torch, dtype)
    largest = float(torch.finfo(dtype).max) if floating else float(high)
    array = np.dtype(np.float32 if narrows else plain)
    return Target(str(dtype), array, narrows, dtype, False, low, high, largest, whole)


def _exact_range(whole: bool, floating: bool, library: Any, dtype: Any) -> tuple[int, int]:
    if whole:
        limits = library.iinfo(dtype)
        return int(limits.min), int(limits.max)
    if not floating:
        raise TypeError(dtype)
    high = int(2 / float(library.finfo(dtype).eps))
    return -high, high


def misfit(values: NDArray[Any], target: Target) -> Any:
    """Find a value that the target type would change; None when every value survives.

    A fraction that a narrower float rounds counts as kept; one that becomes infinite does not.
    """
    if not values.size or (target.whole and np.can_cast(values.dtype, target.array)):
        return None
    if values.dtype.kind != "f":
        return _outside(values, target.low, target.high)
    # In float64 at least: a float32 or a float16 next to a bound would round to the bound.
    wide = values.astype(np.result_type(values.dtype, np.float64), copy=False)
    if target.whole:  # high + 1 is a power of two, and exact where high itself is not
        bad = ~((wide >= float(target.low)) & (wide < float(target.high + 1)))
        bad |= np.trunc(wide) != wide
    else:
        bad = np.isfinite(wide) & (np.abs(wide) > target.largest)
    return values[bad][0] if bad.any() else None


def _outside(values: NDArray[Any], low: int, high: int) -> Any:
    least, most = values.min(), values.max()
    return least if least < low else most if most > high else None


def common_type(arrays: Sequence[NDArray[Any]]) -> np.dtype[Any]:
    """Give the type that holds the values of all arrays, if one does; empty ones do not count.

    Signed and unsigned whole numbers of 64 bits meet in int64; whole numbers and fractions in a
    float. ``changed_by`` says whether an array's values survive that.
    """
    types = {array.dtype for array in arrays if array.size} or {arrays[0].dtype}
    if len(types) == 1:
        return types.pop()
    common = np.result_type(*types)
    whole = all(dtype.kind in "biu" for dtype in types)
    return np.dtype(np.int64) if whole and common.kind == "f" else common


def changed_by(values: NDArray[Any], dtype: np.dtype[Any]) -> Any:
    """Find a value that a cast to a type of ``common_type`` would change; None if all survive."""
    if values.dtype == dtype or values.dtype.kind not in "iu" or not values.size:
        return None
    return _outside(values, *_exact_range(dtype.kind in "iu", dtype.kind == "f", np, dtype))


def typed(values: NDArray[Any], target: Target) -> Any:
    """Hand a token-like array over in the target type; a tensor shares the array's memory."""
    handed = untyped(values, target)
    return handed if target.tensor is None else handed.to(target.tensor)


def untyped(values: NDArray[Any], target: Target) -> Any:
    """Hand an array over in its own type: list, array, or a tensor that shares its memory."""
    if target.lists:
        return values.tolist()
    return values if target.tensor is None else torch_or_refuse().from_numpy(values)


def as_container(values: NDArray[Any], container: str) -> Any:
    """Copy an array into what a record's payload holds: "list", "tuple", "np" or "pt"."""
    match container:
        case "list":
            return values.tolist()
        case "tuple":
            return tuple(values.tolist())
        case "np":
            return values.copy()
        case "pt":
            return torch_or_refuse().from_numpy(values.copy())
        case _:
            raise PlanError(f"records: container must be list, tuple, np or pt, got {container!r}")


def joined(values: Sequence[Any], container: str) -> Any:
    """Lay arrays end to end along their first axis: "np" arrays or "pt" tensors. Copies.

    Raises:
        TypeError: a value is of another type; the message names that type.
        ValueError: their shapes or types do not go together, or one type does not hold all values.
    """
    kind = np.ndarray if container == "np" else torch_or_refuse().Tensor
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(type(value).__name__)
    if container == "np":
        common = common_type(values)
        for value in values:
            _check_kept(changed_by(value, common) if common.kind in "biuf" else None, common)
        return np.concatenate(values, dtype=common, casting="unsafe")
    try:
        made = torch_or_refuse().cat(tuple(values))
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    if made.is_floating_point():
        _, high = _exact_range(False, True, torch_or_refuse(), made.dtype)
        for value in values:
            if value.numel() and not value.is_floating_point() and not value.is_complex():
                _check_kept(_outside(value.cpu().numpy(), -high, high), made.dtype)
    return made


def _check_kept(changed: Any, dtype: object) -> None:
    if changed is not None:
        raise ValueError(f"{changed}, which {dtype} cannot hold exactly,")


def is_array(value: Any) -> bool:
    """Tell arrays and tensors from everything else a payload may hold."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def numbers(value: Any) -> NDArray[Any] | None:
    """View or copy a payload value as a NumPy array; None if it does not hold plain numbers.

    Whole numbers stay exact: a list of them is int64 or uint64, and None if neither holds all, or
    if fractions among them make floats of numbers that are too large for that.
    """
    try:
        array = np.asarray(_without_torch(value))
    except (ValueError, TypeError, OverflowError):
        return None  # nested lists of unequal length, or objects that refuse
    if is_array(value):
        return array if array.dtype.kind in "biuf" else None
    if not array.size:
        return array.astype(np.int64)  # an empty list has no type of its own
    if array.dtype.kind == "f" and (np.abs(array) >= _EXACT).any():
        return _exact(np.asarray(value, dtype=object), array)
    return array if array.dtype.kind in "biuf" else None


def _exact(items: NDArray[Any], array: NDArray[Any]) -> NDArray[Any] | None:
    """Read a list again that became floats though it holds large numbers."""
    flat = items.reshape(-1).tolist()
    if items.shape != array.shape:
        return None
    if all(isinstance(item, (int, np.integer)) for item in flat):
        low, high = min(map(int, flat)), max(map(int, flat))
        whole = np.int64 if high < 2**63 else np.uint64
        return items.astype(whole) if np.iinfo(whole).min <= low else None
    changed = any(isinstance(item, (int, np.integer)) and abs(int(item)) > _EXACT for item in flat)
    return None if changed else array


def _without_torch(value: Any) -> Any:
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:  # bfloat16 and the like, which NumPy does not have
        return tensor.float().numpy()


@cache
def installed_torch() -> Any:
    """Give torch; None: it is not installed."""
    # Imported late: torch is optional, and takes a second that a plan without tensors never needs.
    try:
        import torch
    except ImportError:
        return None
    return torch


def torch_or_refuse() -> Any:
    """Give torch.

    Raises:
        MissingExtraError: it is not installed.
    """
    torch = installed_torch()
    if torch is None:
        raise MissingExtraError(
            "tensors: torch is needed and is not installed; pip install 'zephon[torch]'"
        )
    return torch
