"""Every chain of policies: exact boundaries, nothing lost, and the same rows after any cut."""

import json
from collections import Counter
from itertools import groupby, islice

import numpy as np
import pytest

from tests.properties.chains import CHAINS, PACKERS, PAD, split_after_shuffle, start
from tests.properties.recipes import source, text_dataset
from zephon import Pipeline

pytestmark = pytest.mark.filterwarnings("ignore:packing dropped")

DOCUMENTS = [list(record.payload["input_ids"]) for record in start().options(runner="inline")]
WHOLE = {document[0]: len(document) for document in DOCUMENTS if document}
LENGTH = 33


def plain(record):
    """Give a record as plain values: who it is, and what it holds."""
    payload = record.payload
    documents = payload.get("packed_samples", [payload])
    held = [[list(map(int, document[name])) for name in sorted(document)] for document in documents]
    return record.meta.cursor.as_key(), record.meta.tags.get("_packing_metadata"), held


def rows(pipeline, batches=None):
    return [plain(r) for batch in islice(iter(pipeline), batches) for r in batch.records]


def pieces_of(tokens):
    """Cut tokens where they do not count on: every document counts from a number of its own."""
    numbered = groupby(enumerate(tokens), key=lambda pair: pair[1] - pair[0])
    return [[token for _, token in run] for _, run in numbered]


@pytest.mark.parametrize("name", PACKERS)
def test_boundaries_are_those_of_documents_laid_end_to_end_by_hand(name):
    pipeline = PACKERS[name](start()).batch(1, drop_last=False).options(runner="inline")
    wraps = "wrap" in name or name == "groups"
    seen = Counter()
    for batch in pipeline:
        (record,) = batch.records
        padding = record.meta.padding_length
        made = batch.to_training(
            dtype=np.int64,
            return_labels=True,
            return_cu_seqlens=True,
            return_document_ids=True,
            return_padding_mask=True,
            mask_document_boundaries=True,
        )
        tokens = list(record.payload["input_ids"])
        assert len(tokens) == LENGTH
        assert tokens[LENGTH - padding :] == [PAD] * padding
        pieces = pieces_of(tokens[: LENGTH - padding])
        numbers = [n for piece in (*pieces, [0] * padding) for n in range(len(piece))]
        assert list(record.payload["positions"]) == numbers
        ids = [i for i, piece in enumerate(pieces) for _ in piece] + [-1] * padding
        labels = [
            b if i == j else -100 for b, i, j in zip(tokens[1:], ids[:-1], ids[1:], strict=True)
        ]
        labels = [-100 if j < 0 else label for label, j in zip(labels, ids[1:], strict=True)]
        starts = [at for at, n in enumerate(numbers[:-1]) if n == 0]
        assert made["input_ids"].tolist() == [tokens[:-1]]
        assert made["labels"].tolist() == [labels]
        assert made["document_ids"].tolist() == [ids[:-1]]
        assert made["padding_mask"].tolist() == [[i < 0 for i in ids[:-1]]]
        assert made["cu_seqlens"].tolist() == [[*starts, LENGTH - 1]]
        for piece in pieces:
            seen.update(piece)
            whole = WHOLE.get(piece[0]) == len(piece)
            assert whole or wraps, "a document was cut that must stay whole"
    fits = [d for d in DOCUMENTS if wraps or len(d) <= LENGTH]
    every = Counter(token for document in fits for token in document)
    lost = every - seen
    assert not seen - every, "a token came twice"
    open_rows = {"wrap": 1, "groups": 2}.get(name, 0)  # what the end of the data leaves unfinished
    assert sum(lost.values()) <= open_rows * (LENGTH - 1)


@pytest.mark.parametrize("name", [name for name in CHAINS if name != "documents"])
def test_tokens_made_are_delivered_held_or_dropped_at_every_row(name):
    pipeline = CHAINS[name]().batch(1, drop_last=False).options(runner="inline")
    delivered = 0
    for number, batch in enumerate(pipeline):
        for _, packing, held in (plain(record) for record in batch.records):
            padding = (packing or {}).get("padding_length") or 0
            delivered += sum(len(fields[0]) for fields in held) - padding
        if number % 13 == 0:
            counts = pipeline.accounting().values()
            assert sum(c["tokens_delivered"] for c in counts) == delivered
            check_sums(counts)
    counts = pipeline.accounting().values()
    check_sums(counts)
    assert sum(c["tokens_delivered"] for c in counts) == delivered
    assert sum(c["tokens_held"] for c in counts) == 0
    total = sum(map(len, DOCUMENTS))
    assert sum(c["tokens_made"] for c in counts) == total


def check_sums(counts):
    for count in counts:
        rest = sum(count["tokens_dropped"].values())
        assert count["tokens_made"] == count["tokens_delivered"] + count["tokens_held"] + rest


def make(name, **options):
    return CHAINS[name]().batch(1, drop_last=False).options(**{"runner": "inline", **options})


@pytest.mark.parametrize("name", CHAINS)
def test_a_cut_at_any_row_goes_on_with_the_next_one(name):
    whole = rows(make(name))
    assert len(whole) > 60
    every = 13 if name in PACKERS else 6
    running = make(name)
    items = iter(running)
    for count in range(len(whole) + 1):
        state = running.checkpoint()
        if count % every == 0 or count > len(whole) - 4:
            resumed = make(name).restore(json.loads(json.dumps(state)))
            assert rows(resumed, 3) == whole[count : count + 3], count
        if count % 40 == 0 or count == len(whole):
            assert rows(make(name).restore(state)) == whole[count:], count
        next(items, None)


@pytest.mark.parametrize("name", CHAINS)
def test_a_restored_state_is_the_state_and_a_second_restore_goes_on(name):
    whole = rows(make(name))
    for count in (0, 1, len(whole) // 2, len(whole) - 1, len(whole)):
        pipeline = make(name)
        list(islice(iter(pipeline), count))
        state = pipeline.checkpoint()
        again = make(name).restore(state)
        items = iter(again)
        again._restored = None  # so that the state is that of the engine, made anew
        assert json.dumps(again.checkpoint()) == json.dumps(state)
        next(items, None)
        second = make(name).restore(again.checkpoint(as_bytes=True))
        assert rows(second) == whole[min(count + 1, len(whole)) :]


@pytest.mark.parametrize("name", CHAINS)
def test_threads_memory_and_lanes_shared_by_ranks_change_no_row(name):
    def lanes_of(**options):
        found = {}
        for group in range(options.pop("ranks", 1)):
            part = make(name, canonical_replicas=4, **options)
            if "dp_degree" in options:
                part.options(dp_group_id=group)
            for batch in part:
                (record,) = batch.records
                found.setdefault(record.meta.lane_id, []).append(plain(record))
        return found

    oracle = lanes_of()
    assert len(oracle) == 4
    assert lanes_of(runner="threads", memory_budget="9kb", prefetch_batches=3) == oracle
    assert lanes_of(ranks=2, dp_degree=2, world_size=2) == oracle


@pytest.mark.parametrize("name", ["shuffle", "documents and rows shuffled", "mixture, shuffle"])
def test_steps_are_the_same_on_any_number_of_ranks(name):
    def steps(degree, microbatch):
        shares = []
        for group in range(degree):
            pipeline = CHAINS[name]().batch(microbatch)
            pipeline.options(
                runner="inline",
                global_batch_size=12,
                canonical_replicas=3,
                dp_degree=degree,
                dp_group_id=group,
            )
            found = rows(pipeline, 24 // degree // microbatch)
            size = 12 // degree
            shares.append([found[:size], found[size:]])
        return [row for step in range(2) for share in shares for row in share[step]]

    oracle = steps(1, 1)
    assert len(oracle) == 24
    for degree, microbatch in ((2, 3), (3, 4), (4, 1), (6, 2), (12, 1)):
        assert steps(degree, microbatch) == oracle


def test_rows_shuffled_and_then_split_and_packed_are_cut_anywhere(tokenizer_file):
    def chain():
        made = split_after_shuffle(tokenizer_file)
        return made.batch(1, drop_last=False).options(runner="inline", canonical_replicas=2)

    whole = rows(chain())
    assert len(whole) > 60
    running = chain()
    items = iter(running)
    for count in range(0, len(whole), 3):
        state = running.checkpoint()
        assert rows(chain().restore(state), 2) == whole[count : count + 2]
        list(islice(items, 3))


def test_a_shuffle_before_a_split_moves_whole_source_rows(tokenizer_file):
    def children(pipeline: Pipeline):
        items = pipeline.options(runner="inline")
        return [(r.meta.sample_id, r.meta.lineage) for r in items]

    def tokenized(pipeline):
        return pipeline.tokenize(
            tokenizer_id=tokenizer_file, field="text", split_long_samples=True, max_length=12
        )

    def begin():
        return Pipeline(source([text_dataset("words", 90)], chunk_size=4))

    shuffled = children(tokenized(begin().shuffle(25, seed=3)))
    rows_alone = [r.meta.sample_id for r in begin().shuffle(25, seed=3).options(runner="inline")]
    whole = [list(run) for _, run in groupby(shuffled, key=lambda pair: pair[0])]
    assert [run[0][0] for run in whole] == rows_alone
    assert all(
        [lineage for _, lineage in run] in ([()], [(i,) for i in range(len(run))]) for run in whole
    )
    assert sorted(shuffled) == sorted(children(tokenized(begin())))
