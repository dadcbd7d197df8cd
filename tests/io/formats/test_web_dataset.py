"""WebDataset: samples of tar files as ``tarfile`` has them, odd ones, and damaged files."""

import base64
import io
import json
import random
import tarfile

import pytest

from tests.written import PACK, pipeline
from zephon import Dataset
from zephon.build_index import build_index
from zephon.errors import DataError, ShardError
from zephon.io.fields import Column
from zephon.io.formats import web_dataset

pytestmark = pytest.mark.filterwarnings("ignore:dataset 'words'")


def tar(*members, form=tarfile.PAX_FORMAT, **settings):
    """Write a tar file of names and contents, or of whole ``TarInfo``."""
    sink = io.BytesIO()
    with tarfile.open(
        fileobj=sink, mode="w", format=form, errors="surrogateescape", **settings
    ) as file:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                file.addfile(member)
                continue
            name, content = member
            made = tarfile.TarInfo(name)
            made.size = len(content)
            file.addfile(made, io.BytesIO(content))
    return sink.getvalue()


def odd(name, kind, target=""):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


def rows_of(folder, content, file="a.tar", **how):
    folder.mkdir(exist_ok=True)
    (folder / file).write_bytes(content)
    return [record.payload for record in pipeline(Dataset.from_path("words", folder, **how))]


def test_values_are_those_of_their_extensions(tmp_path):
    content = tar(
        ("a/1.txt", "\ufeffä\r\n".encode()),
        ("a/1.JSON", b'{"n": [1, null]}'),
        ("a/1.cls", b"-7\n"),
        ("a/1.seg.png", b"\x89PNG"),
        ("a/1.en.text", b"en"),
        ("b.x/1.txt", b""),
        ("b.x/1.bin", b""),
    )
    assert rows_of(tmp_path, content) == [
        {
            "__key__": "a/1",
            "txt": "ä\r\n",
            "json": {"n": [1, None]},
            "cls": -7,
            "seg.png": b"\x89PNG",
            "en.text": "en",
        },
        {"__key__": "b.x/1", "txt": "", "bin": b""},
    ]


@pytest.mark.parametrize("end", ["", ".gz", ".zst", ".bz2", ".xz"])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_sample_is_what_tarfile_reads(tmp_path, monkeypatch, form, end):
    monkeypatch.setattr(web_dataset, "_GROUP_BYTES", 5000)
    chance = random.Random(f"{form} {end}")
    members = []
    for number in range(60):
        longest = 90 if form == tarfile.USTAR_FORMAT else 300
        folder = chance.choice(["", "d/", "d.e/", "é" * chance.randrange(1, longest // 2) + "/"])
        if chance.random() < 0.2:
            members.append(odd(f"{folder}d{number}", tarfile.DIRTYPE))
        for extension in chance.sample(["txt", "bin", "jpg", "seg.png"], chance.randrange(1, 4)):
            size = chance.choice([0, 1, 511, 512, 513, 3000])
            text = bytes(chance.randrange(97, 122) for _ in range(size))
            members.append((f"{folder}{number}.{extension}", text))
            if chance.random() < 0.2:
                members.append((f"{folder}._{number}.{extension}", b"hidden"))
    content = tar(*members, form=form)
    wanted = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as file:
        for member in file:
            folder, slash, base = member.name.rpartition("/")
            if member.isfile() and not base.startswith("."):
                key, _, field = base.partition(".")
                content_of = file.extractfile(member)
                assert content_of is not None
                value = content_of.read()
                row = wanted.setdefault(folder + slash + key, {"__key__": folder + slash + key})
                row[field] = value.decode() if field == "txt" else value
    assert rows_of(tmp_path, PACK.get(end, bytes)(content), f"a.tar{end}") == [*wanted.values()]


GOOD = ("ok.txt", b"good")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("a.txt", b"\xff")], "member 'a.txt' must be UTF-8, its byte 0 is not"),
        ([("a.json", b"{")], "member 'a.json' must be JSON, got '{'"),
        ([("a.cls", b"1.5")], "member 'a.cls' must be an integer, got '1.5'"),
        ([("a.txt", b"1"), ("a.TXT", b"2")], "'txt' came before"),
        ([odd("a.txt", tarfile.SYMTYPE, "ok.txt")], "it is a symbolic link"),
        ([odd("a.txt", tarfile.LNKTYPE, "ok.txt")], "it is a hard link"),
        ([odd("a.txt", tarfile.CHRTYPE)], "it is a device"),
        ([("a\udcff.txt", b"1")], "must have a name in UTF-8"),
    ],
)
def test_an_odd_sample_is_one_bad_row(tmp_path, members, message):
    content = tar(GOOD, *members, GOOD, form=tarfile.GNU_FORMAT)
    found = rows_of(tmp_path, content, on_error="skip")
    assert found == [{"__key__": "ok", "txt": "good"}] * 2
    with pytest.raises(DataError, match=r"shard 'a.tar', row 1 \(byte 1024\): ") as told:
        rows_of(tmp_path, content)
    assert message in str(told.value)


def test_a_bad_sample_is_written_down_as_it_stands(tmp_path):
    content = tar(GOOD, ("a.txt", b"\xff"), form=tarfile.GNU_FORMAT)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.tar").write_bytes(content)
    made = pipeline(Dataset.from_path("words", tmp_path / "data", on_error="quarantine"))
    assert len(list(made.options(quarantine=str(tmp_path / "bad")))) == 1
    (told,) = (json.loads(path.read_text()) for path in (tmp_path / "bad").rglob("*.jsonl"))
    assert (told["row"], told["byte"]) == (1, 1024)
    assert base64.b64decode(told["raw_base64"]) == content[1024:1537]


def test_sparse_files_are_bad_rows(tmp_path):
    header = tarfile.TarInfo("a.bin")
    header.type = tarfile.GNUTYPE_SPARSE
    found = rows_of(tmp_path, tar(GOOD, header, GOOD), on_error="skip")
    assert [row["txt"] for row in found] == ["good", "good"]


def test_a_key_that_comes_again_is_another_row(tmp_path):
    found = rows_of(tmp_path, tar(("a.txt", b"1"), ("b.txt", b"2"), ("a.json", b"3")))
    assert found == [
        {"__key__": "a", "txt": "1"},
        {"__key__": "b", "txt": "2"},
        {"__key__": "a", "json": 3},
    ]


def test_what_is_no_sample_is_passed_over(tmp_path):
    others = [("README", b"x"), (".DS_Store", b"x"), ("d/._a.txt", b"x"), ("a.", b"x")]
    assert rows_of(tmp_path, tar(odd("d", tarfile.DIRTYPE), *others, GOOD)) == [
        {"__key__": "ok", "txt": "good"}
    ]


def test_archives_one_behind_another_are_all_read(tmp_path):
    content = tar(GOOD) + tar(("b.txt", b"more"))
    assert [row["txt"] for row in rows_of(tmp_path, content)] == ["good", "more"]


def test_the_zeros_at_the_end_may_be_missing(tmp_path):
    content = tar(GOOD, form=tarfile.GNU_FORMAT)
    for stop in (1024, 512 + 4, 1024 + 100):
        assert len(rows_of(tmp_path, content[:stop])) == 1


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tar(GOOD)[: 512 + 3], "it is cut off: member 'ok.txt' lacks 1 bytes at its end"),
        (tar(GOOD, GOOD)[: 1024 + 300], "it is cut off in the header at byte 1024"),
        (tar(("a.txt", b""))[:512] + b"x" * 512, "the header at byte 512 is damaged"),
        (tar(("a" * 200 + ".txt", b"1"), form=tarfile.GNU_FORMAT)[:1024], "cut off behind the h"),
        (b"no tar file at all" * 50, "the header at byte 0 is damaged"),
    ],
)
def test_a_damaged_file_is_refused_and_located(tmp_path, content, message, end):
    with pytest.raises(ShardError, match=f"shard 'a.tar{end}': .*{message}"):
        rows_of(tmp_path, PACK.get(end, bytes)(content), f"a.tar{end}")


def test_an_empty_archive_has_no_rows(tmp_path):
    (tmp_path / "b.tar").write_bytes(b"")
    (tmp_path / "c.tar").write_bytes(tar())
    assert [row["txt"] for row in rows_of(tmp_path, tar(GOOD))] == ["good"]


def samples(count):
    return tar(
        *(
            member
            for n in range(count)
            for member in ((f"{n:03}.txt", f"text {n}".encode()), (f"{n:03}.bin", bytes([n])))
        )
    )


def test_fields_index_and_columns(tmp_path, monkeypatch, read):
    monkeypatch.setattr(web_dataset, "_GROUP_BYTES", 4096)
    (tmp_path / "a.tar").write_bytes(samples(20))
    build_index("webdataset", tmp_path, progress=False)
    (entry,) = json.loads((tmp_path / "index.json").read_text())["shards"]
    assert entry["num_rows"] == 20 and entry["extra"]["format"] == "webdataset"
    assert len(entry["extra"]["blocks"]["rows"]) > 2
    dataset = Dataset.from_path("words", tmp_path)
    assert {field.name for field in dataset.fields()} == {"__key__", "txt", "bin"}
    found = read(dataset, Column("txt", "text"))
    assert found.values(range(20)) == [f"text {n}" for n in range(20)]


@pytest.mark.parametrize("runner", ["inline", "process"])
def test_tokens_resume_in_the_middle(tmp_path, monkeypatch, tokenizer_file, runner):
    monkeypatch.setattr(web_dataset, "_GROUP_BYTES", 4096)
    (tmp_path / "a.tar").write_bytes(samples(40))

    def made():
        job = pipeline(Dataset.from_path("words", tmp_path)).tokenize(
            tokenizer_id=tokenizer_file, field="txt", special_tokens="none"
        )
        return job.options(runner=runner)

    def ids(records):
        return [list(record.payload["input_ids"]) for record in records]

    whole = ids(made())
    assert len(whole) == 40 and len({tuple(each) for each in whole}) > 30
    job = made()
    records = iter(job)
    first = ids(next(records) for _ in range(13))
    state = job.state_dict()
    again = made()
    again.load_state_dict(state)
    assert first + ids(again) == whole
