"""Render conversations, encode them, and mask the tokens that are learned.

Rendering is Python, a conversation at a time; everything after it runs on whole columns. A row's
tokens depend on its own conversation alone.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zephon.errors import TokenizerError
from zephon.exec.bad_row import BadRow
from zephon.exec.block import DROPPED
from zephon.exec.chat.conversation import ConversationFields
from zephon.exec.chat.marking import Marker
from zephon.exec.chat.masks import token_weights
from zephon.exec.chat.spans import Span
from zephon.exec.morsel import TOKENS, Morsel
from zephon.exec.operator import Operator, RowError
from zephon.exec.operators.whole_rows import each_row
from zephon.exec.tokenizers import Encoded, Tokenizer
from zephon.exec.tokenizers.encoder import offsets_of
from zephon.io.fields import TEXT
from zephon.planner.logical import TokenizeChat

INPUT_IDS = "input_ids"
_LEAST = 2  # tokens of a row: one to see and one to learn


class TokenizeChatOp(Operator):
    """Replaces the columns by ``input_ids`` and the mask; drops rows of which nothing is learned.

    Args:
        node: what was called.
        tokenizer: loaded.
        padded: which components' rows have keys only because other rows have them, shape
            [components].

    Raises:
        TokenizerError: a token that must stand at an end is not there.
    """

    label = "tokenize_chat"

    def __init__(self, node: TokenizeChat, tokenizer: Tokenizer, padded: NDArray[np.bool_]) -> None:
        self._node = node
        self._tokenizer = tokenizer
        self._padded = padded & (node.null_fields == "drop")
        self._ends = _Ends.of(node, tokenizer)
        self._marker = Marker.of(node, end=self._ends.text, ends=tokenizer.special_texts)
        self._fields = ConversationFields(
            node.field, node.tools_field, node.enable_thinking_field, node.loss_weights
        )
        texts = map(re.escape, tokenizer.special_texts)
        self._special = re.compile("|".join(texts) or "(?!)")
        # Of many workers one takes a lock, and it is never given back: that one warns.
        self._said: dict[str, threading.Lock] = {w: threading.Lock() for w in _WARNINGS}

    def run(self, rows: Morsel) -> Morsel:
        """Return rows of tokens; raises what the first bad conversation raises."""
        texts, spans, weights = self._rendered(rows)
        column = pa.array(texts, TEXT)
        encoded = self._tokenizer.encode(column, rows.refs.ordinal, expects_specials=True)
        counts = token_weights(texts, column, encoded, spans, weights, self._tokenizer.places())
        self._warn_of_bos(encoded)
        made, counts = self._ends.put(encoded, counts, texts, self._node.max_length)
        lengths = np.diff(made.offsets)
        learned = np.add.reduceat(np.append(counts > 0, False), made.offsets[:-1], dtype=np.int64)
        learned[lengths == 0] = 0
        kept = np.flatnonzero((learned > 0) & (lengths >= _LEAST))
        first = kept[counts[made.offsets[kept]] > 0]
        if len(first):
            raise RowError(
                int(first[0]),
                "the first token of a conversation is learned, which nothing comes before",
                "begin it with a system or user message, or with a BOS token",
            )
        payload = rows.payload
        if payload is not None and not self._node.preserve_upstream_payload:
            payload = payload.metas_only() if payload.has_metas else None
        columns = self._columns(made, counts)
        left = Morsel(rows.refs, columns, payload, rows.measures, rows.frame, rows.lost)
        if len(kept) < len(lengths):
            self._warn("nothing learned")
        return left.keep(kept, DROPPED)

    def _rendered(
        self, rows: Morsel
    ) -> tuple[list[str], list[Sequence[Span]], list[Sequence[float]]]:
        texts: list[str] = []
        spans: list[Sequence[Span]] = []
        weights: list[Sequence[float]] = []
        padded = self._padded[rows.refs.component].tolist()
        row = 0
        try:
            for row, whole in enumerate(each_row(rows, (), (), "list")):
                conversation, left_out = self._fields.of(whole, padded=padded[row])
                if left_out:
                    self._warn("null keys")
                self._warn_of_specials(conversation.messages)
                text, found = self._marker.marked(conversation)
                text.encode()  # a lone surrogate of a JSON text is no text that can be encoded
                texts.append(text)
                spans.append(found)
                asked = conversation.weights
                weights.append([asked[s.message] if asked else 1.0 for s in found])
        except BadRow as exc:
            raise RowError(row, exc.problem, exc.way_out, kind=exc.kind) from None
        except UnicodeEncodeError as exc:
            problem = f"the text holds half a character, {exc.object[exc.start]!r}"
            raise RowError(row, problem, "mend the row") from None
        return texts, spans, weights

    def _columns(self, made: Encoded, counts: NDArray[np.float32]) -> pa.RecordBatch:
        offsets = pa.array(made.offsets)
        mask = counts if self._node.loss_weights else (counts > 0).view(np.uint8)
        arrays = [
            pa.LargeListArray.from_arrays(offsets, pa.array(made.values), type=TOKENS),
            pa.LargeListArray.from_arrays(offsets, pa.array(mask)),
        ]
        names = [INPUT_IDS, self._node.mask_field_out]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _warn_of_specials(self, messages: Sequence[Any]) -> None:
        """Warn of text that will be read as a special token; once said, it is not looked for."""
        if self._said["special token"].locked():
            return
        for message in messages:
            content = message.get("content")
            if isinstance(content, str) and (there := self._special.search(content)) is not None:
                excerpt = content[max(0, there.start() - 24) : there.end() + 24]
                self._warn("special token", f"{there.group()!r}, as in {excerpt!r}")
                return

    def _warn_of_bos(self, encoded: Encoded) -> None:
        bos = self._tokenizer.bos_token_id
        firsts = encoded.offsets[:-1][np.diff(encoded.offsets) > 1]
        values = encoded.values
        if bos is not None and ((values[firsts] == bos) & (values[firsts + 1] == bos)).any():
            self._warn("two bos")

    def _warn(self, what: str, found: str = "") -> None:
        if self._said[what].acquire(blocking=False):
            text = _WARNINGS[what].format(found)
            warnings.warn(f"tokenize_chat: {text}; this is said once", stacklevel=2)


_WARNINGS = {
    "nothing learned": "of some conversation no token is learned, or it has fewer than two; such "
    "rows are dropped, and counted as dropped",
    "null keys": "keys of messages or tools are null in a Parquet dataset, where all rows have the "
    "keys of all others, and are left out; pass null_fields='keep' to show them to the template",
    "special token": "the text of a message holds the special token {}, and whoever wrote it can "
    "forge the end of a turn; it becomes that token, as with transformers",
    "two bos": "a conversation begins with two BOS tokens: its data hold one, and the template "
    "writes one",
}


class _Ends:
    """What must stand at the ends of a row, once.

    bos, eos: ids; None: nothing is put there. text: of the token that ends an answer.
    """

    def __init__(self, bos: int | None, eos: int | None, text: str) -> None:
        self._bos = bos
        self._eos = eos
        self.text = text

    @classmethod
    def of(cls, node: TokenizeChat, tokenizer: Tokenizer) -> _Ends:
        """Find the ids.

        Raises:
            TokenizerError: the tokenizer has no such token.
        """
        bos, eos = node.bos_token_id, node.eos_token_id
        if eos is None:
            eos = tokenizer.eos_token_id
            if node.eos_token is not None:
                eos = tokenizer.token_id(node.eos_token)
                if eos is None:
                    raise TokenizerError(
                        f"tokenize_chat: eos_token={node.eos_token!r} is no special token of "
                        f"tokenizer {tokenizer.name!r}; pass one that it has, or eos_token_id"
                    )
        if eos is None and not node.templates:
            raise TokenizerError(
                f"tokenize_chat: without a template EOS ends an answer, and tokenizer "
                f"{tokenizer.name!r} has none; pass eos_token or eos_token_id"
            )
        bos = tokenizer.bos_token_id if bos is None else bos
        wanted = {"bos": bos, "eos": eos}
        for role, token_id in wanted.items():
            if role not in node.special_tokens:
                wanted[role] = None
            elif token_id is None and (role == "bos" or node.special_tokens != "eos"):
                raise TokenizerError(
                    f"tokenize_chat: special_tokens={node.special_tokens!r} needs a "
                    f"{role.upper()} id, and tokenizer {tokenizer.name!r} has none; pass "
                    f"{role}_token_id, or other special_tokens"
                )
        text = "" if eos is None else tokenizer.token_text(eos)
        return cls(wanted["bos"], wanted["eos"], text)

    def put(
        self,
        encoded: Encoded,
        counts: NDArray[np.float32],
        texts: Sequence[str],
        max_length: int | None,
    ) -> tuple[Encoded, NDArray[np.float32]]:
        """Cut documents to ``max_length``, with BOS before and, where there is room, EOS behind.

        A document that begins or ends with it already gets none. EOS counts as much as the token
        before it.
        """
        values, offsets = encoded.values, encoded.offsets
        lengths = np.diff(offsets)
        filled = lengths > 0
        begins = np.zeros(len(lengths), bool)
        if self._bos is not None:
            begins[~filled] = True
            begins[filled] = values[offsets[:-1][filled]] != self._bos
        room = np.iinfo(np.int64).max if max_length is None else max_length
        kept = np.minimum(lengths, room - begins)
        ends = np.zeros(len(lengths), bool)
        if self._eos is not None:
            last = offsets[:-1] + kept - 1
            ends = (kept > 0) & (kept + begins < room) & (kept == lengths)
            ends[ends] = values[last[ends]] != self._eos
            for row in np.flatnonzero(ends).tolist():
                # White space that a template writes behind the token does not make it less an end.
                ends[row] = not (self.text and texts[row].rstrip().endswith(self.text))
        if not begins.any() and not ends.any() and (kept == lengths).all():
            return encoded, counts
        made = offsets_of(kept + begins + ends)
        source = np.arange(int(kept.sum())) + np.repeat(
            offsets[:-1] - (np.cumsum(kept) - kept), kept
        )
        target = np.arange(len(source)) + np.repeat(
            made[:-1] + begins - (np.cumsum(kept) - kept), kept
        )
        ids = np.empty(int(made[-1]), np.int32)
        weights = np.zeros(len(ids), np.float32)
        ids[target], weights[target] = values[source], counts[source]
        if self._bos is not None:
            ids[made[:-1][begins]] = self._bos
        if self._eos is not None:
            at = made[1:][ends] - 1
            ids[at], weights[at] = self._eos, weights[at - 1]
        return Encoded(ids, made), weights
