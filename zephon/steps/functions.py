"""Calls that run Python on whole rows: functions of the user, and what Zephon has ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from zephon.errors import PlanError
from zephon.planner import logical
from zephon.planner.logical.node import at_least
from zephon.planner.logical.pack import Pack
from zephon.steps.description import (
    Description,
    check_fingerprint,
    check_function,
    check_placement,
    whole,
)


class FunctionSteps(Description):
    """Steps that see rows as Python values, one by one."""

    def map_transform(
        self,
        fn: Callable[[Any], Any],
        *,
        drop_none: bool = True,
        fingerprint: str | None = None,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Replace each row by what a function makes of it.

        The function must depend on its row alone: it is called on any worker, in any order, and
        again for rows that are held when a checkpoint is restored. Its row is a copy, its own to
        change. After packing it gets packed rows.

        Args:
            fn: takes a row, a dict as a rule; returns a row.
            drop_none: a row for which it returns None is dropped, and ``accounting`` counts it; if
                False, the row goes on as it was.
            fingerprint: what a checkpoint knows the function by, instead of its name, source and
                what it closes over.
            placement: "auto" or "local".
            parallelism: workers that may be inside the function at once, 4 if not given.

        Raises:
            TypeError: ``fn`` cannot be called, or gives a coroutine or generator.
            PlanError: batches are there already: use ``map_batch``.
        """
        check_placement("map_transform", placement)
        check_function("map_transform", fn)
        check_fingerprint("map_transform", fingerprint)
        if self._has(logical.Batch):
            raise PlanError(
                "map_transform: it cannot come after batch, where a function gets whole batches; "
                "use map_batch, or call map_transform before batch"
            )
        function = logical.RowFunction(
            function=fn, drop_none=_flag("map_transform", drop_none), fingerprint=fingerprint
        )
        return self._add(
            logical.MapTransform(
                input=self._node,
                functions=(function,),
                parallelism=4 if parallelism is None else whole(parallelism),
            )
        )

    def map_batch(
        self,
        fn: Callable[[Any], Any],
        *,
        drop_none: bool = True,
        fingerprint: str | None = None,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Replace each delivered batch by what a function makes of it.

        It is called on the caller's thread, in the order of delivery, once a delivered batch.

        Args:
            fn: takes a ``SampleBatch``; returns one.
            drop_none: a batch for which it returns None is not delivered; if False, it goes on as
                it was.
            fingerprint: as for ``map_transform``.
            placement: "auto" or "local".
            parallelism: accepted; batches are made on one thread.

        Raises:
            TypeError: ``fn`` cannot be called, or gives a coroutine or generator.
            PlanError: there are no batches yet.
        """
        check_placement("map_batch", placement)
        check_function("map_batch", fn)
        check_fingerprint("map_batch", fingerprint)
        if not self._has(logical.Batch):
            raise PlanError(
                "map_batch: it must come after batch, which makes the batches; call batch first, "
                "or use map_transform for rows"
            )
        self._refuse_after("map_batch", logical.Take)
        return self._add(
            logical.MapBatch(
                input=self._node,
                function=fn,
                drop_none=_flag("map_batch", drop_none),
                fingerprint=fingerprint,
                parallelism=1 if parallelism is None else whole(parallelism),
            )
        )

    def decode_text(
        self,
        parallelism: int | None = None,
        fields: str | Sequence[str] = ("text",),
        encoding: str = "utf-8",
        errors: str = "strict",
        normalize_newlines: bool = True,
        lowercase: bool = False,
        max_batch: int = 128,
        max_latency_ms: float = 2,
        *,
        placement: str = "auto",
    ) -> Self:
        """Turn bytes into text in some fields, and anything else into its text.

        Args:
            parallelism: workers that may do it at once, 2 if not given.
            fields: their names; a row without one stays as it is.
            encoding: of the bytes.
            errors: what bytes that are no text become: "strict" makes the row a bad one.
            normalize_newlines: make every line end a line feed.
            lowercase: make letters small.
            max_batch: accepted, without effect.
            max_latency_ms: accepted, without effect.
            placement: "auto" or "local".

        Raises:
            PlanError: an argument cannot be, or rows are packed already.
        """
        check_placement("decode_text", placement)
        self._refuse_after("decode_text", Pack, logical.Batch)
        at_least("decode_text", "max_batch", whole(max_batch), 1)
        names = _names("decode_text", fields)
        _check_encoding(encoding)
        return self._add(
            logical.DecodeText(
                input=self._node,
                text_fields=names,
                encoding=encoding,
                errors=errors,
                normalize_newlines=normalize_newlines,
                lowercase=lowercase,
                parallelism=2 if parallelism is None else whole(parallelism),
            )
        )

    def materialize(self, *, placement: str = "auto", parallelism: int | None = None) -> Self:
        """Do nothing to rows; no rule of the optimizer moves or joins steps across this one."""
        check_placement("materialize", placement)
        return self._add(
            logical.Materialize(
                input=self._node, parallelism=1 if parallelism is None else whole(parallelism)
            )
        )


def _flag(call: str, drop_none: object) -> bool:
    if not isinstance(drop_none, bool):
        raise PlanError(f"{call}: drop_none must be True or False, got {drop_none!r}; pass one")
    return drop_none


def _names(call: str, fields: object) -> tuple[str, ...]:
    given = (fields,) if isinstance(fields, str) else fields
    names = tuple(given) if isinstance(given, Iterable) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise PlanError(
            f"{call}: fields must be names of fields, got {fields!r:.80}; pass one, or a list"
        )
    return names


def _check_encoding(encoding: object) -> None:
    try:
        b"a".decode(encoding)  # pyright: ignore[reportArgumentType]
    except UnicodeDecodeError:
        return  # of wide units: it is known
    except (LookupError, TypeError, ValueError):  # also of what turns no bytes into text, as "hex"
        raise PlanError(
            "decode_text: encoding must be one by which Python turns bytes into text, got "
            f"{encoding!r:.80}; use 'utf-8' or 'latin-1'"
        ) from None
