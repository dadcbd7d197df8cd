import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zephon import seeds

PARTS = st.lists(st.integers() | st.text(max_size=5) | st.binary(max_size=5), max_size=4)


def test_keys_are_the_same_for_ever() -> None:
    # These numbers are in every order: if they change, STREAM_VERSION must be raised.
    assert seeds.key(42, "prose", 0) == 11166887766683492231
    assert seeds.subkeys(7, [0, 1, 10**12]).tolist() == [
        7191089600892374487,
        309689372594955804,
        2002707688823753046,
    ]
    assert seeds.generator(42, "lane", 3).integers(1 << 40, size=2).tolist() == [
        928640739405,
        499697711894,
    ]
    assert seeds.STREAM_VERSION == 1


def test_keys_do_not_depend_on_the_process() -> None:
    code = "from zephon import seeds; print(seeds.key('a', -3, b'x'))"
    for hash_seed in ("0", "1"):
        out = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert int(out.stdout) == seeds.key("a", -3, b"x")


@settings(max_examples=100, deadline=None)
@given(PARTS, PARTS)
def test_different_parts_have_different_keys(one: list, other: list) -> None:
    same = [(type(part), part) for part in one] == [(type(part), part) for part in other]
    assert (seeds.key(*one) == seeds.key(*other)) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [((1,), ("1",)), (("a", "b"), ("ab",)), (("a",), (b"a",)), ((), ("",)), ((1, 2), (12,))],
)
def test_parts_are_told_apart_by_kind_and_length(one: tuple, other: tuple) -> None:
    assert seeds.key(*one) != seeds.key(*other)


def test_numpy_integers_and_odd_names_have_keys() -> None:
    assert seeds.key(np.int64(5)) == seeds.key(5)
    assert seeds.key("\udc80") != seeds.key("?")


@pytest.mark.parametrize("part", [1.5, None, (1,)])
def test_refuses_what_has_no_stable_form(part: object) -> None:
    with pytest.raises(TypeError):
        seeds.key(part)  # pyright: ignore[reportArgumentType]


def test_mix64_is_splitmix() -> None:
    # The first outputs of the reference generator for seed 1234567 (Steele, Lea, Flood).
    assert seeds.subkeys(1234567, np.arange(3)).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_mix64_writes_where_it_is_told() -> None:
    values = np.arange(100, dtype=np.uint64)
    mixed = seeds.mix64(values)
    assert (values == np.arange(100, dtype=np.uint64)).all()
    assert seeds.mix64(values, out=values, scratch=np.empty_like(values)) is values
    assert (values == mixed).all()


def test_mix64_changes_half_of_the_bits() -> None:
    values = seeds.subkeys(1, np.arange(2000))
    for bit in range(64):
        changed = seeds.mix64(values) ^ seeds.mix64(values ^ np.uint64(1 << bit))
        assert abs(np.bitwise_count(changed).mean() - 32) < 0.5


def test_generators_differ_and_can_be_stored() -> None:
    one, other = seeds.generator(1, 2), seeds.generator(12)
    assert one.random() != other.random()
    again = pickle.loads(pickle.dumps(one))
    assert again.random() == one.random()
