"""Encode a text column into ``input_ids``: brackets, truncation, splitting, padding.

Everything runs on whole columns. A row's tokens depend on its own text alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import ExecutionError, TokenizerError
from zephon.exec.morsel import TOKENS, Morsel
from zephon.exec.operator import Operator
from zephon.exec.operators.splits import split_refs
from zephon.exec.tokenizers import Tokenizer
from zephon.exec.tokenizers.brackets import bracket, cut, pad
from zephon.exec.tokenizers.encoder import Encoded
from zephon.io.made_rows import split_records
from zephon.planner import physical

INPUT_IDS, ATTENTION_MASK = "input_ids", "attention_mask"
_LARGEST_ID = int(np.iinfo(np.int32).max)


class TokenizeColumnOp(Operator):
    """Replaces the columns by ``input_ids``, and by ``attention_mask`` where padding needs one.

    A document that ``split_long_samples`` cuts becomes several rows: children 0, 1, 2, ..., the
    last of them marked. One that fits stays child 0 and last, so it reads as never split. An
    empty document becomes its brackets, or an empty row. Padding goes to the end of a row.
    """

    label = "tokenize"

    def __init__(self, node: physical.TokenizeColumn, tokenizer: Tokenizer) -> None:
        """Find the ids that every row needs.

        Args:
            node: what to do.
            tokenizer: loaded with ``add_special_tokens`` if the node wants the tokenizer's own
                template.

        Raises:
            TokenizerError: an id is missing, or ``max_length`` leaves no room for the template.
        """
        self._node = node
        self._tokenizer = tokenizer
        self._prefix, self._suffix = _brackets(node, tokenizer)
        self._pad_id = _pad_id(node, tokenizer) if node.padding == "max_length" else None
        room = len(self._prefix) + len(self._suffix)
        if node.truncation and node.max_length is not None and node.max_length < room:
            raise TokenizerError(
                f"tokenize: truncation to max_length={node.max_length} leaves no room for the "
                f"{room} special tokens that tokenizer {tokenizer.name!r} adds; raise max_length"
            )

    def run(self, rows: Morsel) -> Morsel:
        """Return the rows as tokens; raises what the first bad document raises."""
        node = self._node
        encoded = self._tokenizer.encode(self._texts(rows), rows.refs.ordinal)
        made = bracket(
            encoded,
            prefix=self._prefix,
            suffix=self._suffix,
            max_length=node.max_length if node.truncation else None,
        )
        refs, payload, measures, frame = rows.refs, rows.payload, rows.measures, rows.frame
        if payload is not None and not node.keep_payload:
            payload = payload.metas_only() if payload.has_metas else None
        if node.split_long_samples and node.max_length is not None:
            cuts = cut(made.offsets, node.max_length)
            made = Encoded(made.values, cuts.offsets)
            if len(cuts.parent) != len(refs):
                refs = split_refs(refs, cuts.parent)
                if payload is not None and payload.has_metas:
                    payload = split_records(payload, cuts.parent, cuts.child, cuts.last)
                elif payload is not None:
                    payload = payload.take(cuts.parent)
                measures = {name: found[cuts.parent] for name, found in measures.items()}
                frame = None if frame is None else frame.take(pa.array(cuts.parent))
        mask: NDArray[np.int32] | None = None
        if self._pad_id is not None and node.max_length is not None:
            made, mask = pad(made, length=node.max_length, pad_id=self._pad_id)
        columns = self._columns(made, mask)
        return Morsel(refs, columns, payload, measures, frame=frame, lost=rows.lost)

    def _texts(self, rows: Morsel) -> pa.LargeStringArray:
        names = rows.columns.schema.names
        if self._node.field not in names:
            raise ExecutionError(
                f"tokenize: no column {self._node.field!r}; the columns are "
                f"{', '.join(names) or 'none'}"
            )
        return rows.columns.column(names.index(self._node.field))

    def _columns(self, made: Encoded, mask: NDArray[np.int32] | None) -> pa.RecordBatch:
        offsets = pa.array(made.offsets)
        columns = {INPUT_IDS: made.values}
        if self._node.keep_mask:
            columns[ATTENTION_MASK] = np.ones_like(made.values) if mask is None else mask
        arrays = [
            pa.LargeListArray.from_arrays(offsets, pa.array(values), type=TOKENS)
            for values in columns.values()
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _brackets(
    node: physical.TokenizeColumn, tokenizer: Tokenizer
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids before and after each document."""
    if node.special_tokens == "tokenizer_default":
        return tokenizer.template.prefix, tokenizer.template.suffix
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    if node.special_tokens in ("bos", "bos_eos"):
        prefix = (_bracket_id("bos", node.bos_token_id, tokenizer.bos_token_id, node, tokenizer),)
    if node.special_tokens in ("eos", "bos_eos"):
        suffix = (_bracket_id("eos", node.eos_token_id, tokenizer.eos_token_id, node, tokenizer),)
    return prefix, suffix


def _bracket_id(
    role: str,
    chosen: int | None,
    own: int | None,
    node: physical.TokenizeColumn,
    tokenizer: Tokenizer,
) -> int:
    token_id = own if chosen is None else chosen
    if token_id is None:
        raise TokenizerError(
            f"tokenize: special_tokens={node.special_tokens!r} needs a {role.upper()} id, and "
            f"tokenizer {tokenizer.name!r} has none; pass {role}_token_id, or other special_tokens"
        )
    if not 0 <= token_id <= _LARGEST_ID:
        raise TokenizerError(
            f"tokenize: {role}_token_id must be from 0 to {_LARGEST_ID}, got {token_id}"
        )
    return token_id


def _pad_id(node: physical.TokenizeColumn, tokenizer: Tokenizer) -> int:
    """Return the id to pad with: the tokenizer's own, or else EOS."""
    for token_id in (tokenizer.pad_token_id, node.eos_token_id, tokenizer.eos_token_id):
        if token_id is not None:
            return token_id
    raise TokenizerError(
        f"tokenize: padding='max_length' needs a pad id, and tokenizer {tokenizer.name!r} names "
        "neither a pad nor an EOS token; pass eos_token_id, or pad later"
    )
