"""What the engine says of a custom source: in words for people, in values for checkpoints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from zephon.errors import PlanError
from zephon.qualified_names import qualified_name
from zephon.work.chunks.vocabulary import Vocabulary
from zephon.work.words import cut_short

if TYPE_CHECKING:
    from zephon.work.source import WorkSource


def describe_source(words: Vocabulary, *, keeps_state: bool) -> tuple[str, ...]:
    """Give the lines that ``explain`` prints of a custom source."""
    size = "any number" if words.chunk_size is None else f"about {words.chunk_size:,}"
    return (
        f"order, weights and ends are decided by {words.owner}, in chunks of {size} samples",
        f"components: {', '.join(cut_short(words.places, len(words.places)))}",
        "a checkpoint holds the source's own state, as of a chunk's edge"
        if keeps_state
        else "a restored lane draws all chunks before it again: the source has no state_dict and "
        "load_state_dict of its own",
    )


def recipe_of_source(source: WorkSource, name: str | None = None) -> dict[str, Any]:
    """Give what a checkpoint knows of a source, as JSON values; see ``WorkSource``.

    Args:
        source: of the run.
        name: its class's, if that was told in another process; a custom source goes by it.

    Raises:
        PlanError: a custom source says of itself what JSON does not have.
    """
    if source.decided_by is None:
        return source.recipe()  # a mixture of ours, which says all there is to say
    words = Vocabulary.of(source)
    fingerprint = getattr(source, "fingerprint", None)
    own = {
        "recipe": source.recipe() or None,
        "fingerprint": fingerprint() if callable(fingerprint) else fingerprint,
    }
    for member, said in own.items():
        try:
            json.dumps(said)
        except (TypeError, ValueError) as exc:
            raise PlanError(
                f"{words.owner}.{member} must be JSON values, which a checkpoint can hold: {exc}"
            ) from exc
    return {
        "source": qualified_name(type(source)) if name is None else name,
        "components": [list(pair) for pair in zip(words.places, words.ids, strict=True)],
        "datasets": [[number, dataset.name] for number, dataset in words.datasets.items()],
        "continues_after_exhaustion": sorted(words.continues),
        "chunk_size_hint": words.chunk_size,
        **{member: said for member, said in own.items() if said is not None},
    }
