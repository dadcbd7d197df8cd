"""What becomes of a bad row, and of a null where text is wanted: one policy a dataset."""

from __future__ import annotations

from dataclasses import dataclass

from zephon.errors import DatasetError, nearest

_ON_ERROR = ("raise", "skip", "quarantine")
_NULL_TEXT = ("error", "drop", "empty")

ANOTHER_POLICY = "pass on_error='skip' or 'quarantine' to its dataset"
"""What else than mending can be done about a bad row that ends a run."""


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """What a dataset does about rows that are bad.

    on_error: "raise" ends the run at the row, "skip" leaves it out, "quarantine" leaves it out and
    writes it down. null_text: whether a null, or no field, where text is tokenized is such a row
    ("error"), is left out and counted by itself ("drop"), or stands for "" ("empty").
    """

    on_error: str = "raise"
    null_text: str = "error"

    @classmethod
    def checked(cls, dataset: str, on_error: object, null_text: object) -> RowPolicy:
        """Take the arguments of a call.

        Raises:
            DatasetError: a word is unknown; names the nearest that is known.
        """
        words = {"on_error": (on_error, _ON_ERROR), "null_text": (null_text, _NULL_TEXT)}
        for name, (word, known) in words.items():
            if not isinstance(word, str) or word not in known:
                raise DatasetError(
                    f"dataset {dataset!r}: {name} must be one of {', '.join(map(repr, known))}, "
                    f"got {word!r}; {nearest(str(word), known)}"
                )
        return cls(str(on_error), str(null_text))

    @property
    def loses_rows(self) -> bool:
        """Whether a row that is drawn may give no document, without ending the run."""
        return self.on_error != "raise" or self.null_text == "drop"


RAISES = RowPolicy()
"""That of a dataset of which nothing was said."""
