"""Encoders are lent to one caller at a time; few are made, and a full one is replaced."""

import threading
import time

import pytest

from zephon.exec.tokenizers import Encoder, pool
from zephon.exec.tokenizers.pool import EncoderPool, resident_bytes


class Numbered(Encoder):
    def encode(self, texts):
        raise NotImplementedError


def counting(load_worth, first=None):
    made = []

    def make():
        made.append(Numbered())
        return made[-1]

    return EncoderPool(make, first=first, load_worth=load_worth), made


def test_an_encoder_that_is_back_is_lent_again():
    encoders, made = counting(0)
    for _ in range(3):
        with encoders.lend(10) as encoder:
            assert encoder is made[0]
    with encoders.lend(10) as one, encoders.lend(10) as other:
        assert one is not other
    assert len(made) == 2


def test_the_first_one_may_be_there_already():
    first = Numbered()
    encoders, made = counting(0, first)
    with encoders.lend(1) as encoder:
        assert encoder is first
    assert made == []


def test_callers_wait_until_another_load_is_worth_it():
    encoders, made = counting(100)
    inside = threading.Event()
    order = []

    def work(name, text_bytes):
        with encoders.lend(text_bytes) as encoder:
            inside.set()
            time.sleep(0.05)
            order.append((name, made.index(encoder)))

    first = threading.Thread(target=work, args=("first", 60))
    first.start()
    inside.wait(5)
    second = threading.Thread(target=work, args=("second", 60))
    second.start()
    first.join(5)
    second.join(5)
    assert order == [("first", 0), ("second", 0)]
    with encoders.lend(1), encoders.lend(1):
        assert len(made) == 2


def test_nobody_waits_for_a_huge_document_for_ever():
    encoders, made = counting(1 << 40)
    with encoders.lend(1), encoders.lend(1):
        assert len(made) == 2


def test_an_encoder_that_raised_does_not_come_back():
    encoders, made = counting(1 << 40)
    with pytest.raises(ValueError, match="bad"), encoders.lend(1):
        raise ValueError("bad")
    with encoders.lend(1) as encoder:
        assert encoder is made[1]


def test_a_load_that_fails_is_tried_again():
    attempts = []

    def make():
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("gone")
        return Numbered()

    encoders = EncoderPool(make, load_worth=1 << 40)
    with pytest.raises(OSError, match="gone"), encoders.lend(1):
        pass
    with encoders.lend(1):
        pass


def test_a_full_encoder_is_replaced(monkeypatch):
    resident = [1_000]
    monkeypatch.setattr(pool, "resident_bytes", lambda: resident[0])
    monkeypatch.setattr(pool, "WARM_BYTES", 100)
    monkeypatch.setattr(pool, "GROWTH_BYTES", 500)
    encoders, made = counting(1)

    def use(text_bytes):
        with encoders.lend(text_bytes) as encoder:
            return made.index(encoder)

    resident[0] = 9_000
    assert use(50) == 0  # not warm: what else grew until now does not count
    assert use(50) == 0  # warm: measured from here
    resident[0] = 9_499
    assert use(50) == 0
    resident[0] = 9_500
    assert use(50) == 0  # full: does not come back
    assert use(100) == 1
    assert use(1) == 1


def test_where_memory_is_not_known_text_is_counted(monkeypatch):
    monkeypatch.setattr(pool, "resident_bytes", lambda: None)
    monkeypatch.setattr(pool, "WARM_BYTES", 100)
    monkeypatch.setattr(pool, "UNSEEN_BYTES", 200)
    encoders, made = counting(1)
    for _ in range(5):
        with encoders.lend(100):
            pass
    assert len(made) == 3


def test_the_size_of_the_process_is_plausible():
    size = resident_bytes()
    assert size is None or 10_000_000 < size < 1 << 40
