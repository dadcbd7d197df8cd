"""Keys of folders: which there are, their values and types, and clashes with columns of files."""

import pickle
from urllib.parse import quote

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from tests.written import lines, parquet, pipeline
from zephon import Dataset
from zephon.build_index import build_catalog, build_index
from zephon.errors import DatasetError

VALUES = ["en", "a b", "a/b", "a=b", "100%", "größe", "+", "007", "%zz", "日本"]


def opened(folder, **how):
    return Dataset.from_path("d", folder, **{"recursive": True, **how})


def keys_of(dataset):
    """Give what each shard has of its keys."""
    found = dataset.folder_keys
    return [
        {key: found.value(key, shard)[0].as_py() for key in found.types}
        for shard in range(len(dataset.shards))
    ]


def test_values_are_those_that_arrow_finds(tmp_path):
    for number, value in enumerate(VALUES):
        parquet(tmp_path / f"lang={quote(value, safe='')}", "a.parquet", [{"n": number}])
    parquet(tmp_path / "lang=__HIVE_DEFAULT_PARTITION__", "a.parquet", [{"n": len(VALUES)}])
    schema = pa.schema([("lang", pa.string())])
    theirs = pads.dataset(tmp_path, partitioning=pads.partitioning(schema, flavor="hive"))
    wanted = {row["n"]: row["lang"] for row in theirs.to_table().to_pylist()}
    found = {row.payload["n"]: row.payload["lang"] for row in pipeline(opened(tmp_path))}
    assert found == wanted == dict(enumerate([*VALUES, None]))


@pytest.mark.parametrize("way", ["files", "index", "catalogue"])
def test_every_way_to_the_files_finds_the_same(tmp_path, way):
    for lang in ("en", "fr"):
        parquet(tmp_path / f"lang={lang}" / "day=01", "a.parquet", [{"text": lang}])
    parquet(tmp_path, "top.parquet", [{"text": "top"}])
    if way == "index":
        build_index("parquet", tmp_path, recursive=True, progress=False)
    elif way == "catalogue":
        build_catalog(tmp_path, recursive=True, progress=False)
    wanted = [
        {"lang": "en", "day": "01"},
        {"lang": "fr", "day": "01"},
        {"lang": None, "day": None},
    ]
    for how in ({}, {"recursive": False, "glob": "**"}):
        dataset = opened(tmp_path, **how)
        assert keys_of(dataset) == wanted
        assert [each.name for each in dataset.fields()] == ["text", "lang", "day"]
        assert keys_of(pickle.loads(pickle.dumps(dataset))) == wanted
    one = opened(tmp_path, recursive=False, glob="lang=fr/*/*.parquet")
    assert keys_of(one) == wanted[1:2]
    assert one.recorded_manifest()["hive"] == ["day", "lang"]
    below = opened(tmp_path / "lang=en")
    assert keys_of(below) == [{"day": "01"}]


def test_folders_without_keys_cost_nothing(tmp_path):
    parquet(tmp_path / "=en" / "plain", "a=b.parquet", [{"text": "x"}])
    dataset = opened(tmp_path)
    assert dataset.folder_keys is None and isinstance(dataset.recorded_manifest(), list)
    parquet(tmp_path / "lang=", "a.parquet", [{"text": "x"}])
    assert keys_of(opened(tmp_path)) == [{"lang": None}, {"lang": ""}]
    plain = opened(tmp_path, hive=False)
    assert plain.folder_keys is None and [each.name for each in plain.fields()] == ["text"]
    assert plain != opened(tmp_path)


def test_values_take_the_type_that_is_declared(tmp_path):
    parquet(tmp_path / "day=2024-02-29" / "n=007", "a.parquet", [{"text": "x"}])
    schema = {"day": pa.date32(), "n": "int16", "text": pa.string()}
    dataset = opened(tmp_path, schema=schema)
    types = {each.name: each.type for each in dataset.fields()}
    assert types == {"text": pa.large_string(), "day": pa.date32(), "n": pa.int16()}
    assert keys_of(dataset)[0]["n"] == 7
    told = r"key 'day' must be of type int64, as schema says, got '2024-02-29' in the folder"
    with pytest.raises(DatasetError, match=told):
        opened(tmp_path, schema={"day": "int64"})
    with pytest.raises(DatasetError, match=r"key 'n' must be of type int8.* got '300'"):
        parquet(tmp_path / "n=300", "a.parquet", [{"text": "x"}])
        opened(tmp_path, schema={"n": "int8"})
    with pytest.raises(DatasetError, match=r"got 'n\.x', and 'n' is a key of folders"):
        opened(tmp_path, schema={"n.x": "int8"})


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_clash_is_refused_until_the_user_chooses(tmp_path, kind):
    write = parquet if kind == "parquet" else lines
    write(tmp_path / "lang=en" / "day=1", f"a.{kind}", [{"lang": "fr", "text": "x"}])
    told = (
        rf"dataset 'd', shard 'lang=en/day=1/a\.{kind}': 'lang' must come from one place, got 'en' "
        r"from its folder and 'fr' from the file; pass hive='path' or hive='file' .* hive=False"
    )
    for how in ({}, {"recursive": False, "glob": "*/*/*"}):
        with pytest.raises(DatasetError, match=told):
            opened(tmp_path, **how)
        assert keys_of(opened(tmp_path, hive="path", **how)) == [{"lang": "en", "day": "1"}]
        assert keys_of(opened(tmp_path, hive="file", **how)) == [{"day": "1"}]
        assert opened(tmp_path, hive=False, **how).folder_keys is None
    assert opened(tmp_path / "lang=en").folder_keys.types.keys() == {"day"}


def test_odd_arguments_and_names_are_refused(tmp_path):
    parquet(tmp_path / "lang=en" / "lang=fr", "a.parquet", [{"text": "x"}])
    with pytest.raises(DatasetError, match=r"hive must be True, False, 'path' or 'file', got 'pat"):
        opened(tmp_path, hive="pat")
    with pytest.raises(DatasetError, match=r"must be .* got 1;"):
        opened(tmp_path, hive=1)
    with pytest.raises(DatasetError, match=r"a key once, got 'lang' twice in 'lang=en/lang=fr/'"):
        opened(tmp_path)
    parquet(tmp_path / "x=%ff", "a.parquet", [{"text": "x"}])
    with pytest.raises(DatasetError, match=r"folder 'x=%ff' must be a key and a value in UTF-8"):
        opened(tmp_path, recursive=False, glob="x=*/*")
