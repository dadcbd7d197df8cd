"""The chunk protocol: what custom work sources hand out, checked, and drawn from by position.

Read in this order: ``chunk`` and ``samples`` (what a chunk is), ``read_config`` and ``round_robin``
(its order), ``vocabulary`` (what its names and ids mean), ``reader`` (asks a source for chunks),
``lane`` (draws by position), ``source_state`` (positions as JSON values).
"""
