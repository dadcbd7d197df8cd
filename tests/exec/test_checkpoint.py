"""States as documents: both forms, damage of every kind, newer versions, and what is not inside."""

import copy
import json
import re

import msgspec
import numpy as np
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.parts_of_states import part_at, paths, with_part
from tests.properties.recipes import packed, rows, token_dataset
from tests.written import dataset, in_order
from zephon import Pipeline
from zephon.errors import CheckpointError
from zephon.exec.checkpoint import (
    FORMAT,
    VERSION,
    content_digest,
    from_any,
    to_bytes,
)
from zephon.exec.saved_values import unpack

HEAD = b"ZEPHONCP" + VERSION.to_bytes(2, "big")


def small():
    """Eight documents and rows of eight tokens: a state of a few hundred bytes."""
    return packed([token_dataset("prose", [3, 5, 2, 9, 4, 7, 1, 6], 2)], max_length=8, microbatch=1)


@pytest.fixture(scope="module")
def state():
    pipe = small()
    items = iter(pipe)
    for _ in range(3):
        next(items)
    saved = pipe.checkpoint()
    items.close()
    return saved


@pytest.fixture(scope="module")
def rest(state):
    found = rows(small().restore(state))
    assert len(found) == 1
    return found


def outcome(saved):
    """Restore and run; give the rows, or None if the state was refused as it should be."""
    try:
        return rows(small().restore(saved))
    except CheckpointError as error:
        assert str(error).startswith("restore: ")
        assert "\n" not in str(error)
        return None


# Both forms


def test_a_state_survives_json_and_bytes(state, rest):
    assert json.loads(json.dumps(state)) == state
    data = to_bytes(state)
    assert isinstance(data, bytes)
    for form in (data, bytearray(data), memoryview(data), state, json.loads(json.dumps(state))):
        assert from_any(form) == state
        assert outcome(form) == rest


def test_the_pipeline_gives_either_form_of_one_state(state):
    pipe = small().restore(state)
    assert pipe.checkpoint() == state
    data = pipe.checkpoint(as_bytes=True)
    assert from_any(data) == state
    assert small().restore(data).checkpoint(as_bytes=True) == data


def test_equal_positions_give_equal_bytes():
    def at_three(**options):
        pipe = packed(canonical_replicas=2, **options)
        items = iter(pipe)
        for _ in range(3):
            next(items)
        data = pipe.checkpoint(as_bytes=True)
        items.close()
        return data

    assert at_three() == at_three() == at_three(runner="threads", memory_budget="1kb")


def test_a_state_that_was_restored_is_left_as_it_was(state, rest):
    before = copy.deepcopy(state)
    pipe = small().restore(state)
    assert rows(pipe) == rest
    pipe.checkpoint()
    assert state == before


def test_a_caller_that_changes_its_state_afterwards_changes_no_run(state, rest):
    mine = copy.deepcopy(state)
    pipe = small().restore(mine)
    mine["lanes"]["columns"].clear()
    mine["recipe"]["source"]["seed"] = 99
    assert rows(pipe) == rest


@pytest.mark.parametrize("thing", [None, 5, "state", {1}, 1.5, object()])
def test_what_is_neither_dict_nor_bytes_is_a_type_error(thing):
    with pytest.raises(TypeError, match=f"checkpoint dict or bytes, got {type(thing).__name__}"):
        small().restore(thing)


# Damage


def test_bytes_cut_anywhere_are_refused(state):
    data = to_bytes(state)
    for length in range(len(data)):
        with pytest.raises(CheckpointError, match="restore: "):
            small().restore(data[:length])


def test_bytes_with_more_behind_them_are_refused(state):
    with pytest.raises(CheckpointError):
        small().restore(to_bytes(state) + b"\x00")


def test_one_flipped_bit_is_found(state, rest):
    """A bit that says nothing may flip; one that does must never give other rows."""
    data = to_bytes(state)
    for at in range(len(data)):
        for bit in (0, 3, 7):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            assert outcome(damaged) in (None, rest), (at, bit)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(["", "head", "head and version", "zstd"]))
def test_foreign_bytes_are_refused(noise, like):
    head = {
        "": b"",
        "head": b"ZEPHONCP",
        "head and version": HEAD,
        "zstd": HEAD,
    }[like]
    body = zstd.compress(noise) if like == "zstd" else noise
    with pytest.raises(CheckpointError):
        small().restore(head + body)


@pytest.mark.parametrize(
    "content", [None, 5, "state", [1, 2], {}, {1: 2}, {"format": "zephon.checkpoint"}, [[[]]]]
)
def test_bytes_that_hold_something_else_are_refused(content):
    data = HEAD + zstd.compress(msgspec.msgpack.encode(content))
    with pytest.raises(CheckpointError):
        small().restore(data)


@pytest.mark.parametrize(
    "foreign",
    [
        {},
        {"version": 2, "world": {}, "inflight": {}, "progress": {}},
        {"engine": {}},
        {"format": "other", "version": 1},
        {"format": None},
    ],
)
def test_a_dict_of_somebody_else_is_refused(foreign):
    with pytest.raises(CheckpointError, match="this is no checkpoint of ours") as caught:
        small().restore(foreign)
    assert "what state_dict() returned goes to load_state_dict()" in str(caught.value)


@pytest.mark.parametrize("key", ["version", "recipe", "position", "lanes", "lane_count", "digest"])
def test_a_missing_part_is_refused(state, key):
    with pytest.raises(CheckpointError):
        small().restore({k: v for k, v in state.items() if k != key})


@pytest.mark.parametrize("value", [None, -1, "x", [], {}, 1.5, 10**30, True, float("nan"), b"x"])
def test_a_part_of_another_kind_is_found(state, value):
    for path in paths(state):
        changed = with_part(state, path, value)
        if changed != state:
            assert outcome(changed) is None, path


def test_a_number_off_by_one_is_found(state):
    found = 0
    for path in paths(state):
        number = part_at(state, path)
        if type(number) is int:
            found += 1
            for by in (-1, 1):
                assert outcome(with_part(state, path, number + by)) is None, path
    assert found > 10


# Versions


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (7, f"version 7 is newer than the supported version {VERSION}; upgrade to"),
        (1, f"version 1 is older than the supported version {VERSION}; restore it with"),
    ],
)
def test_another_version_is_refused_in_both_forms(state, version, message):
    """A dict says which release wrote it; of the bytes only their beginning is looked at."""
    with pytest.raises(CheckpointError, match=f"{message} zephon 0.2.7, which wrote it"):
        small().restore({**state, "version": version, "library": "0.2.7"})
    data = bytearray(to_bytes(state))
    data[8:10] = version.to_bytes(2, "big")
    with pytest.raises(CheckpointError, match=f"{message} the release that wrote it"):
        small().restore(bytes(data))


# What is inside


def texts(value):
    """List every text of a state, and the content of packed columns."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)
    elif isinstance(value, str):
        yield value
        if re.fullmatch(r"[dv]i[1248]:.*", value):
            yield " ".join(map(str, unpack(value).tolist()))


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "in_memory"])
def test_no_text_of_the_data_and_no_secret_is_inside(tmp_path, monkeypatch, tokenizer_file, kind):
    monkeypatch.setenv("HF_TOKEN", "hf_SecretSecret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "Aws/SecretSecret")
    words = [{"text": f"Xylophone Zeppelin {i} " * 9, "key": "sk-SecretSecret"} for i in range(30)]
    folder = tmp_path / "bucket-of-ours"
    pipe = Pipeline(in_order(dataset(kind, folder, words), seed=3))
    pipe.tokenize(tokenizer_id=tokenizer_file, field="text").pack_flat(50, algorithm="wrap")
    pipe.batch(1).options(runner="inline")
    items = iter(pipe)
    tokens = [t for _ in range(5) for t in next(items).records[0].payload["input_ids"]]
    saved, data = pipe.checkpoint(), pipe.checkpoint(as_bytes=True)
    items.close()
    inside = "\n".join(texts(saved))
    for secret in ("Xylophone", "Zeppelin", "Secret", "bucket-of-ours", str(tmp_path)):
        assert secret not in inside
        assert secret.encode() not in data
        assert secret.encode() not in zstd.decompress(data[10:])
    run = " ".join(map(str, tokens[3:9]))
    assert run not in inside


def test_a_state_holds_references_and_no_tokens():
    """Documents of 50,000 tokens are held open; the state stays as small as for short ones."""
    lengths = [50_000, 70_000, 60_000]
    pipe = packed([token_dataset("prose", lengths, 1)], max_length=512, microbatch=1)
    items = iter(pipe)
    for _ in range(150):
        next(items)
    data = pipe.checkpoint(as_bytes=True)
    items.close()
    assert len(data) < 2000
    assert len(rows(pipe.restore(data))) == sum(lengths) // 512 - 150


def test_bytes_hold_whatever_the_dict_holds():
    """Such as the state of a generator of NumPy, whose integers are wider than 64 bits."""
    values = {
        "generator": np.random.PCG64(3).state,
        "wide": [1 << 64, -(1 << 63) - 1, (1 << 64) - 1, True],
        "broken": ["\ud800", {"\udfff": [1 << 70], "sound": "\u00e9"}],
    }
    state = {"format": FORMAT, "version": VERSION, "x": values}
    state["digest"] = content_digest(state)
    back = from_any(to_bytes(state))
    assert back == state
    assert back["x"]["wide"][3] is True
    assert json.dumps(back) == json.dumps(state)
