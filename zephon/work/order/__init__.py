"""Which row lies at a position: arithmetic, any position at any time, next to no memory.

Read in this order: ``deal`` (which positions of a pass a lane takes), ``passes`` (which shard and
row lie there), ``dealt`` (both, while shards are added), ``blocks`` (permuted among themselves),
``permutation`` and ``feistel`` (keyed permutations), ``runs`` (neighbouring positions).
"""
