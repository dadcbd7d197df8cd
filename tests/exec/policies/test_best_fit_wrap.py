"""Best fit wrap against a list of candidates that is looked through whole for every piece."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exec.policies.feeding import GROUPINGS, plain
from tests.exec.policies.known import Known
from tests.exec.policies.packing import PAGE, agrees, documents, lengths_of, packed
from zephon.exec.policies.best_fit_wrap import BestFitWrap


def obvious(lengths, *, max_length, pool_size, age, cap, smallest):
    pool, rows, arrivals = [], [], 0  # a candidate: [arrival, seq, start, length]

    def fill(row, candidate):
        row.append(tuple(candidate[1:]))
        pool.remove(candidate)

    def make_row():
        row = []

        def room():
            return max_length - sum(piece[2] for piece in row)

        def is_open():
            return (
                (not row or room() >= max(1, smallest)) and pool and (cap is None or len(row) < cap)
            )

        for candidate in sorted(pool):
            if arrivals - candidate[0] > age and is_open() and candidate[3] <= room():
                fill(row, candidate)
        while is_open():
            fitting = [candidate for candidate in pool if candidate[3] <= room()]
            if fitting:
                fill(row, max(fitting, key=lambda one: (one[3], -one[0])))
                continue
            shortest = min(pool, key=lambda one: (one[3], one[0]))
            _, seq, start, length = shortest
            left = room()
            if start == 0 and left < length - left:
                row.append((seq, length - left, left))
                shortest[3] -= left
            else:
                row.append((seq, start, left))
                shortest[2:] = [start + left, length - left]
        return row

    for seq, length in enumerate(lengths):
        arrivals += length > 0
        start = 0
        while length - start >= max_length:
            rows.append(([(seq, start, max_length)], seq))
            start += max_length
        if start < length:
            pool.append([arrivals, seq, start, length - start])
        while len(pool) >= pool_size and sum(one[3] for one in pool) >= max_length:
            rows.append((make_row(), seq))
    end = []
    while pool:
        end.append(make_row())
    return rows, end


@settings(deadline=None, max_examples=100)
@given(
    documents(longest=40),
    st.integers(1, 25),
    st.integers(1, 12),
    st.none() | st.integers(1, 20),
    st.none() | st.integers(1, 4),
    st.integers(0, 4),
    GROUPINGS,
    st.data(),
)
def test_rows_are_those_of_the_obvious_way(
    stream, max_length, pool_size, age, cap, smallest, groups, data
):
    policy = BestFitWrap(
        max_length=max_length,
        candidate_pool_size=pool_size,
        max_candidate_age=age,
        max_sequences_per_bin=cap,
        min_sequence_length=smallest,
    )
    rows, end = obvious(
        stream[0].of_lengths.tolist(),
        max_length=max_length,
        pool_size=pool_size,
        age=8 * pool_size if age is None else age,
        cap=cap,
        smallest=smallest,
    )
    agrees(policy, stream, groups, data, rows, end)


@settings(deadline=None, max_examples=50)
@given(documents(longest=60), st.integers(1, 12), st.integers(1, 8))
def test_every_token_is_placed_once_and_only_the_last_row_has_room(stream, max_length, pool_size):
    known, _ = stream
    policy = BestFitWrap(max_length=max_length, candidate_pool_size=pool_size)
    rows, _ = packed(policy, known.of_lengths)
    placed = sorted(
        (seq, start + n) for row in rows for seq, start, size in row for n in range(size)
    )
    lengths = known.of_lengths.tolist()
    assert placed == [(seq, n) for seq, length in enumerate(lengths) for n in range(length)]
    assert all(sum(row) == max_length for row in lengths_of(rows)[:-1])


def test_the_example_of_the_page():
    rows, _ = packed(BestFitWrap(max_length=10), PAGE)
    assert lengths_of(rows) == [(10,), (9, 1), (8, 2), (7, 3), (6, 4), (5, 2)]
    assert rows[2][1] == (3, 0, 2)  # the older of the two that are two tokens long


def test_the_shortest_is_cut_where_fewer_tokens_lose_what_is_before_them():
    few_are_missing = packed(BestFitWrap(max_length=10), [8, 7])[0]
    assert few_are_missing == [[(0, 0, 8), (1, 5, 2)], [(1, 0, 5)]]
    many_are_missing = packed(BestFitWrap(max_length=10), [6, 5])[0]
    assert many_are_missing == [[(0, 0, 6), (1, 0, 4)], [(1, 4, 1)]]


def test_a_tail_is_cut_from_its_beginning_only():
    rows, _ = packed(BestFitWrap(max_length=10), [17, 8])
    assert rows == [[(0, 0, 10)], [(1, 0, 8), (0, 10, 2)], [(0, 12, 5)]]


def test_a_candidate_that_is_too_old_comes_first():
    known = Known([2, *[9, 1] * 6])
    young = BestFitWrap(max_length=10, candidate_pool_size=4)
    rows = plain(young.push(young.make_state(0), known.units(), known))
    assert not any(seq == 0 for row, _ in rows for seq, _, _ in row)
    old = BestFitWrap(max_length=10, candidate_pool_size=4, max_candidate_age=5)
    rows = plain(old.push(old.make_state(0), known.units(), known))
    row, trigger = next((row, trigger) for row, trigger in rows if row[0][0] == 0)
    assert row[0] == (0, 0, 2)
    assert trigger - 0 > 5
