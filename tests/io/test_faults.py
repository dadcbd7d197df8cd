import numpy as np

from zephon.io.faults import BadRow, Faults, unknown_parts
from zephon.io.fields import TEXT, Column

K, T = Column("k", "any", values=TEXT), Column("t", "text")
BAD = Faults.of({5: "five", 2: "two", 9: "nine"}, K)


def rows(*numbers):
    return np.array(numbers, np.int64)


def test_faults_are_sorted_and_say_what_they_leave_unknown():
    assert (BAD.rows.tolist(), BAD.details) == ([2, 5, 9], ["two", "five", "nine"])
    assert (BAD.unknown, Faults.of({1: "x"}, T).unknown, Faults.of({1: "x"}).unknown) == (
        "k",
        None,
        None,
    )


def test_bad_rows_are_found_among_those_that_are_asked_for():
    asked = rows(9, 0, 5, 9)
    assert BAD.first(asked) == [BadRow(0, "nine", "k")]
    assert BAD.among(asked) == [
        BadRow(0, "nine", "k"),
        BadRow(2, "five", "k"),
        (3, *BAD.first(asked)[0][1:]),
    ]
    assert BAD.first(rows(0, 1)) == BAD.among(rows(10)) == Faults.of({}, K).first(rows(0)) == []


def test_faults_of_kept_rows_count_among_these():
    found = BAD.of_kept(rows(1, 2, 9, 12))
    assert (found.rows.tolist(), found.details, found.unknown) == ([1, 2], ["two", "nine"], "k")
    assert BAD.of_kept(rows(3)).rows.tolist() == []


def parts(faults, *reads):
    return [(sorted(names), found.tolist()) for names, found in unknown_parts(faults, reads)]


def test_rows_are_parted_by_what_is_unknown_of_them_and_read():
    more = Faults.of({2: "?", 3: "?"}, Column("n", "any", values=TEXT))
    faults = (BAD, Faults.of({1: "null"}, T), more)
    assert parts(faults, "k") == [(["k"], [2, 5, 9])]
    assert parts(faults, "k", "n") == [(["k", "n"], [2]), (["n"], [3]), (["k"], [5, 9])]
    assert parts(faults, "t") == parts((), "k") == []
