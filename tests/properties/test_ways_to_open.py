"""Files, what is kept of them, an index, a catalogue: whichever tells of the shards, no byte of a
stream changes.
"""

import os

import pytest

from tests.properties.recipes import lengths, rows, source
from tests.written import dataset as write
from zephon import Dataset, Pipeline
from zephon.build_index import build_catalog, build_index
from zephon.io import kept_counts, stamps
from zephon.io.shards import Shards

KINDS = ("parquet", "jsonl", "jsonl.gz")
WAYS = ("files", "kept", "index", "catalogue")


@pytest.fixture(scope="module", params=KINDS)
def ways(request, tmp_path_factory):
    """Open the same directories in each way."""
    folder = tmp_path_factory.mktemp("ways")
    made = {}
    for number, (name, count, shards) in enumerate((("prose", 90, 7), ("code", 40, 3))):
        documents = [
            {"input_ids": list(range(1000 * n, 1000 * n + length))}
            for n, length in enumerate(lengths(number, count))
        ]
        write(request.param, folder / name, documents, name=name, shards=shards)
        made[name] = folder / name
    found = {"files": _opened(made)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZEPHON_CATALOG_DIR", str(folder / "kept"))
        patch.setattr(stamps, "SETTLED_NS", -(1 << 60))
        patch.setattr(kept_counts, "KEPT_SECONDS", 0)
        assert not any(dataset.shards.kept_in for dataset in _opened(made))
        found["kept"] = _opened(made)
    assert all(dataset.shards.kept_in for dataset in found["kept"])
    for path in made.values():
        build_index(request.param.split(".")[0], path, progress=False)
    found["index"] = _opened(made)
    for path in made.values():
        build_catalog(path, progress=False)
    found["catalogue"] = _opened(made)
    listed = [datasets[0].shards.listed_by for datasets in found.values()]
    assert [each and each.file for each in listed] == [None, None, "index.json", "_catalog.arrow"]
    return found


def _opened(made):
    return [Dataset.from_path(name, path) for name, path in made.items()]


def pipeline(datasets, **settings):
    work = {"chunk_size": 8, "shuffle_within_shard": True, "seed": 3}
    return (
        Pipeline(source(datasets, {"prose": 0.7, "code": 0.3}, **work))
        .pack_flat(max_length=33, algorithm="wrap")
        .batch(microbatch_size=2)
        .options(**{"canonical_replicas": 3, "runner": "inline", **settings})
    )


def test_the_stream_is_the_same(ways):
    wanted = rows(pipeline(ways["files"]))
    assert len(wanted) > 50
    for way in WAYS[1:]:
        assert rows(pipeline(ways[way])) == wanted


def test_a_recipe_is_the_same(ways):
    assert len({pipeline(datasets).fingerprint() for datasets in ways.values()}) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [("files", "catalogue"), ("catalogue", "index"), ("files", "kept"), ("kept", "index")],
)
def test_a_checkpoint_goes_from_one_way_to_another(ways, before, after):
    first = pipeline(ways[before])
    batches = iter(first)
    for _ in range(5):
        next(batches)
    state = first.checkpoint()
    rest = [batch.to_training()["input_ids"].tolist() for batch in batches]
    second = pipeline(ways[after])
    second.restore(state)
    assert [batch.to_training()["input_ids"].tolist() for batch in second] == rest


def test_a_checkpoint_does_not_tell_what_was_kept(ways):
    def state(datasets):
        found = pipeline(datasets)
        next(iter(found))
        return found.checkpoint()

    assert state(ways["kept"]) == state(ways["files"])


def test_above_4096_shards_a_checkpoint_holds_a_summary(tmp_path):
    write("parquet", tmp_path, [{"input_ids": [1, 2, 3]}], name="many", shards=1)
    for number in range(1, 4097):
        os.link(tmp_path / "000.parquet", tmp_path / f"{number:04}.parquet")
    scanned = Dataset.from_path("many", tmp_path)
    build_index("parquet", tmp_path, progress=False)
    listed = Dataset.from_path("many", tmp_path)
    state = _state_of(scanned)
    assert state["recipe"]["data"] == {"many": scanned.recorded_manifest()}
    assert state["recipe"]["data"]["many"] == {
        "shards": 4097,
        "rows": 4097,
        "bytes": 4097 * scanned.shards[0].bytes,
        "sha256": listed.shards.digest(),
    }
    assert _state_of(listed)["fingerprint"] == state["fingerprint"]
    below = Dataset("many", "parquet", str(tmp_path), _table(listed.shards[:4096], tmp_path))
    assert len(below.recorded_manifest()) == 4096


def _table(shards, folder):
    return Shards.of(shards, directory=str(folder))


def _state_of(dataset):
    found = Pipeline(source([dataset])).pack_flat(max_length=8, algorithm="wrap").batch(2)
    found.options(runner="inline")
    next(iter(found))
    return found.checkpoint()
