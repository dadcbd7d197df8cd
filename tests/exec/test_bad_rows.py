"""Bad rows that wait: few are kept, whatever a dataset holds."""

from zephon.exec.bad_rows import BadRows
from zephon.exec.block import Bad, Why


def bad(row, *, quarantined):
    return row, Bad(0, 0, row, quarantined, Why(f"row {row}", None))


def test_of_rows_that_are_skipped_the_first_is_kept():
    lane = BadRows()
    for rows in (lane, lane.of_strand()):
        for row in range(10_000):
            rows.add([bad(row, quarantined=False)])
        assert len(rows) == 1
        assert [each.row for each in rows.until(None)] == [0]


def test_rows_that_are_too_many_to_wait_are_written_early():
    lane, written = BadRows(), []
    strand = lane.of_strand()
    lane.early = written.extend
    for row in range(10_000):
        strand.add([bad(row, quarantined=True)])
        assert len(strand) <= 4096
    written += strand.until(None)
    assert [each.row for each in written] == [*range(10_000)]
