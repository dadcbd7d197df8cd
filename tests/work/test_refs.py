import numpy as np

from zephon.work.refs import Refs


def make(count: int, start: int = 0) -> Refs:
    numbers = np.arange(start, start + count)
    return Refs.of(
        component=(numbers % 2).astype(np.int32),
        shard=numbers // 10,
        row=numbers % 10,
        pass_index=np.zeros(count, dtype=np.int32),
        ordinal=numbers,
    )


def columns(refs: Refs) -> list[list]:
    return [getattr(refs, name).tolist() for name in Refs.__slots__]


def test_whole_rows_are_their_own_last_child() -> None:
    refs = make(5)
    assert len(refs) == 5
    assert refs.child.tolist() == [0] * 5
    assert refs.last_child.all()


def test_columns_keep_their_types() -> None:
    wanted = {
        "component": np.int32,
        "shard": np.int64,
        "row": np.int64,
        "pass_index": np.int32,
        "ordinal": np.int64,
        "child": np.int32,
        "last_child": np.bool_,
    }
    tables = (
        make(3),
        Refs.empty(),
        Refs.concat([]),
        Refs.concat([make(2), make(1)]),
        make(3).take(np.array([2, 0])),
        make(3).slice(1, 2),
    )
    for refs in tables:
        assert {name: getattr(refs, name).dtype for name in wanted} == wanted


def test_take_chooses_by_position_or_mask() -> None:
    refs = make(6)
    assert refs.take(np.array([4, 1, 1])).ordinal.tolist() == [4, 1, 1]
    assert columns(refs.take(refs.component == 1)) == columns(refs.take(np.array([1, 3, 5])))


def test_slices_put_together_give_the_table() -> None:
    refs = make(25)
    parts = [refs.slice(0, 10), refs.slice(10, 10), refs.slice(10, 25)]
    assert columns(Refs.concat(parts)) == columns(refs)
    assert np.shares_memory(parts[0].row, refs.row)
    assert len(Refs.empty()) == 0
