"""What an engine is told besides its parts: what the run is, and its sizes and switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from zephon.column_steps import polars_release
from zephon.exec.lasting import Lasting


@dataclass(frozen=True)  # without slots, for what is found once
class Identity:
    """What a run is: everything that decides its rows, and what encodes its text.

    recipe: JSON values. backends: back end and version of each tokenizer. edits: of the run until
    now, oldest first, as JSON values. manifest: tells what the data holds, by dataset; called when
    the first state is taken, since it may look at files.
    """

    recipe: Mapping[str, Any]
    backends: Sequence[Mapping[str, str]]
    edits: Sequence[Mapping[str, Any]] = ()
    manifest: Callable[[], dict[str, Any]] = dict

    @cached_property
    def polars(self) -> dict[str, str]:
        """The release of Polars that wrote the recipe's expressions; nothing where it has none."""
        written = any("steps" in step for step in self.recipe["steps"])
        return {"polars": polars_release()} if written else {}

    @cached_property
    def lasting(self) -> Mapping[str, Lasting]:
        """What every state of the run says, by its name there."""
        return {
            "recipe": Lasting(dict(self.recipe)),
            "edits": Lasting([dict(each) for each in self.edits]),
            "manifest": Lasting(self.manifest()),
            "tokenizer_backends": Lasting([dict(each) for each in self.backends]),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the engine is told besides its parts.

    microbatch_size: rows of one item. max_length: tokens of each row; None: rows differ. longest:
    what a document may measure to be packed, in tokens or whatever counts; None: anything.
    drop_last: without a global batch, drop a lane's short last batch. gather_apart: gather each
    row by itself and copy it into the batch afterwards. has_tokens: rows have a token field.
    keeps_rows: one row a draw, so lengths of lanes tell rows. queue: items ready ahead of the
    caller, 0 for none. budget: bytes of rows in flight. rows: of all datasets. row_bytes,
    group_bytes: mean bytes of a row and of a row group. component_bytes: mean bytes of a row of
    each component. limit: rows that the run delivers at most, over all ranks. ahead: draws of a
    lane that can be needed for these; None: nobody knows.
    """

    microbatch_size: int
    max_length: int | None
    longest: int | None
    drop_last: bool
    gather_apart: bool
    has_tokens: bool
    keeps_rows: bool
    queue: int
    budget: int
    rows: int
    row_bytes: float
    group_bytes: float
    component_bytes: tuple[float, ...]
    limit: int | None = None
    ahead: int | None = None
