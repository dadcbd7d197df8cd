"""The spill: what comes back is what went in, or nothing; and it keeps to its room."""

import fcntl
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zephon.io.faults import Faults
from zephon.io.fields import TEXT, TOKENS, Column
from zephon.io.formats.format import DecodedGroup, columns_batch
from zephon.io.formats.memory import ObjectRows
from zephon.io.spill.key import GroupKey
from zephon.io.spill.room import MARKER, PARTIAL, SUFFIX, SpillRoom
from zephon.io.spill.spill import Spill, SpillCounts, SpillSettings

ROOT = Path(__file__).parents[2]
COLUMNS = (Column("text", "text"), Column("ids", "tokens", "empty"))
ROWS = 500


def group(seed=0, faults=(), columns=COLUMNS, payload=None):
    words = [f"row {seed} {n} " + "é" * (n % 7) for n in range(ROWS)]
    lists = [list(range(n % 5)) for n in range(ROWS)]
    arrays = [pa.array(words, TEXT), pa.array(lists, TOKENS)][: len(columns)]
    return DecodedGroup(columns_batch(columns, arrays, ROWS), tuple(faults), payload, 1)


def key(number=0, *, path="/data/a.parquet", size=10, mtime=5, columns=COLUMNS, dataset=None):
    return GroupKey((path, size, mtime), number, number * ROWS, ROWS, columns, dataset)


def spill_in(root, limit=1 << 30, free=0):
    return Spill(SpillSettings(Path(root), limit, free))


@pytest.fixture
def spill(tmp_path):
    return spill_in(tmp_path / "spill")


@pytest.fixture
def written(spill, tmp_path):
    """A spill of one group, and the group's file."""
    spill.store(key(), group())
    return spill, tmp_path / "spill" / (key().digest + SUFFIX)


def files(root):
    return sorted(path.name for path in Path(root).iterdir() if path.name != MARKER)


def test_a_group_comes_back_as_it_was(spill):
    faults = [
        Faults.of({3: ": bad", 7: ": worse"}),
        Faults(np.arange(ROWS), [": all are bad"] * ROWS),
    ]
    spill.store(key(), group(faults=faults))
    found = spill.load(key())
    assert found.columns.equals(group().columns)
    assert found.columns.schema == pa.schema({"text": TEXT, "ids": TOKENS})
    assert found.columns.schema.metadata is None
    assert [(f.rows.tolist(), list(f.details)) for f in found.faults] == [
        ([3, 7], [": bad", ": worse"]),
        (list(range(ROWS)), [": all are bad"] * ROWS),
    ]
    assert found.faults[0].rows.dtype == np.int64
    assert found.payload is None
    assert spill.counts() == SpillCounts(written=1, mapped=1, damaged=0)


def test_it_is_mapped_and_not_read(written):
    spill, _ = written
    before = pa.total_allocated_bytes()
    found = spill.load(key())
    assert pa.total_allocated_bytes() == before
    data = found.columns.column(0).buffers()[2]
    ranges = [line.split()[0] for line in Path("/proc/self/maps").read_text().splitlines()
              if line.endswith(SUFFIX)]  # fmt: skip
    assert any(
        int(start, 16) <= data.address < int(stop, 16)
        for start, stop in (each.split("-") for each in ranges)
    )
    del found, data
    assert SUFFIX not in Path("/proc/self/maps").read_text()


def test_a_slice_of_columns_is_written_as_what_it_shows(spill):
    whole = group().columns
    part = DecodedGroup(whole.slice(10, 20), (), None, 1)
    at = GroupKey(("/data/a.parquet", 10, 5), 0, 10, 20, COLUMNS, None)
    spill.store(at, part)
    assert spill.load(at).columns.to_pylist() == whole.to_pylist()[10:30]


@pytest.mark.parametrize("columns", [(), COLUMNS[:1]])
def test_any_number_of_columns(spill, columns):
    spill.store(key(columns=columns), group(columns=columns))
    found = spill.load(key(columns=columns))
    assert (found.columns.num_rows, found.columns.num_columns) == (ROWS, len(columns))


OTHER_KEYS = [
    key(1), key(path="/data/b.parquet"), key(size=11), key(mtime=6), key(columns=COLUMNS[:1]),
    key(columns=COLUMNS[::-1]), key(columns=(Column("text", "text", "empty"), COLUMNS[1])),
    key(dataset="d"), GroupKey(("/data/a.parquet", 10, 5), 0, 1, ROWS, COLUMNS, None),
    GroupKey(("/data/a.parquet", 10, 5), 0, 0, ROWS - 1, COLUMNS, None),
]  # fmt: skip


def test_a_key_names_everything_that_decides_a_group(spill):
    spill.store(key(), group())
    keys = [key(), *OTHER_KEYS]
    assert len({each.digest for each in keys}) == len({*keys}) == len(keys)
    assert all(spill.load(other) is None for other in OTHER_KEYS)
    assert key() == key()
    assert key(size=np.int64(10)).digest == key().digest
    assert key(path="/data/\udcff").digest != key().digest  # a name that is not UTF-8


def test_a_file_under_another_group_s_name_is_not_taken_for_it(written, tmp_path):
    spill, file = written
    for other in OTHER_KEYS:
        wrong = tmp_path / "spill" / (other.digest + SUFFIX)
        wrong.write_bytes(file.read_bytes())
        assert spill.load(other) is None
        assert not wrong.exists()
    assert spill.load(key()) is not None


def damage(file, change, *, keep_time):
    """Change a file in place, as a disk or a stranger would."""
    status = file.stat()
    content = bytearray(file.read_bytes())
    with open(file, "r+b") as opened:
        changed = change(content)
        opened.write(changed)
        opened.truncate(len(changed))
    if keep_time:
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 1 << 20), byte=st.integers(1, 255))
def test_any_wrong_byte_is_found(written, place, byte):
    spill, file = written
    if not file.exists():
        spill.store(key(), group())

    def flip(content):
        content[place % len(content)] ^= byte
        return content

    damage(file, flip, keep_time=True)
    assert spill_in(file.parent).load(key()) is None
    assert not file.exists()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(length=st.integers(0, 1 << 20))
def test_a_file_that_is_cut_off_is_found(written, length):
    spill, file = written
    if not file.exists():
        spill.store(key(), group())
    damage(file, lambda content: content[: length % len(content)], keep_time=False)
    assert spill.load(key()) is None
    assert not file.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:4096] + bytes(4096) + content[8192:],
        lambda content: content[4096:8192] + content[:4096] + content[8192:],
        lambda content: bytes(len(content)),
        lambda content: content + content[-40:],
        lambda content: b"ARROW1",
        lambda content: b"",
    ],
    ids=["hole", "pages swapped", "zeros", "longer", "only a head", "empty"],
)
def test_a_file_that_was_whole_and_no_longer_is(written, change):
    spill, file = written
    assert spill.load(key()) is not None
    damage(file, change, keep_time=False)
    assert spill.load(key()) is None
    assert spill.counts().damaged == 1
    spill.store(key(), group())
    assert spill.load(key()).columns.equals(group().columns)


def test_a_mapped_group_outlives_its_file(written):
    spill, file = written
    found = spill.load(key())
    file.unlink()
    assert spill.load(key()) is None
    assert found.columns.equals(group().columns)
    spill.store(key(), group())
    assert spill.load(key()) is not None


def test_a_directory_that_vanishes_is_made_again(written, tmp_path):
    spill, file = written
    for path in file.parent.iterdir():
        path.unlink()
    file.parent.rmdir()
    assert spill.load(key()) is None
    spill.store(key(), group())
    assert spill.load(key()) is not None
    assert (tmp_path / "spill" / MARKER).exists()


def test_another_run_finds_the_files_warm(written):
    later = spill_in(written[1].parent)
    assert later.load(key()).columns.equals(group().columns)
    later.store(key(), group(1))  # it is there
    assert later.counts() == SpillCounts(written=0, mapped=1, damaged=0)


def test_a_mapped_group_is_not_written_again(written, tmp_path):
    spill, file = written
    found = spill.load(key())
    file.unlink()
    spill.store(key(), found)
    assert files(file.parent) == []


def test_rows_in_memory_never_spill(spill, tmp_path):
    at = GroupKey(object(), 0, 0, ROWS, COLUMNS, None)
    spill.store(at, group())
    assert spill.load(at) is None
    whole = group(payload=ObjectRows([{}] * ROWS))
    spill.store(key(dataset="d"), whole)
    assert not (tmp_path / "spill").exists() or files(tmp_path / "spill") == []


# Room


def size_of_one(tmp_path):
    probe = spill_in(tmp_path / "probe")
    probe.store(key(), group())
    return next((tmp_path / "probe").glob(f"*{SUFFIX}")).stat().st_size


def test_the_least_recently_used_leave_when_the_limit_is_reached(tmp_path):
    size = size_of_one(tmp_path) + 4096
    root = tmp_path / "spill"
    spill = spill_in(root, limit=10 * size)
    for number in range(9):
        spill.store(key(number), group(number))
        os.utime(root / (key(number).digest + SUFFIX), ns=(number, number))
    os.utime(root / (key(0).digest + SUFFIX), ns=(10**9, 0))  # used since
    for number in range(9, 12):
        spill.store(key(number), group(number))
    left = [number for number in range(12) if (root / (key(number).digest + SUFFIX)).exists()]
    assert left[0] == 0
    assert 1 not in left
    assert left[-3:] == [9, 10, 11]
    assert sum(file.stat().st_size for file in root.glob(f"*{SUFFIX}")) <= 10 * size


def test_using_a_file_makes_it_younger_and_leaves_its_time_of_writing(written):
    _, file = written
    os.utime(file, ns=(1, 1))
    assert spill_in(file.parent).load(key()) is not None
    assert file.stat().st_mtime_ns == 1
    assert file.stat().st_atime_ns > 10**18


def test_only_files_of_the_spill_are_ever_removed(tmp_path):
    size = size_of_one(tmp_path) + 4096
    root = tmp_path / "spill"
    root.mkdir()
    strangers = ["notes.txt", "0" * 40, f"mine{SUFFIX}", f"{'g' * 40}{SUFFIX}", f"x{PARTIAL}"]
    for name in strangers:
        (root / name).write_bytes(b"x" * 10 * size)
        os.utime(root / name, ns=(0, 0))
    spill = spill_in(root, limit=3 * size)
    for number in range(20):
        spill.store(key(number), group(number))
    found = files(root)
    assert set(strangers) <= set(found)
    assert 1 <= len(found) - len(strangers) <= 3
    assert spill.counts().written == 20


def test_a_group_larger_than_the_limit_stays_out(tmp_path):
    spill = spill_in(tmp_path / "spill", limit=1000)
    with pytest.warns(RuntimeWarning, match="has no room left: its limit is 1,000 bytes"):
        spill.store(key(), group())
    assert files(tmp_path / "spill") == []


def test_the_disk_is_never_filled(tmp_path):
    spill = spill_in(tmp_path / "spill", free=1 << 60)
    with pytest.warns(RuntimeWarning, match=r"spill: .* has no room left") as caught:
        for number in range(5):
            spill.store(key(number), group(number))
    assert len(caught) == 1
    assert files(tmp_path / "spill") == []
    assert spill.load(key()) is None


def test_files_leave_for_a_disk_that_others_fill(tmp_path):
    first = spill_in(tmp_path / "spill")
    first.store(key(), group())
    second = spill_in(tmp_path / "spill", free=1 << 60)
    with pytest.warns(RuntimeWarning, match="no room left"):
        second.store(key(1), group(1))
    assert files(tmp_path / "spill") == []


@pytest.mark.parametrize("place", ["file", "/proc/no/such/place"])
def test_a_place_that_cannot_be_written_is_warned_of_once(tmp_path, place):
    if place == "file":
        place = tmp_path / "file"
        place.write_text("not a directory")
    spill = spill_in(place)
    with pytest.warns(RuntimeWarning, match="must be a directory with room that this proc") as seen:
        spill.store(key(), group())
        spill.store(key(1), group(1))
    assert len(seen) == 1
    assert spill.load(key()) is None


def test_what_a_process_cannot_write_it_can_still_read(written):
    """A part cannot be made in a directory of a full disk; the files there are good."""
    _, file = written
    assert spill_in(file.parent, limit=1).load(key()).columns.equals(group().columns)


def test_a_file_that_cannot_be_removed_is_passed_over(tmp_path):
    size = size_of_one(tmp_path) + 4096
    root = tmp_path / "spill"
    stuck = root / (key(99).digest + SUFFIX)
    stuck.mkdir(parents=True)  # whoever runs this, even root cannot unlink it
    os.utime(stuck, ns=(0, 0))
    spill = spill_in(root, limit=stuck.stat().st_size + 3 * size)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(6):
            spill.store(key(number), group(number))
            os.utime(root / (key(number).digest + SUFFIX), ns=(1 + number, 1))
    assert spill.counts().written == 6
    assert stuck.exists()
    assert len(files(root)) == 4  # what was not freed does not count as free


def test_nothing_that_can_be_removed_is_no_room(tmp_path):
    stuck = tmp_path / "spill" / (key(99).digest + SUFFIX)
    (stuck / "in it").mkdir(parents=True)
    size = stuck.stat().st_size
    room = SpillRoom(tmp_path / "spill", limit_bytes=size, min_free_bytes=0)
    assert not room.admit(size)


# Many at once


def test_threads_write_and_read_the_same_groups(tmp_path):
    spill = spill_in(tmp_path / "spill", limit=8 * (size_of_one(tmp_path) + 4096))
    wrong = []

    def work(seed):
        for number in np.random.default_rng(seed).integers(0, 12, 60).tolist():
            found = spill.load(key(number))
            if found is not None and not found.columns.equals(group(number).columns):
                wrong.append(number)
            spill.store(key(number), group(number))

    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("error")
        for done in [pool.submit(work, seed) for seed in range(4)]:
            done.result(60)
    assert not wrong
    assert spill.counts().damaged == 0


PROGRAM = """
import sys, warnings
sys.path.insert(0, {root!r})
import numpy as np
from tests.io.spill.test_spill import group, key, spill_in

warnings.simplefilter("error")
spill = spill_in({folder!r}, limit={limit})
print("ready", flush=True)
for number in np.random.default_rng({seed}).integers(0, 12, {turns}).tolist():
    found = spill.load(key(number))
    assert found is None or found.columns.equals(group(number).columns)
    spill.store(key(number), group(number))
    print("turn", flush=True)
counts = spill.counts()
print(counts.written, counts.mapped, counts.damaged)
"""


def start(folder, limit, seed, turns):
    program = PROGRAM.format(
        root=str(ROOT), folder=str(folder), limit=limit, seed=seed, turns=turns
    )
    return subprocess.Popen((sys.executable, "-c", program), stdout=subprocess.PIPE, text=True)


def test_processes_share_a_directory(tmp_path):
    limit = 8 * (size_of_one(tmp_path) + 4096)
    running = [start(tmp_path / "spill", limit, seed, 80) for seed in range(2)]
    said = [process.communicate(timeout=60)[0].splitlines()[-1] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    found = [SpillCounts(*map(int, line.split())) for line in said]
    assert all(counts.written and counts.mapped and not counts.damaged for counts in found)
    left = list((tmp_path / "spill").glob(f"*{SUFFIX}"))
    assert 0 < sum(file.stat().st_size for file in left) <= 2 * limit


def test_a_process_that_is_killed_leaves_nothing_that_is_wrong(tmp_path):
    folder = tmp_path / "spill"
    for turns in (0, 1, 9):
        process = start(folder, 1 << 30, turns, 100_000)
        for _ in range(1 + turns):
            process.stdout.readline()
        process.kill()
        process.communicate(timeout=60)
    spill = spill_in(folder)
    for number in range(12):
        found = spill.load(key(number))
        assert found is None or found.columns.equals(group(number).columns)
    assert spill.counts().damaged == 0


def test_a_part_that_nobody_writes_is_removed(tmp_path):
    folder = tmp_path / "spill"
    folder.mkdir()
    abandoned, busy = (folder / f"{key(n).digest}.{n}-1{PARTIAL}" for n in (1, 2))
    abandoned.write_bytes(b"x")
    busy.write_bytes(b"x")
    with open(busy, "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        spill_in(folder).store(key(), group())
        assert files(folder) == sorted([busy.name, key().digest + SUFFIX])
    spill_in(folder).store(key(3), group(3))
    assert files(folder) == sorted(each.digest + SUFFIX for each in (key(), key(3)))


def test_a_column_of_empty_values_is_mapped_again_and_again(tmp_path: Path) -> None:
    """A buffer of no bytes does not lie in the file."""
    empty = DecodedGroup(group().columns.take([0] * 500), (), None, 1)
    spill = spill_in(tmp_path / "spill")
    spill.store(key(), empty)
    for _ in range(3):
        assert spill.load(key()).columns.equals(empty.columns)


def test_a_file_put_in_the_place_of_another_is_not_taken_for_it(tmp_path: Path) -> None:
    """Size and modification time may be those of the file before."""
    data, other = tmp_path / "a.parquet", tmp_path / "other"
    texts = []
    for path in (data, other):
        path.write_bytes(b"four")
        os.utime(path, ns=(10**18, 10**18))
        texts.append(GroupKey((str(data), 4, 10**18), 0, 0, 5, (), None).text)
    os.replace(other, data)
    texts.append(GroupKey((str(data), 4, 10**18), 0, 0, 5, (), None).text)
    assert texts[0] == texts[1] != texts[2]
