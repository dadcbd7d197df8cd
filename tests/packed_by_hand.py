"""Packed rows put together by hand, as the engine makes them; and what each token of them is."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tests.columns_by_hand import columns_of
from zephon.types import SampleBatch

PAD = 0


@dataclass
class Piece:
    """Tokens of one document in one row.

    start: of the piece in its document. ends: it is the document's last. source: the document's
    row in its dataset. flags: one value a token.
    """

    tokens: list
    start: int = 0
    ends: bool = True
    source: dict = field(default_factory=dict)
    flags: list = field(default_factory=list)


@dataclass
class Row:
    """Pieces end to end, then so much padding."""

    pieces: list
    padding: int = 0


def rows_of(
    rows, packing, *, positions=False, flags=None, pad=PAD, payload=False, name="input_ids", **more
):
    """Lay rows out as columns. flags: the name of a field with one value a token."""
    pieces = [piece for row in rows for piece in row.pieces]
    pads = [row.padding if packing == "flat" else 0 for row in rows]
    fields = {name: [], **({flags: []} if flags else {})}
    if positions:
        fields["positions"] = []
    for row, padding in zip(rows, pads, strict=True):
        fields[name].append([t for piece in row.pieces for t in piece.tokens] + [pad] * padding)
        if flags:
            fields[flags].append([f for piece in row.pieces for f in piece.flags] + [0] * padding)
        if positions:
            sizes = [*(len(piece.tokens) for piece in row.pieces), padding]
            fields["positions"].append([at for size in sizes for at in range(size)])
    settings = {
        "pad_token_id": pad,
        "pack_payloads": "keep_list" if packing == "sequences" else None,
    }
    return columns_of(
        fields,
        [[len(piece.tokens) for piece in row.pieces] for row in rows],
        name=name,
        types={"positions": np.int32},
        starts=[piece.start for piece in pieces],
        ends=[piece.ends for piece in pieces],
        padding=pads if packing == "flat" else None,
        packing=packing,
        payload=[piece.source for piece in pieces] if payload else None,
        **{**settings, **more},
    )


def batch_of(rows, packing, **settings):
    return SampleBatch.from_rows(rows_of(rows, packing, **settings))


@dataclass
class Cell:
    """What one token of a row is; document -1 is padding, which is one segment to the end."""

    token: int
    document: int
    position: int
    flag: int


def cells_of(row, width, pad):
    """Walk over the tokens of one row, padded to a width: one cell each."""
    cells = []
    number = 0
    for piece in row.pieces:
        flags = piece.flags or [1] * len(piece.tokens)
        for at, (token, flag) in enumerate(zip(piece.tokens, flags, strict=True)):
            cells.append(Cell(token, number, at, flag))
        number += bool(piece.tokens)
    packed = row.padding
    for at in range(width - len(cells)):
        cells.append(Cell(PAD if at < packed else pad, -1, at, 0))
    return cells


def by_hand(
    rows,
    *,
    labels=False,
    flatten=False,
    boundaries=False,
    eos=None,
    ignore=-100,
    pad_to=None,
    pad=PAD,
    flagged=False,
):
    """Say what a training batch of these rows holds, one token after the other.

    Returns:
        nested lists by output, before flattening but for what is numbered over the whole batch.
    """
    lengths = [sum(len(p.tokens) for p in row.pieces) + row.padding for row in rows]
    width = pad_to if isinstance(pad_to, int) else max(lengths)
    made = {
        name: []
        for name in (
            *("input_ids", "labels", "positions", "loss_mask", "padding_mask", "document_ids"),
            *("cu_seqlens", "max_seqlen"),
        )
    }
    for row in rows:
        cells = cells_of(row, width, pad)
        inputs = cells[:-1] if labels else cells
        made["input_ids"].append([cell.token for cell in inputs])
        made["positions"].append([cell.position for cell in inputs])
        made["padding_mask"].append([cell.document < 0 for cell in inputs])
        made["document_ids"].append([cell.document for cell in inputs])
        bounds = [i for i, cell in enumerate(inputs) if cell.position == 0] + [len(inputs)]
        made["cu_seqlens"].append(bounds)
        made["max_seqlen"].append(max((b - a for a, b in pairwise(bounds)), default=0))
        wanted = []
        for this, following in zip(inputs, cells[1:], strict=False):
            masked = (
                following.document < 0
                or (flagged and following.flag == 0)
                or (boundaries and this.document != following.document)
                or (eos is not None and this.token == eos)
            )
            wanted.append(ignore if masked else following.token)
        made["labels"].append(wanted)
        made["loss_mask"].append([float(label != ignore) for label in wanted])
    made["num_valid_tokens"] = sum(v != ignore for row in made["labels"] for v in row)
    if flatten:
        starts, before, ids = [0], 0, []
        for bounds, row in zip(made["cu_seqlens"], made["document_ids"], strict=True):
            for a, b in pairwise(bounds):
                starts.append(starts[-1] + b - a)
            ids.append([before + n if n >= 0 else -1 for n in row])
            before += max(row, default=-1) + 1
        made["cu_seqlens"], made["document_ids"] = starts, ids
        made["max_seqlen"] = max(made["max_seqlen"])
    else:
        most = max(map(len, made["cu_seqlens"]))
        made["cu_seqlens"] = [
            bounds + bounds[-1:] * (most - len(bounds)) for bounds in made["cu_seqlens"]
        ]
    if not labels:
        del made["labels"], made["loss_mask"], made["num_valid_tokens"]
    return made
