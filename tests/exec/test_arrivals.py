"""What went into a lane, entry by entry, and the counts that come of it."""

import numpy as np
import pytest

from tests.exec.by_hand import Counted
from zephon.exec.arrivals import REASONS, Arrivals, Counts
from zephon.exec.block import DROPPED, FILTERED, MERGED, NULL, QUARANTINED, SKIPPED, Known, Lost

DRAWS = Counted(12, components=3).draw(0, 12)


def known(draws, lengths):
    refs = DRAWS.take(np.array(draws))
    lengths = np.array(lengths)
    return Known(refs, lengths, refs.ordinal, lengths[None] * 2)


def lost(pairs):
    draws, reasons = zip(*pairs, strict=True)
    return Lost(DRAWS.take(np.array(draws)), np.array(reasons, np.int8))


def told(counts):
    return [each.tolist() for each in counts]


@pytest.mark.parametrize("with_refs", [False, True])
def test_draws_without_a_document_stand_among_the_others(with_refs):
    gone = lost([(5, DROPPED), (0, FILTERED), (6, MERGED)])
    found = Arrivals.in_order(known([1, 3, 3, 4], [7, 2, 0, 5]), gone, with_refs=with_refs)
    assert found.ordinal.tolist() == [0, 1, 3, 3, 4, 5, 6]
    assert found.length.tolist() == [-FILTERED, 7, 2, 0, 5, -DROPPED, -MERGED]
    assert found.component.tolist() == [0, 1, 0, 0, 1, 2, 0]
    assert found.measures.tolist() == [[0, 14, 4, 0, 10, 0, 0]]
    assert found.is_document.tolist() == [False, True, True, True, True, False, False]
    documents = found.documents()
    assert documents.ordinal.tolist() == [1, 3, 3, 4]
    parts = [found.some(slice(0, 3)), found.some(slice(3, 7))]
    assert Arrivals.concat(parts).length.tolist() == found.length.tolist()
    if with_refs:
        assert found.refs.row.tolist() == [0, 1, 3, 3, 4, 5, 6]
        assert documents.refs.row.tolist() == [1, 3, 3, 4]
        assert Arrivals.concat(parts).refs.row.tolist() == found.refs.row.tolist()
    else:
        assert found.refs is documents.refs is Arrivals.concat(parts).refs is None


def test_each_draw_counts_once():
    gone = lost([(5, DROPPED), (0, FILTERED), (6, MERGED), (2, FILTERED)])
    arrivals = Arrivals.in_order(known([1, 3, 3, 4], [7, 2, 0, 5]), gone)
    counts = Counts.none(3).after(arrivals)
    assert told(counts)[:4] == [[3, 2, 2], [2, 12, 0], [1, 0, 1], [0, 0, 1]]
    assert told(counts)[4:] == [[0, 0, 0]] * 3
    assert told(counts.after(arrivals)) == told(counts.plus(counts))
    in_parts = Counts.none(3)
    for at in (slice(0, 3), slice(3, 5), slice(5, 8)):
        in_parts = in_parts.after(arrivals.some(at))
    assert told(in_parts) == told(counts)
    assert told(counts.after(Arrivals.none())) == told(counts)


def test_in_a_merge_lost_draws_count_with_the_document_behind_them():
    skipped = np.zeros((len(REASONS), 4), np.int64)
    skipped[:, 0] = 4, 2, 1, 0, 0, 2
    skipped[:, 3] = 0, 3, 0, 5, 0, 0
    arrivals = Arrivals.merged(known([1, 3, 3, 5], [7, 2, 0, 5]), skipped)
    assert told(Counts.none(3).after(arrivals)) == [
        *([1, 10, 9], [2, 7, 5], [0, 4, 0], [0, 2, 3]),
        *([0, 0, 5], [0, 0, 0], [0, 2, 0]),
    ]


def test_bad_rows_count_by_what_became_of_them():
    gone = lost([(5, SKIPPED), (0, QUARANTINED), (6, NULL), (2, QUARANTINED)])
    counts = Counts.none(3).after(Arrivals.in_order(known([1, 3, 3, 4], [7, 2, 0, 5]), gone))
    assert [counts.skipped.sum(), counts.quarantined.sum(), counts.null.sum()] == [1, 2, 1]
    assert counts.bad().sum() == 3 and counts.lost().sum() == 4
