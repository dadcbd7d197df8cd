"""What policies are told of documents, from plain lists; and units in and out as plain values."""

from itertools import pairwise

import numpy as np

from zephon.exec.policies.policy import Units


class Known:
    """Documents by arrival number: ``seq - first`` is the place in each list."""

    def __init__(
        self, lengths, components=None, last_parts=None, weights=None, first=0, **measures
    ):
        self.first = first
        self.of_lengths = np.asarray(lengths, np.int64)
        count = len(self.of_lengths)
        self.of_components = np.asarray([0] * count if components is None else components, np.int64)
        self.of_last_parts = np.asarray([True] * count if last_parts is None else last_parts, bool)
        self.of_weights = weights  # a function of the arrival number
        self.of_measures = {name: np.asarray(values) for name, values in measures.items()}

    def components(self, seqs):
        return self.of_components[seqs - self.first]

    def lengths(self, seqs):
        return self.of_lengths[seqs - self.first]

    def last_parts(self, seqs):
        return self.of_last_parts[seqs - self.first]

    def measures(self, name, seqs):
        values = self.of_measures[name][seqs - self.first]
        return values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64)

    def weights(self, seq):
        weights = None if self.of_weights is None else self.of_weights(seq)
        return None if weights is None else np.asarray(weights, np.float64)

    def units(self, start=0, stop=None):
        """Make units of whole documents [start, stop), as a lane does of what arrives."""
        stop = len(self.of_lengths) if stop is None else stop
        seq = np.arange(start, stop, dtype=np.int64) + self.first
        return Units.whole(seq, self.lengths(seq), seq)


def pieces_of(units):
    """List each unit as [(seq, start, length), ...]."""
    pieces = list(zip(units.seq.tolist(), units.start.tolist(), units.length.tolist(), strict=True))
    return [pieces[a:b] for a, b in pairwise(units.splits.tolist())]


def pushed_in(policy, known, sizes, lane=0, resume_at=()):
    """Push all documents in groups of these sizes, the last one over again; then finish.

    Args:
        sizes: documents of each push.
        resume_at: numbers of pushes after which the state is written down and rebuilt.

    Returns:
        The units let go by pushes, those let go at the end, and the state after it.
    """
    state, out, at, sizes = policy.make_state(lane), [], 0, list(sizes) or [1]
    total, number = len(known.of_lengths), 0
    while at < total:
        size = max(1, sizes[min(number, len(sizes) - 1)])
        out.append(policy.push(state, known.units(at, min(at + size, total)), known))
        at, number = at + size, number + 1
        if number in resume_at:
            state = policy.resume(lane, policy.held(state), known)
    end = policy.finish(state, known)
    return Units.concat(out), end, state
