"""Which token goes to the hub, and where it came from: only the latter is ever told."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from zephon.errors import MissingExtraError

_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


@dataclass(frozen=True, slots=True)
class Login:
    """A token, and its source in words."""

    token: str | None = field(repr=False)
    source: str


def find_login(token: str | bool | None, needed_by: str) -> Login:
    """Say which token to send: the one that was passed, or else what the library finds.

    Args:
        token: itself; False sends none; None and True look for one.
        needed_by: what needs it, for messages.
    """
    hub = hub_library(needed_by)
    if token is False:
        return Login(None, "no token, as was asked")
    if isinstance(token, str):
        return Login(token, "the token that was passed")
    if hub.constants.HF_HUB_DISABLE_IMPLICIT_TOKEN and token is None:
        return Login(None, "no token, as HF_HUB_DISABLE_IMPLICIT_TOKEN says")
    found = hub.get_token()
    if found is None:
        return Login(None, "no token: HF_TOKEN is not set, and nobody has logged in")
    for name in _VARIABLES:
        if (os.environ.get(name) or "").strip() == found:
            return Login(found, f"the token of {name}")
    return Login(found, "the token of the stored login")


def hub_library(needed_by: str) -> Any:
    """Give the library, which reads HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE.

    Raises:
        MissingExtraError: it is not installed.
    """
    # Imported late: an extra that only the hub needs, and slow to load.
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.utils
    except ImportError:
        raise MissingExtraError(
            f"{needed_by} needs huggingface_hub, which is not installed; pip install 'zephon[hf]'"
        ) from None
    return huggingface_hub
