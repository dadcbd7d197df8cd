"""After a restore, held documents are read again; ones that changed are noticed."""

import json
from itertools import islice

import pytest

from tests.properties.recipes import source
from tests.written import dataset
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import CheckpointError

WIDTH = 60


def written(folder, lengths):
    """Write lists of tokens as lines of equal size, whatever their length."""
    folder.mkdir(exist_ok=True)
    rows = [json.dumps({"input_ids": list(range(1, length + 1))}) for length in lengths]
    lines = [row.ljust(WIDTH) for row in rows]
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    return Dataset.from_path("lists", str(folder))


def wrapped(pipe):
    return pipe.pack_flat(max_length=7, algorithm="wrap")


def shuffled(pipe):
    """Several policies hold documents, and what one has let go another one holds."""
    return wrapped(pipe.shuffle(3)).shuffle(2)


PLANS = (wrapped, shuffled)


def pipeline(dataset, plan=wrapped):
    return plan(Pipeline(source([dataset]))).batch(1).options(runner="inline")


def state_after(dataset, batches, plan=wrapped):
    running = pipeline(dataset, plan)
    items = iter(running)
    found = [batch.to_training()["input_ids"].tolist() for batch in islice(items, batches)]
    state = running.checkpoint()
    items.close()
    return found, state


LENGTHS = [5, 4, 10, 3, 2, 6, 5, 4, 3, 7]


@pytest.mark.parametrize("plan", PLANS)
def test_held_documents_are_read_again(tmp_path, plan):
    data = written(tmp_path / "d", LENGTHS)
    whole = [batch.to_training()["input_ids"].tolist() for batch in pipeline(data, plan)]
    for batches in range(len(whole)):
        head, state = state_after(data, batches, plan)
        again = pipeline(Dataset.from_path("lists", str(tmp_path / "d")), plan).restore(state)
        rest = [batch.to_training()["input_ids"].tolist() for batch in again]
        assert head + rest == whole


@pytest.mark.parametrize("plan", PLANS)
def test_a_held_document_of_another_length_is_refused(tmp_path, plan):
    _, state = state_after(written(tmp_path / "d", LENGTHS), 1, plan)
    changed = written(tmp_path / "d", [length + 1 for length in LENGTHS])
    with pytest.raises(CheckpointError, match=r"shard 'a\.jsonl': .* with other content"):
        iter(pipeline(changed, plan).restore(state))


@pytest.mark.parametrize("plan", PLANS)
def test_a_held_row_of_another_length_is_refused_where_it_changed_after_the_beginning(plan):
    """Rows in memory are the user's own."""
    rows = [{"input_ids": list(range(1, length + 1))} for length in LENGTHS]
    data = Dataset.from_dict("lists", {0: InMemoryShard(rows)})
    _, state = state_after(data, 1, plan)
    batches = iter(pipeline(data, plan).restore(state))
    for row in rows:
        row["input_ids"].append(1)
    with pytest.raises(CheckpointError, match=r"lane 0 have other lengths .* the data changed"):
        list(batches)


def test_splits_are_found_again_among_those_of_their_row(tmp_path, tokenizer_file):
    """A row's splits are made together, and some of them may be delivered already."""
    texts = [{"text": "the tree and the wood " * (1 + n % 4)} for n in range(12)]

    def job():
        pipe = Pipeline(source([dataset("jsonl", tmp_path / "d", texts)])).shuffle(3)
        pipe.tokenize(
            tokenizer_id=tokenizer_file,
            field="text",
            split_long_samples=True,
            max_length=5,
            preserve_upstream_payload=True,
        )
        return pipe.shuffle(4).options(runner="inline")

    def told(record):
        return record.meta.sample_id, record.meta.lineage, record.payload

    whole, states, pipe = [], [], job()
    for record in pipe:
        whole.append(told(record))
        states.append(pipe.checkpoint())
    assert len({(ids, lineage) for ids, lineage, _ in whole}) == len(whole) > 30
    for at, state in enumerate(states):
        assert [told(record) for record in job().restore(state)] == whole[at + 1 :]
