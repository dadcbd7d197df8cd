"""Where tensors go: into pinned memory, and to a device.

A copy to an accelerator runs beside the program only if it is asked not to block and begins in
pinned memory. Torch keeps a pinned buffer until the copies from it are done, so nobody else need
hold on to it; whoever writes into one that is still being copied changes what arrives.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from zephon.errors import PlanError
from zephon.tensors import installed_torch, torch_or_refuse


@cache
def device_of(device: str | int) -> Any:
    """Read the ``device`` argument of ``to_training``.

    Args:
        device: what ``torch.device`` takes.

    Raises:
        PlanError: torch has no such device here.
    """
    torch = torch_or_refuse()
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except Exception as exc:
        why = (str(exc).splitlines() or [type(exc).__name__])[0]
        raise PlanError(
            f"to_training: device must be one that torch can use here, which has "
            f"{_accelerator() or 'no accelerator'}, got {device!r} ({why}); leave device out, or "
            "pass device='cpu'"
        ) from exc
    return found


def placed(
    made: dict[str, Any], *, pin_memory: bool, device: Any, non_blocking: bool
) -> dict[str, Any]:
    """Hand tensors over where they were asked for; all else stays as it is.

    Args:
        made: outputs by name; only read.
        pin_memory: copy what is not pinned into pinned memory, once. Does nothing without an
            accelerator, nor in a worker of a DataLoader, from which no memory comes back pinned.
        device: a torch device; None: where they are. Tensors that are there are not copied.
        non_blocking: do not wait for copies to the device.
    """
    torch = installed_torch()
    pins = pin_memory and can_pin()
    if torch is None or (device is None and not pins):
        return made
    handed = dict(made)
    for name, value in made.items():
        if not isinstance(value, torch.Tensor):
            continue
        if pins and value.device.type == "cpu":
            value = value.pin_memory()
        handed[name] = value if device is None else value.to(device, non_blocking=non_blocking)
    return handed


def can_pin() -> bool:
    """Say whether memory can be pinned for an accelerator, in this process."""
    torch = installed_torch()
    if torch is None or _accelerator() in (None, "mps"):  # torch pins none for the latter
        return False
    return torch.utils.data.get_worker_info() is None


def _accelerator() -> str | None:
    torch = torch_or_refuse()
    if not torch.accelerator.is_available():
        return None
    return torch.accelerator.current_accelerator().type
