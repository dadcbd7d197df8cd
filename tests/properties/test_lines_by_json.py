"""Every row of JSON lines is what Python's ``json`` makes of its line, wherever files are split."""

import random

import pytest

from tests.lines_by_json import check, lines_of
from tests.properties.odd_lines import BLANK, MARK, a_text, good_row, written
from tests.written import pipeline
from zephon import Dataset
from zephon.io.formats import jsonl, line_blocks


@pytest.fixture
def blocks_of(monkeypatch):
    """Let files be split into blocks of about so many bytes."""

    def split(size):
        monkeypatch.setattr(
            jsonl,
            "index_lines",
            lambda stream, **rest: line_blocks.index_lines(stream, block_bytes=size, **rest),
        )

    return split


@pytest.mark.parametrize("seed", range(25))
def test_rows_are_what_json_says(tmp_path, blocks_of, seed):
    chance = random.Random(f"lines {seed}")
    for turn in range(4):
        folder = tmp_path / str(turn)
        folder.mkdir()
        oddness = chance.choice([0.0, 0.05, 0.5, 1.0])
        texts = [a_text(chance, oddness) for _ in range(chance.randint(1, 3))]
        blocks_of(chance.choice([1, 50, 300, 5000, 1 << 20]))
        written(folder, texts, chance)
        dataset = Dataset.from_path("d", folder)
        check(dataset, texts)
        check(dataset, texts, chance=chance, limit_bytes=chance.choice([1, 1 << 20]))


@pytest.mark.parametrize("seed", range(12))
def test_a_run_that_is_stopped_anywhere_goes_on_with_the_next_row(tmp_path, blocks_of, seed):
    chance = random.Random(f"places {seed}")
    texts = []
    for _ in range(3):
        lines = [
            chance.choice(BLANK) if chance.random() < 0.4 else good_row(chance) for _ in range(9)
        ]
        end = chance.choice([b"\n", b"\r\n"])
        texts.append(chance.choice([b"", MARK]) + end.join(lines) + chance.choice([b"", end]))
    written(tmp_path, texts, chance)
    blocks_of(chance.choice([1, 60, 1 << 20]))
    wanted = [
        ((0, shard, row), line.value("whole"))
        for shard, text in enumerate(texts)
        for row, line in enumerate(lines_of(text))
    ]

    def make():
        return pipeline(Dataset.from_path("d", tmp_path))

    def rest(pipe):
        return [(record.meta.sample_id, record.payload) for record in pipe]

    assert rest(make()) == wanted
    for stop in range(0, len(wanted) + 1, 3):
        pipe = make()
        items = iter(pipe)
        for _ in range(stop):
            next(items)
        state = pipe.checkpoint()
        items.close()
        blocks_of(chance.choice([1, 60, 1 << 20]))
        assert rest(make().restore(state)) == wanted[stop:]
