"""Rows and tokens that functions drop where rows are seen in order; and their errors there."""

import warnings

import pytest

from tests.written import in_order
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import ExecutionError
from zephon.ops import tombstones_for_record
from zephon.types import SampleRecord

ROWS = 150


def source(**settings):
    rows = [{"n": n, "input_ids": [n] * (1 + n % 7)} for n in range(ROWS)]
    return in_order(Dataset.from_dict("d", {0: InMemoryShard(rows)}), **settings)


def keep_some(row):
    return None if row["n"] % 3 == 1 else row


def keep_some_packed(row):
    return None if row["input_ids"][0] % 4 == 0 else row


def even(records):
    return [record for record in records if record.payload["n"] % 2 == 0]


def hold(state, records):
    state = [*state, *records]
    return state[-5:], state[:-5]


def stateful(pipe, push=lambda state, records: (state, records), **settings):
    return pipe.stateful_transform("s", init_state=list, push=push, **settings)


def packed(pipe):
    return pipe.pack_flat(10, algorithm="wrap", tokens_field="input_ids")


CHAINS = {
    "map behind a shuffle": lambda p: p.shuffle(10).map_transform(keep_some),
    "operator behind a shuffle": lambda p: p.shuffle(10).add_op(
        "o", process_many=even, preserves_cursor_order=True
    ),
    "map behind what holds": lambda p: stateful(p, hold, flush=list).map_transform(keep_some),
    "map between": lambda p: stateful(p).map_transform(keep_some).shuffle(20),
    "written down": lambda p: stateful(
        p.shuffle(6),
        lambda s, r: (s, even(r)),
        flush=lambda s: [],
        snapshot=lambda s: s,
        restore=lambda s: s,
    ),
    "map behind packing": lambda p: packed(p).map_transform(keep_some_packed),
    "map behind packing, shuffled": lambda p: packed(p).map_transform(keep_some_packed).shuffle(12),
    "packed after all": lambda p: packed(stateful(p.shuffle(8).map_transform(keep_some))),
}


def made(chain, runner="inline"):
    return CHAINS[chain](Pipeline(source())).options(
        runner=runner, auto_validation="off", flush_every_k_chunks=1
    )


@pytest.mark.parametrize("chain", CHAINS)
def test_every_drop_is_counted_at_every_position_and_after_every_restore(chain):
    pipe = made(chain)
    delivered, count, states, accounts = 0, 0, [], []
    for record in pipe:
        count += 1
        delivered += sum((record.meta.component_token_counts or {}).values())
        (account,) = pipe.accounting().values()
        dropped = sum(account["tokens_dropped"].values())
        assert account["tokens_delivered"] == delivered
        assert account["tokens_made"] == delivered + account["tokens_held"] + dropped
        states.append(pipe.checkpoint())
        accounts.append(pipe.accounting())
    (end,) = pipe.accounting().values()
    assert end["rows_drawn"] == ROWS
    if "pack" not in chain:
        assert end["rows_dropped"] == ROWS - count
    elif "behind packing" in chain:
        assert set(end["tokens_dropped"]) - {"end_of_data"} == {"function"}
    else:
        assert end["rows_dropped"] == sum(n % 3 == 1 for n in range(ROWS))
    for at in (0, len(states) // 2, len(states) - 1):
        again = made(chain, "threads").restore(states[at])
        assert (again.accounting(), again.checkpoint()) == (accounts[at], states[at])
        for number, _ in enumerate(again, at + 1):
            assert again.accounting() == accounts[number]
            assert again.checkpoint() == states[number]
        assert again.accounting() == pipe.accounting()


def test_what_a_state_keeps_for_ever_is_counted_and_said_once():
    pipe = stateful(Pipeline(source()), hold, fingerprint="1").options(
        runner="inline", auto_validation="off"
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert len(list(pipe)) == ROWS - 5
    assert pipe.accounting()["d"]["rows_dropped"] == 5
    found = [str(each.message) for each in said if "pass flush=" in str(each.message)]
    assert len(found) == 1
    assert "stateful_transform 's': 5 rows were pushed that never came out" in found[0]


@pytest.mark.parametrize("transform", [None, list])
def test_what_is_dropped_on_purpose_is_counted_and_nothing_is_said(transform):
    def odd(state, records):
        drops = [tombstones_for_record(r) if r.payload["n"] % 2 else [r] for r in records]
        return state, [each for group in drops for each in group]

    pipe = Pipeline(source()).stateful_transform(
        "odd", init_state=int, push=odd, transform=transform, fingerprint="1"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [r.payload["n"] % 2 for r in pipe] == [0] * (-(-ROWS // 2))
    assert pipe.accounting()["d"]["rows_dropped"] == ROWS // 2


@pytest.mark.parametrize("lanes", [1, 5])
@pytest.mark.parametrize("kept", [10, 5, 0])
@pytest.mark.parametrize("ending", [{}, {"exhausted_policy": "stop"}])
def test_a_pass_over_exact_tokens_ends_where_its_last_rows_are_dropped(lanes, kept, ending):
    rows = [{"n": n, "input_ids": [n]} for n in range(10)]
    data = Dataset.from_dict("d", {0: InMemoryShard(rows)})
    pipe = Pipeline(in_order(data, mixture_unit="tokens", **ending)).options(
        runner="inline", canonical_replicas=lanes, auto_validation="off"
    )
    pipe = pipe.map_transform(lambda row: row if row["n"] < kept else None)
    pipe = pipe.pack_flat(1, algorithm="wrap", tokens_field="input_ids")
    assert sorted(int(r.payload["input_ids"][0]) for r in pipe) == list(range(kept))
    account = pipe.accounting()["d"]
    assert (account["rows_drawn"], account["rows_dropped"]) == (10, 10 - kept)


BROKEN = []


def maybe(row):
    if BROKEN and (row["n"] if "n" in row else row["input_ids"][0]) in BROKEN:
        raise ValueError("no")
    return row


ONE_BY_ONE = {
    "behind a shuffle": lambda p: p.shuffle(10).map_transform(maybe, fingerprint="1"),
    "below a state": lambda p: stateful(p.map_transform(maybe, fingerprint="1").shuffle(10)),
    "behind packing": lambda p: packed(p).map_transform(maybe, fingerprint="1"),
    "behind a state": lambda p: stateful(p).map_transform(maybe, fingerprint="1"),
}


@pytest.mark.parametrize("chain", ONE_BY_ONE)
def test_rows_before_a_bad_one_are_delivered_and_a_restore_goes_on_at_it(chain, monkeypatch):
    def start():
        return ONE_BY_ONE[chain](Pipeline(source())).options(runner="inline", auto_validation="off")

    def numbers(pipe):
        for record in pipe:
            payload = record.payload
            yield [payload["n"]] if "n" in payload else list(map(int, payload["input_ids"]))

    whole = list(numbers(start()))
    bad = next(each[0] for each in whole[20:] if chain != "behind packing" or each[0] != 0)
    monkeypatch.setitem(globals(), "BROKEN", [bad])
    pipe, found = start(), []
    place = rf"dataset 'd', shard '0', row {bad}; mend the function"
    with pytest.raises(ExecutionError, match=place):
        for each in numbers(pipe):
            found.append(each)
    state = pipe.checkpoint()
    monkeypatch.setitem(globals(), "BROKEN", [])
    if chain in ("behind packing", "behind a state"):  # a map goes below a shuffle
        assert len(found) == next(i for i, each in enumerate(whole) if each[0] == bad)
    assert found == whole[: len(found)]
    assert (len(found) > 8) == (chain != "below a state")
    again = start().restore(state)
    assert again.checkpoint() == state
    assert found + list(numbers(again)) == whole


def test_a_function_on_groups_gives_the_groups_before_the_bad_one():
    def fails(records):
        if any(record.payload["n"] == 100 for record in records):
            raise ValueError("no")
        return [SampleRecord(record.meta, record.payload) for record in records]

    pipe = stateful(Pipeline(source()), lambda s, r: (s, fails(r)), fingerprint="1").options(
        runner="inline", auto_validation="off"
    )
    found = []
    with pytest.raises(ExecutionError, match="that begin on dataset 'd', shard '0', row 64;"):
        for record in pipe:
            found.append(record.payload["n"])
    assert found == list(range(64))
