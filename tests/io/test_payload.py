import numpy as np

from zephon.io.payload import Payload, RowSource


class Numbers(RowSource):
    def __init__(self, start):
        self.start = start

    def row(self, index):
        return {"n": self.start + index}


def payload(*pairs, sources):
    source_of, row_of = zip(*pairs, strict=True)
    return Payload(tuple(sources), np.array(source_of, np.int32), np.array(row_of, np.int64))


def numbers(rows):
    return [rows.row(i)["n"] for i in range(len(rows))]


def test_rows_come_in_the_order_of_the_references():
    rows = payload((1, 0), (0, 2), (1, 5), (1, 5), sources=[Numbers(0), Numbers(100)])
    assert numbers(rows) == [100, 2, 105, 105]


def test_take_lets_go_of_unused_sources():
    rows = payload((0, 1), (1, 1), (2, 1), sources=[Numbers(0), Numbers(100), Numbers(200)])
    taken = rows.take(np.array([2, 0, 2]))
    assert numbers(taken) == [201, 1, 201]
    assert repr(taken) == "Payload(3 rows in 2 groups)"
    assert numbers(rows) == [1, 101, 201]


def test_a_part_is_what_take_gives_of_neighbours():
    sources = [Numbers(0), Numbers(100), Numbers(200)]
    rows = payload((0, 1), (1, 1), (1, 2), (2, 1), sources=sources)
    for first in range(5):
        for stop in range(first, 5):
            part, taken = rows.part(first, stop), rows.take(np.arange(first, stop))
            assert numbers(part) == numbers(taken)
            assert [row["n"] for row in part.rows()] == numbers(taken)
            assert repr(part) == repr(taken)  # lets go of as many sources
    alone = payload((0, 1), (0, 5), sources=sources[:1])
    assert numbers(alone.part(1, 2)) == [5]


def test_concat_holds_a_shared_source_once():
    shared = Numbers(0)
    parts = [payload((0, i), sources=[shared]) for i in range(5)]
    parts.append(payload((1, 7), (0, 3), sources=[shared, Numbers(100)]))
    joined = Payload.concat(parts)
    assert numbers(joined) == [0, 1, 2, 3, 4, 107, 3]
    assert repr(joined) == "Payload(7 rows in 2 groups)"


def test_empty():
    assert len(Payload.concat([])) == 0
    nothing = payload((0, 1), sources=[Numbers(0)]).take(np.array([], np.int64))
    assert numbers(Payload.concat([nothing, nothing])) == []


def test_rows_that_are_alive_anyway_are_not_copied():
    source, rows = Numbers(0), np.array([3, 1])
    assert source.some(rows) == (source, rows)


class Picked(Numbers):
    def some(self, rows):
        return Listed([self.start + row for row in rows.tolist()]), np.arange(len(rows))


class Listed(RowSource):
    def __init__(self, numbers):
        self.numbers = numbers

    def row(self, index):
        return {"n": self.numbers[index]}


def test_copied_rows_are_the_same_rows_of_sources_that_hold_no_others():
    sources = [Picked(0), Picked(100), Numbers(200), Picked(300)]
    rows = payload((2, 1), (0, 2), (3, 9), (0, 1), (2, 0), (0, 2), sources=sources)
    copied = rows.copied()
    assert numbers(copied) == numbers(rows) == [201, 2, 309, 1, 200, 2]
    held = [getattr(source, "numbers", source) for source in copied._sources]
    assert held == [[2, 1, 2], [], sources[2], [309]]
