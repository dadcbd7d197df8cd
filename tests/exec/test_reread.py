"""After a restore, held documents are read again; ones that changed are noticed."""

import json
from itertools import islice

import pytest

from tests.properties.recipes import source
from zephon import Dataset, Pipeline
from zephon.errors import CheckpointError

WIDTH = 60


def written(folder, lengths):
    """Write lists of tokens as lines of equal size, whatever their length."""
    folder.mkdir(exist_ok=True)
    rows = [json.dumps({"input_ids": list(range(1, length + 1))}) for length in lengths]
    lines = [row.ljust(WIDTH) for row in rows]
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    return Dataset.from_path("lists", str(folder))


def pipeline(dataset):
    return (
        Pipeline(source([dataset]))
        .pack_flat(max_length=7, algorithm="wrap")
        .batch(1)
        .options(runner="inline")
    )


def state_after(dataset, batches):
    running = pipeline(dataset)
    items = iter(running)
    found = [batch.to_training()["input_ids"].tolist() for batch in islice(items, batches)]
    state = running.checkpoint()
    items.close()
    return found, state


LENGTHS = [5, 4, 10, 3, 2, 6, 5, 4, 3, 7]


def test_held_documents_are_read_again(tmp_path):
    dataset = written(tmp_path / "d", LENGTHS)
    whole = [batch.to_training()["input_ids"].tolist() for batch in pipeline(dataset)]
    for batches in range(len(whole)):
        head, state = state_after(dataset, batches)
        again = pipeline(Dataset.from_path("lists", str(tmp_path / "d"))).restore(state)
        rest = [batch.to_training()["input_ids"].tolist() for batch in again]
        assert head + rest == whole


def test_a_held_document_of_another_length_is_refused(tmp_path):
    _, state = state_after(written(tmp_path / "d", LENGTHS), 1)  # five tokens of two documents
    changed = written(tmp_path / "d", [length + 1 for length in LENGTHS])
    with pytest.raises(CheckpointError, match=r"lane 0 have other lengths .* the data changed"):
        list(pipeline(changed).restore(state))
