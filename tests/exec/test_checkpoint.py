"""States as documents: both forms, damage of every kind, newer versions, and what is not inside."""

import base64
import copy
import json
import re
from dataclasses import replace
from unittest import mock

import msgspec
import numpy as np
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.exec.by_hand import Measured, Splits, lane_of, push
from tests.exec.parts_of_states import part_at, paths, with_part
from tests.exec.policies.small import HoldLast, UpTo
from tests.properties.recipes import lengths, packed, rows, source, token_dataset
from tests.written import dataset, in_order
from zephon import Pipeline
from zephon.errors import CheckpointError
from zephon.exec import lane_run
from zephon.exec.checkpoint import (
    FORMAT,
    VERSION,
    content_digest,
    from_any,
    to_bytes,
)
from zephon.exec.lane_states import lane_from_dict, lane_to_dict
from zephon.exec.lane_table import table_of, trees_of
from zephon.exec.policies import Chain, Wrap
from zephon.exec.saved_values import pack, unpack

INT64 = np.iinfo(np.int64)
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


# Integers as text


@settings(max_examples=200, deadline=None)
@given(arrays(np.int64, st.integers(0, 60), elements=st.integers(INT64.min, INT64.max)))
def test_integers_come_back_as_they_were(values):
    text = pack(values)
    assert json.loads(json.dumps(text)) == text
    found = unpack(text)
    assert found.dtype == np.int64
    assert found.tolist() == values.tolist()


@given(st.lists(st.booleans()), st.sampled_from(["?", "i1", "i2", "i4", "u1", "u4"]))
def test_narrower_types_and_booleans_come_back_as_numbers(values, kind):
    assert unpack(pack(np.array(values, kind))).tolist() == [int(v) for v in values]


def test_what_grows_evenly_is_stored_narrow():
    assert pack(np.arange(10**12, 10**12 + 5)).startswith("di8:")
    assert pack(np.arange(100)).startswith("di1:")
    assert len(pack(np.arange(100_000))) < 200


def test_what_jumps_about_is_stored_as_it_is():
    values = np.random.default_rng(3).integers(0, 100, 5000)
    assert pack(values).startswith("vi1:")
    assert pack(np.sort(values)).startswith("di1:")
    assert unpack(pack(values)).tolist() == values.tolist()


@pytest.mark.parametrize(
    "text", ["", "di1", "di3:AAAA", "di1:!!", "vi1:AAAA", "df8:", ":", "i8:KLUv/Q", "vi8:KLUv/Q"]
)
def test_text_that_holds_no_integers_is_refused(text):
    with pytest.raises(ValueError, match=r"\S"):
        unpack(text)


def test_a_column_cut_in_the_middle_of_a_number_is_refused():
    half = base64.b64encode(zstd.compress(b"\x01\x02\x03")).decode()
    with pytest.raises(ValueError, match="reshape"):
        unpack(f"di2:{half}")


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
    with pytest.raises(CheckpointError, match="this is no checkpoint of ours"):
        small().restore(foreign)


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


# Several policies


def twice_the_tokens(row):
    return 2 * len(row["input_ids"])


def shuffled_and_wrapped(pipe):
    return pipe.shuffle(7, seed=3).pack_flat(11, algorithm="wrap").batch(2, drop_last=False)


def shuffled_twice(pipe):
    pipe.shuffle(5, algorithm="block").pack_flat(16, num_bins=3, pad_token_id=0)
    return pipe.shuffle(4).batch(1)


def mixed_and_packed(pipe):
    pipe.ensure_mixture(max_buffer_size=6)
    pipe.pack_flat(16, algorithm="best_fit_decreasing", candidate_pool_size=8, pad_token_id=0)
    return pipe.batch(1)


def measured_and_mixed(pipe):
    pipe.pack_sequences(30, num_bins=4, length_fn=twice_the_tokens)
    return pipe.ensure_mixture(weight_by="samples")


PLANS = (shuffled_and_wrapped, shuffled_twice, mixed_and_packed, measured_and_mixed)


def planned(plan, **work):
    found = [
        token_dataset("prose", lengths(1, 30, 12), 3),
        token_dataset("code", lengths(2, 20), 2),
    ]
    settings = {"chunk_size": 8, "shuffle_within_shard": True, **work}
    pipe = Pipeline(source(found, {"prose": 0.7, "code": 0.3}, **settings))
    return plan(pipe).options(runner="inline")


def payloads(item):
    return [record.payload for record in getattr(item, "records", [item])]


@pytest.mark.filterwarnings("ignore:packing dropped")
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("counted", ["rows", "tokens"])
def test_every_plan_goes_on_from_every_position(plan, counted):
    """To the last row, which only the end of the data let go."""
    work = {"mixture_unit": "tokens"} if counted == "tokens" else {}
    straight = planned(plan, **work)
    items = iter(straight)
    states, found = [straight.checkpoint()], []
    for item in items:
        found.append(payloads(item))
        states.append(straight.checkpoint())
    ends = [trees_of(state["lanes"])[0]["ended"].tolist() for state in states]
    assert (ends[0], ends[-1]) == ([0], [1])
    for at, saved in enumerate(states):
        again = planned(plan, **work).restore(json.loads(json.dumps(saved)))
        assert again.checkpoint() == saved
        assert [payloads(item) for item in again] == found[at:]


def lane_of_two_policies():
    """Write down a lane of two policies that both hold documents, with splits and measures."""
    chain = Chain([UpTo(9), HoldLast(2), HoldLast(1)])
    with mock.patch.object(lane_run, "TICK", 8):
        run = lane_of([4] * 50, chain, measures=("length", "weight"))
        list(push(run, [4] * 50, [50], Measured(), Splits()))
    return chain, run.history.state_at(run.rows_placed)


def test_a_lane_reads_back_as_it_was_written():
    _, state = lane_of_two_policies()
    saved = json.loads(json.dumps(table_of({0: lane_to_dict(state)})))
    again = lane_from_dict(0, trees_of(saved)[0])
    assert table_of({0: lane_to_dict(again)}) == saved
    assert len(again.tick.stages) == 3
    assert [len(held.units) for held in again.tick.stages[1:]] == [2, 1]
    for held, before in zip(again.tick.stages, state.tick.stages, strict=True):
        assert held.units.splits.tolist() == before.units.splits.tolist()
        assert held.units.start.tolist() == before.units.start.tolist()
        assert held.units.length.tolist() == before.units.length.tolist()
        assert {k: v.tolist() for k, v in held.numbers.items()} == {
            k: v.tolist() for k, v in before.numbers.items()
        }
    assert again.tick.known.measures.tolist() == state.tick.known.measures.tolist()
    assert again.tick.known.refs.child.tolist() == state.tick.known.refs.child.tolist()
    assert again.log.measures.tolist() == state.log.measures.tolist()


def test_a_document_that_several_pieces_belong_to_is_written_once():
    chain = Chain([Wrap(max_length=3), HoldLast(7)])
    run = lane_of([20] * 1025, chain)
    list(push(run, [20] * 1025, [1025]))
    saved = lane_to_dict(run.state_at(run.rows_placed))
    assert saved["tick"].tolist() == [1024]
    assert saved["documents"]["row"].tolist() == [1022, 1023]
    assert saved["stages"][0]["document"].tolist() == [1]
    assert saved["stages"][1]["document"].tolist() == [0, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (("stages", 1, "document"), [10**6] * 6),  # documents that are not there
        (("stages", 1, "document"), [-1] * 6),
        (("stages", 1, "document"), [0]),  # fewer pieces than starts
        (("stages", 1, "sizes"), [1]),  # units that do not take all pieces
        (("stages", 1, "sizes"), [-1, 2]),
        (("stages", 1, "start"), []),
        (("stages", 2, "length"), [1] * 99),
        (("documents", "length"), [1]),
        (("documents", "measures", 0), [1]),
        (("documents", "child"), []),
        (("log", "measures", 0), [1]),
        (("log", "length"), [1]),
        (("drawn", "tokens"), [1, 2]),
        (("drawn", "filtered"), []),
    ],
)
def test_parts_of_a_lane_that_do_not_fit_are_refused(path, values):
    saved = lane_to_dict(lane_of_two_policies()[1])
    with pytest.raises(CheckpointError, match="restore: lane 0 of the checkpoint is damaged"):
        lane_from_dict(0, with_part(saved, path, np.array(values, np.int64)))


def test_a_draw_that_gave_no_document_for_no_known_reason_is_refused():
    _, state = lane_of_two_policies()
    length = state.log.length.copy()
    assert len(length)
    length[0] = -3
    lost = replace(state, log=replace(state.log, length=length))
    assert lane_from_dict(0, lane_to_dict(lost)).log.length.tolist() == length.tolist()
    length[0] = -4
    with pytest.raises(CheckpointError, match="a document of -4 tokens"):
        lane_from_dict(0, lane_to_dict(lost))


def test_states_of_other_policies_are_refused():
    chain, state = lane_of_two_policies()
    saved = lane_to_dict(state)
    message = "restore: lane 0 of the checkpoint does not fit the steps of this pipeline"
    with pytest.raises(CheckpointError, match=message):
        fewer = lane_from_dict(0, {**saved, "stages": saved["stages"][:2]})
        lane_of([4] * 50, chain, measures=("length", "weight"), state=fewer)
    with pytest.raises(CheckpointError, match=message):
        other = lane_from_dict(0, with_part(saved, ("stages", 1, "numbers"), {}))
        lane_of([4] * 50, chain, measures=("length", "weight"), state=other)


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
