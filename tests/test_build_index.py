"""Building indexes and catalogues: what they hold is what reading the files gives."""

import hashlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.io.conftest import TEXT, Rows
from tests.written import KINDS, lines, parquet, raw
from zephon import Dataset, cli
from zephon.build_index import build_catalog, build_index, main
from zephon.errors import DatasetError, NotYetError, PlanError, ShardError
from zephon.io.formats import FORMATS, line_blocks

FILES = tuple(kind for kind in KINDS if kind != "in_memory")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(line_blocks.index_lines, "__kwdefaults__", {"block_bytes": 64})


@pytest.fixture(params=FILES)
def made(request, tmp_path):
    """A directory in each format: shards of several row groups, an empty one, blank lines."""
    kind = request.param
    for number, count in enumerate((9, 0, 1, 30)):
        rows = [{"text": f"{number}-{n} " + "é" * (n % 5)} for n in range(count)]
        if kind == "parquet":
            schema = pa.schema([("text", pa.string())])
            parquet(tmp_path, f"{number}.parquet", pa.Table.from_pylist(rows, schema))
        else:
            lines(tmp_path, f"{number}.{kind}", [""] * number + rows)
    if kind != "parquet":
        raw(tmp_path, f"9.{kind}", b'\xef\xbb\xbf{"text":"marked"}\n \n{"text":"no end"}')
    return tmp_path, kind.split(".")[0]


def opened(folder, fmt=None):
    """Open a directory; any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Dataset.from_path("d", folder, fmt=fmt)


def written(path):
    return json.loads(Path(path).read_bytes())


def known(dataset):
    """Write down everything that is known of shards, but when they were written."""
    found = []
    for shard in dataset.shards:
        layout = shard.layout
        if dataset.kind == "jsonl":
            arrays = (layout.offsets, layout.first_rows, layout.first_lines)
            layout = [each.tolist() for each in arrays], layout.opening
        groups = shard.group_rows.tolist()
        found.append((shard, shard.decoded_bytes, groups, layout))
    return found, dataset.fields(), dataset.fields_complete


def same(dataset, scanned):
    assert dataset.kind == scanned.kind
    assert dataset.shards == scanned.shards
    assert known(dataset) == known(scanned)
    assert dataset.shards.digest() == scanned.shards.digest()
    assert dataset.manifest() == scanned.manifest()
    picks = np.arange(scanned.total())[::-1]
    wanted = Rows(scanned, TEXT, payload=True)
    rows = Rows(dataset, TEXT, payload=True)
    assert rows.values() == wanted.values()
    assert rows.values(picks) == wanted.values(picks)
    assert rows.rows() == wanted.rows()


def test_an_index_says_what_the_files_do(made, capsys):
    folder, kind = made
    scanned = opened(folder)
    path = build_index(kind, folder)
    assert path == str(folder / "index.json")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "files" in shown.err
    dataset = opened(folder)
    assert dataset.shards.listed_by.file == "index.json"
    assert dataset.passed_over == ()
    same(dataset, scanned)


def test_a_catalogue_says_what_the_files_do(made):
    folder, _ = made
    scanned = opened(folder)
    assert build_catalog(folder, progress=False) == str(folder / "_catalog.arrow")
    dataset = opened(folder)
    assert dataset.shards.listed_by.file == "_catalog.arrow"
    same(dataset, scanned)


def test_a_catalogue_made_from_an_index_says_it_too(made, monkeypatch):
    folder, kind = made
    scanned = opened(folder)
    build_index(kind, folder, progress=False)
    files = type(FORMATS[kind])
    monkeypatch.setattr(files, "count", lambda *_: pytest.fail("a file was read"))
    build_catalog(folder, progress=False)
    monkeypatch.undo()
    monkeypatch.setattr(line_blocks.index_lines, "__kwdefaults__", {"block_bytes": 64})
    same(opened(folder), scanned)


def test_opening_by_an_index_looks_at_no_footer(tmp_path):
    parquet(tmp_path, "a.parquet", [{"text": "x"}])
    build_index("parquet", tmp_path, progress=False)
    size = (tmp_path / "a.parquet").stat().st_size
    (tmp_path / "a.parquet").write_bytes(b"x" * size)
    assert opened(tmp_path).counts().tolist() == [1]


def test_the_documented_schema_and_what_is_ours_within_extra(tmp_path):
    for name in ("a", "b"):
        parquet(tmp_path, f"{name}.parquet", [{"text": name}] * 5)
    parquet(tmp_path, "c.parquet", [{"n": 1}])
    index = written(build_index("parquet", tmp_path, progress=False))
    assert list(index) == ["format_version", "shards"]
    assert index["format_version"] == 1
    first, second, third = index["shards"]
    assert first["basename"] == "a.parquet"
    assert first["bytes"] == (tmp_path / "a.parquet").stat().st_size
    assert first["num_rows"] == 5
    assert list(first["hashes"]) == ["zephon_mark_1"]
    assert first["extra"]["num_row_groups"] == 2
    assert [group["num_rows"] for group in first["extra"]["row_groups"]] == [4, 1]
    assert all(group["total_byte_size"] > 0 for group in first["extra"]["row_groups"])
    assert second["extra"]["schema_of"] == "a.parquet"
    assert third["extra"]["schema"] != first["extra"]["schema"]


def test_the_documented_schema_of_jsonl(tmp_path):
    lines(tmp_path, "a.jsonl", [{"n": 1}, "", {"n": 2}])
    lines(tmp_path, "b.jsonl.gz", [{"n": 1}])
    index = written(build_index("jsonl", tmp_path, progress=False))
    plain, packed = (shard["extra"] for shard in index["shards"])
    assert plain.pop("types") == packed.pop("types") == {"n": [["int64", 0]]}
    assert plain == {
        "blocks": {"bytes": [19], "rows": [2], "lines": [3], "opening": '{"n": 1}'},
    }
    assert packed["raw_bytes"] == 9
    assert packed["blocks"] == {"bytes": [9], "rows": [1], "opening": '{"n": 1}'}
    for shard in index["shards"]:
        whole = hashlib.sha256((tmp_path / shard["basename"]).read_bytes()).hexdigest()
        assert shard["hashes"]["sha256"] == whole
        assert len(shard["hashes"].pop("zephon_mark_1")) == 12


def test_both_tell_the_same_marks(made):
    folder, kind = made
    build_index(kind, folder, progress=False)
    index = opened(folder).shards
    build_catalog(folder, progress=False)
    catalog = opened(folder).shards
    assert catalog.listed_by.file == "_catalog.arrow"
    assert len(set(index.marks.tolist())) == len(index)
    assert catalog.marks.tolist() == index.marks.tolist()
    assert (index.full_hashes is None) == (kind == "parquet")
    if kind != "parquet":
        assert catalog.full_hashes.tolist() == index.full_hashes.tolist()


def test_the_same_files_give_the_same_bytes(made):
    folder, kind = made
    index = Path(build_index(kind, folder, progress=False, max_workers=1))
    catalog = Path(build_catalog(folder, progress=False))
    first = index.read_bytes(), catalog.read_bytes()
    index.unlink()
    build_catalog(folder, progress=False)  # of the files now, not of the index
    assert catalog.read_bytes() == first[1]
    catalog.unlink()
    build_index(kind, folder, progress=False)
    assert index.read_bytes() == first[0]
    names = opened(folder).shards.names.to_pylist()
    assert first[0].count(b"\n") == len(names) + 2  # a line a shard
    assert sorted(os.listdir(folder)) == [*names, "index.json"]


def test_a_new_index_takes_a_new_catalogue_with_it(made):
    """The catalogue would be used before the index, and hide what was added."""
    folder, kind = made
    build_catalog(folder, progress=False)
    if kind == "parquet":
        parquet(folder, "zz.parquet", [{"text": "new"}])
    else:
        lines(folder, "zz.jsonl", [{"text": "new"}])
    before = opened(folder).shard_count()
    build_index(kind, folder, progress=False)
    dataset = opened(folder)
    assert dataset.shards.listed_by.file == "_catalog.arrow"
    assert dataset.shard_count() == before + 1
    (folder / "_catalog.arrow").unlink()
    same(dataset, opened(folder))


@pytest.mark.parametrize("change", ["added", "longer", "newer", "gone", "broken"])
def test_an_index_that_is_not_up_to_date_is_not_made_a_catalogue_of(tmp_path, change):
    for name in "ab":
        lines(tmp_path, f"{name}.jsonl", [{"text": name}])
    path = build_index("jsonl", tmp_path, progress=False)
    if change == "added":
        lines(tmp_path, "c.jsonl", [{"text": "c"}])
    elif change == "longer":
        lines(tmp_path, "b.jsonl", [{"text": "b"}] * 2)
        os.utime(tmp_path / "b.jsonl", ns=(1, 1))
    elif change == "newer":
        lines(tmp_path, "b.jsonl", [{"text": ""}, ""])
        os.utime(path, ns=(1, 1))
    elif change == "gone":
        (tmp_path / "b.jsonl").unlink()
    else:
        (tmp_path / "index.json").write_text("{")
    build_catalog(tmp_path, progress=False)
    by_catalog = opened(tmp_path)
    (tmp_path / "_catalog.arrow").unlink()
    (tmp_path / "index.json").unlink()
    same(by_catalog, opened(tmp_path))


def test_output_may_go_elsewhere(tmp_path):
    lines(tmp_path / "data", "a.jsonl", [{"text": "a"}])
    (tmp_path / "out").mkdir()
    folder = str(tmp_path / "data")
    assert build_index(
        "jsonl", folder, output_path=str(tmp_path / "out" / "x.json"), progress=False
    ) == str(tmp_path / "out" / "x.json")
    assert build_catalog(folder, output_path=tmp_path / "out", progress=False) == str(
        tmp_path / "out" / "_catalog.arrow"
    )
    assert os.listdir(tmp_path / "data") == ["a.jsonl"]
    with pytest.raises(DatasetError, match=r"must lie in a directory that is there, .*nowhere"):
        build_index("jsonl", folder, output_path=tmp_path / "nowhere" / "x", progress=False)
    with pytest.raises(DatasetError, match=r"on this machine, got 's3://bucket/index\.json'"):
        build_index("jsonl", folder, output_path="s3://bucket/index.json", progress=False)


def test_nothing_is_written_where_a_file_cannot_be_read(tmp_path):
    parquet(tmp_path, "a.parquet", [{"text": "a"}])
    (tmp_path / "b.parquet").write_bytes(b"no Parquet")
    for build in (lambda: build_index("parquet", tmp_path), lambda: build_catalog(tmp_path)):
        with pytest.raises(ShardError, match=r"'b.parquet': its footer must be readable"):
            build()
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize("build", [build_index, build_catalog])
def test_what_cannot_be_built(build, tmp_path):
    def call(fmt, path=tmp_path, **settings):
        if build is build_index:
            return build_index(fmt, path, **settings)
        return build_catalog(path, format_name=fmt, **settings)

    name = build.__name__
    with pytest.raises(NotYetError, match=f"^{name}: format 'vortex' is not supported yet"):
        call("vortex")
    wanted = f"^{name}: format must be one of .*'jsonl', 'parquet'.*, got 'parqet'; did you mean"
    with pytest.raises(ValueError, match=wanted):
        call("parqet")
    with pytest.raises(DatasetError, match="on this machine, got 'hf://org/name/train'"):
        call("jsonl", "hf://org/name/train")
    with pytest.raises(FileNotFoundError, match="nothing lies at"):
        call("jsonl", tmp_path / "nowhere")
    with pytest.raises(DatasetError, match=r"no file with one of the suffixes .jsonl"):
        call("jsonl")
    lines(tmp_path, "a.jsonl", ["{}"])
    for workers in (0, -1, True, 2.0):
        with pytest.raises(PlanError, match=f"^{name}: max_workers must be a whole number of at"):
            call("jsonl", max_workers=workers)
    call("jsonl", max_workers=np.int64(1), progress=False)


@pytest.mark.parametrize("build", [build_index, build_catalog])
@pytest.mark.parametrize("path", [None, 5, b"data", "", "a\0b"])
def test_a_path_must_be_text(build, path, tmp_path):
    lines(tmp_path, "a.jsonl", ["{}"])
    before = ["jsonl"] if build is build_index else []
    name = build.__name__
    with pytest.raises(DatasetError, match=f"^{name}: dataset_dir must be a non-empty str"):
        build(*before, path)
    if path is not None:
        with pytest.raises(DatasetError, match=f"^{name}: output_path must be a non-empty str"):
            build(*before, tmp_path, output_path=path, progress=False)
    assert os.listdir(tmp_path) == ["a.jsonl"]


def test_what_is_written_does_not_take_the_place_of_a_directory(tmp_path, capsys):
    lines(tmp_path, "a.jsonl", ["{}"])
    (tmp_path / "index.json").mkdir()
    folder = str(tmp_path)
    wanted = rf"build_index: '{folder}/index.json' must be a file, .* it is a directory; move it"
    with pytest.raises(DatasetError, match=wanted):
        build_index("jsonl", folder, progress=False)
    with pytest.raises(DatasetError, match=f"output_path: '{folder}/index.json' must be a file"):
        build_index("jsonl", folder, output_path=folder, progress=False)
    assert cli.main(["index", folder]) == 1
    assert "zephon index: build_index: " in capsys.readouterr().err
    assert build_catalog(folder, progress=False) == f"{folder}/_catalog.arrow"
    (tmp_path / "_catalog.arrow").unlink()
    (tmp_path / "_catalog.arrow").mkdir()
    with pytest.raises(DatasetError, match=r"build_catalog: '.*_catalog.arrow' must be a file"):
        build_catalog(folder, progress=False)
    (tmp_path / "index.json").rmdir()
    build_index("jsonl", folder, progress=False)  # no catalogue is there that it would outdate
    assert opened(tmp_path).shards.listed_by.file == "index.json"


def test_the_module_as_a_command(tmp_path, capsys):
    lines(tmp_path, "a.jsonl", [{"text": "a"}])
    assert main(["jsonl", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/index.json\n"
    for words in ([], ["jsonl"], ["jsonl", str(tmp_path), "more"]):
        assert main(words) == 1
        assert (
            "usage: python -m zephon.build_index <format> <dataset_dir>" in capsys.readouterr().err
        )
    assert main(["parquet", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("Error: dataset ")
    assert shown.out == ""
    assert main(["jsonl", str(tmp_path / "nowhere")]) == 1
    assert "Error: " in capsys.readouterr().err


def test_the_module_runs(tmp_path):
    lines(tmp_path, "a.jsonl", [{"text": "a"}])
    command = (sys.executable, "-m", "zephon.build_index")
    done = subprocess.run((*command, "jsonl", tmp_path), capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/index.json\n"
    assert "Warning" not in done.stderr
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 1


def test_the_command_index(tmp_path, capsys):
    lines(tmp_path, "a.jsonl", [{"text": "a"}])
    assert cli.main(["index", str(tmp_path)]) == 0
    assert cli.main(["index", str(tmp_path), "--catalog"]) == 0
    assert cli.main(["index", str(tmp_path), "--output", str(tmp_path / "_x.json")]) == 0
    written = ["index.json", "_catalog.arrow", "_x.json"]
    assert capsys.readouterr().out.split() == [str(tmp_path / name) for name in written]
    assert opened(tmp_path).shards.listed_by.file == "_catalog.arrow"
    parquet(tmp_path, "b.parquet", [{"text": "b"}])
    assert cli.main(["index", str(tmp_path)]) == 1
    assert "zephon index: dataset" in capsys.readouterr().err
    assert cli.main(["index", str(tmp_path), "--format", "parquet"]) == 0
    assert opened(tmp_path, "parquet").counts().tolist() == [1]
    assert opened(tmp_path).kind == "parquet"  # the catalogue was made anew with the index


def test_many_files_share_what_they_have_in_common(tmp_path):
    parquet(tmp_path, "0.parquet", [{"text": "x", "a long name of a column": 1}] * 5)
    for number in range(1, 3000):
        os.link(tmp_path / "0.parquet", tmp_path / f"{number}.parquet")
    index = build_index("parquet", tmp_path, progress=False)
    dataset = opened(tmp_path)
    assert dataset.total() == 15_000
    assert dataset.shards.names.to_pylist() == sorted(f"{n}.parquet" for n in range(3000))
    assert os.path.getsize(index) < 3000 * 300


def types_of(dataset):
    return {
        field.name: (field.type, dataset.type_conflict(field.name)) for field in dataset.fields()
    }


def test_types_of_json_lines_are_those_of_all_rows_in_any_order(tmp_path):
    """Whatever is seen first: nulls and empty lists say nothing yet of what comes later."""
    late = [{"n": None, "m": []}] * 150 + [{"n": 1, "m": ["x"]}]
    found = []
    for order in ((late, [{"n": 0.5}]), ([{"n": 0.5}], late)):
        folder = tmp_path / str(len(found))
        for number, rows in enumerate(order):
            lines(folder, f"{number}.jsonl", rows)
        assert {told for _, told in types_of(opened(folder)).values()} != {""}
        build_index("jsonl", folder, progress=False)
        by_index = opened(folder)
        build_catalog(folder, progress=False)
        assert types_of(opened(folder)) == types_of(by_index)
        found.append(types_of(by_index) | {"m": by_index.types.type_of("m")})
    assert found == [{"n": (pa.float64(), ""), "m": pa.large_list(pa.large_string())}] * 2


@pytest.mark.parametrize("build", [build_index, build_catalog])
def test_types_that_do_not_go_together_name_both_rows(tmp_path, build):
    lines(tmp_path, "a.jsonl", [{"n": 1, "o": None, "t": "x"}])
    lines(tmp_path, "b.jsonl", [{"n": None, "o": {"a": 1}}, "", {"n": "2024-01-01", "t": "5"}])
    settings = {"progress": False}
    build("jsonl", tmp_path, **settings) if build is build_index else build(tmp_path, **settings)
    types = types_of(opened(tmp_path))
    assert types["t"] == (pa.large_string(), "")
    assert types["n"][0] is None
    conflict = "row 0 of shard 'a.jsonl' has int64, row 1 of shard 'b.jsonl' has large_string; "
    assert types["n"][1].startswith(conflict)
    assert types["o"][1].startswith("row 0 of shard 'b.jsonl' has an object; pass its type with ")


def test_a_name_that_is_no_utf8_has_no_type_and_stops_nothing(tmp_path):
    raw(tmp_path, "0.jsonl", b'{"\\ud800": 1, "a": 2}\n')
    plain = Dataset.from_path("plain", tmp_path)
    build_index("jsonl", tmp_path, progress=False)
    (shard,) = json.loads((tmp_path / "index.json").read_text())["shards"]
    assert shard["extra"]["types"] == {"a": [["int64", 0]]}
    indexed = Dataset.from_path("indexed", tmp_path)
    build_catalog(tmp_path, progress=False)
    mapped = Dataset.from_path("mapped", tmp_path)
    assert mapped.shards.listed_by.file == "_catalog.arrow"
    assert plain.fields() == indexed.fields() == mapped.fields()


def test_an_index_without_types_is_used_all_the_same(tmp_path):
    for name in "ab":
        lines(tmp_path, f"{name}.jsonl", [{"n": 1}])
    path = build_index("jsonl", tmp_path, progress=False)
    index = written(path)
    del index["shards"][1]["extra"]["types"]
    Path(path).write_text(json.dumps(index))
    dataset = opened(tmp_path)
    assert dataset.shards.listed_by is not None
    assert dataset.fields()[0].type is None
    assert "`zephon index " in dataset.type_conflict("n")
    index["shards"][0]["extra"]["types"] = {"n": "int64"}
    Path(path).write_text(json.dumps(index))
    with pytest.warns(RuntimeWarning, match="extra.types"):
        Dataset.from_path("d", tmp_path)
