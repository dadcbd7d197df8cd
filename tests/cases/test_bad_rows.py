"""A broken line deep in a big file, and one of a mixture: what is lost, and what is said of it."""

import json
import re

import numpy as np
import pytest

from tests.written import lines, pipeline
from zephon import Dataset, Pipeline, StaticMixtureWorkSource
from zephon.errors import DataError, ExecutionError

BAD = '{"text":"b'
MANY, PLACE = 250_000, 200_001
quiet = pytest.mark.filterwarnings("ignore:dataset .*bad rows")


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """Write lists of one token, each the number of its row, and a broken line among them."""
    folder = tmp_path_factory.mktemp("big")
    rows = [f'{{"input_ids": [{row}]}}' for row in range(MANY)]
    rows[PLACE] = BAD
    (folder / "a.jsonl").write_text("\n".join(rows) + "\n")
    return folder, sum(len(row) + 1 for row in rows[:PLACE])


@quiet
@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_one_broken_line_of_four_loses_one_row(tmp_path, policy):
    rows = [{"text": "a"}, BAD, {"text": "c"}, {"text": "d"}]
    lines(tmp_path / "data", "a.jsonl", rows)
    made = pipeline(Dataset.from_path("words", tmp_path / "data", on_error=policy))
    made = made.options(quarantine=str(tmp_path / "q"))
    assert [record.payload["text"] for record in made] == ["a", "c", "d"]
    found = made.accounting()["words"]
    assert [found["rows_drawn"], found["rows_skipped"] + found["rows_quarantined"]] == [4, 1]


def packed(folder, policy, **options):
    data = Dataset.from_path("words", folder, on_error=policy)
    source = StaticMixtureWorkSource(
        datasets=[data], mixture={"words": 1.0}, shuffle_shards=False, chunk_size=1024
    )
    made = Pipeline(source).pack_flat(1000, algorithm="wrap").batch(1)
    return made.options(**options)


def tokens(pipe):
    parts = [record.payload["input_ids"] for batch in pipe for record in batch.records]
    return np.concatenate([np.asarray(part) for part in parts])


@quiet
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_broken_line_far_inside_a_big_file_loses_one_row(big, ranks):
    folder, _ = big
    found, lost = [], 0
    for rank in range(ranks):
        shape = {"dp_degree": ranks, "dp_group_id": rank, "canonical_replicas": 2}
        pipe = packed(folder, "skip", runner="threads", max_workers=2, **shape)
        found.append(tokens(pipe))
        lost += pipe.accounting()["words"]["rows_skipped"]
    assert lost == 1
    found = np.sort(np.concatenate(found))
    assert len(found) == len(np.unique(found)) and PLACE not in found
    assert MANY - 1 - len(found) < 2 * 1000  # what two lanes hold of rows that are not full


def test_a_broken_line_far_inside_a_big_file_is_named(big):
    folder, byte = big
    place = rf"shard 'a.jsonl', row {PLACE} \(line {PLACE + 1}, byte {byte}\)"
    with pytest.raises(DataError, match=f"dataset 'words', {place}.*{re.escape(BAD)}"):
        tokens(packed(folder, "raise", runner="threads", max_workers=2))


def length(row):
    return {"text": row["text"], "n": len(row["words"])}


def mixture(folder, odd, **options):
    """Mix three datasets; one row of one of them is odd."""
    made = []
    for name in ("web", "code", "books"):
        for shard in range(2):
            rows = [json.dumps({"text": f"{name} {n}", "words": [n]}) for n in range(20)]
            if (name, shard) == ("code", 1):
                rows[7] = odd
            lines(folder / name, f"{shard}.jsonl", rows)
        made.append(Dataset.from_path(name, folder / name))
    source = StaticMixtureWorkSource(
        datasets=made, mixture={each.name: 1.0 for each in made}, chunk_size=4
    )
    return Pipeline(source).map_transform(length).batch(2).options(**options)


@pytest.mark.parametrize("runner", ["threads", "process"])
@pytest.mark.parametrize(
    ("odd", "kind", "parts"),
    [
        (BAD, DataError, ["must be one JSON object", "(line 8, byte ", "the line begins"]),
        ('{"text": "a", "words": 5}', ExecutionError, ["map_transform", "length", "TypeError"]),
    ],
)
def test_a_row_of_a_mixture_is_named_with_source_shard_row_line_and_stage(
    tmp_path, runner, odd, kind, parts
):
    pipe = mixture(tmp_path, odd, runner=runner, max_workers=2)
    with pytest.raises(kind) as told:
        list(pipe)
    message = str(told.value)
    for part in ("dataset 'code', shard '1.jsonl', row 7", "on_error='skip'", *parts):
        assert part in message
    assert "\n" not in message
