"""Chains of shuffles, mixtures and packers: one of every kind that a pipeline may hold."""

from tests.properties.recipes import lengths, source, text_dataset, token_dataset
from zephon import Pipeline
from zephon.ops import DomainGroups

PAD = 9


def datasets():
    """Make three components of unlike lengths, some documents longer than a row."""
    return [
        token_dataset("prose", lengths(1, 130), 3),
        token_dataset("code", lengths(2, 70, 90), 2),
        token_dataset("maths", lengths(3, 60, 9), 1),
    ]


DATASETS = datasets()
WEIGHTS = {"prose": 0.5, "code": 0.3, "maths": 0.2}
GROUPS = DomainGroups({"words": ["prose", "maths"], "code": ["code"]})


def start(**work):
    """Draw every row once."""
    settings = {"chunk_size": 8, "shuffle_within_shard": True, "exhausted_policy": "redistribute"}
    return Pipeline(source(DATASETS, WEIGHTS, **{**settings, **work}))


def flat(pipeline, algorithm, **changes):
    bins = {"num_bins": 4} if algorithm in ("first_fit", "best_fit") else {}
    return pipeline.pack_flat(33, algorithm=algorithm, pad_token_id=PAD, **{**bins, **changes})


PACKERS = {
    "wrap": lambda p: flat(p, "wrap"),
    "capped wrap": lambda p: flat(p, "wrap", max_sequences_per_bin=3),
    "first_fit": lambda p: flat(p, "first_fit"),
    "first_fit, fullest": lambda p: flat(p, "first_fit", flush_strategy="fullest", num_bins=2),
    "best_fit": lambda p: flat(p, "best_fit", min_sequence_length=3, max_sequences_per_bin=4),
    "best_fit_wrap": lambda p: flat(p, "best_fit_wrap", candidate_pool_size=8, max_candidate_age=9),
    "best_fit_decreasing": lambda p: flat(p, "best_fit_decreasing", candidate_pool_size=16),
    "one component": lambda p: flat(p, "best_fit", homogeneity="full", num_bins=2),
    "groups": lambda p: flat(p, "wrap", homogeneity="group", groups=GROUPS),
    "random windows": lambda p: flat(p, "first_fit", shuffle_strategy="random", shuffle_seed=4),
    "longest first": lambda p: flat(p, "best_fit", shuffle_strategy="length"),
}

CHAINS = {
    **{name: lambda pack=pack: pack(start()) for name, pack in PACKERS.items()},
    "shuffle": lambda: flat(start().shuffle(64, seed=5), "wrap"),
    "blocks": lambda: flat(start().shuffle(50, algorithm="block"), "best_fit"),
    "growing blocks": lambda: flat(
        start().shuffle(50, algorithm="block_warmup", warmup_growth=1.3), "first_fit"
    ),
    "rows shuffled": lambda: flat(start(), "wrap").shuffle(10, seed=1),
    "documents and rows shuffled": lambda: flat(start().shuffle(40), "best_fit_wrap").shuffle(6),
    "mixture of tokens": lambda: flat(start().ensure_mixture(max_buffer_size=30), "wrap"),
    "mixture of samples": lambda: flat(start().ensure_mixture(weight_by="samples"), "first_fit"),
    "mixture of rows": lambda: flat(start(), "wrap").ensure_mixture(max_buffer_size=12),
    "mixture, shuffle": lambda: flat(start().ensure_mixture().shuffle(30), "best_fit").shuffle(5),
    "exact tokens": lambda: flat(
        start(mixture_unit="tokens").shuffle(30, seed=2), "best_fit_wrap", candidate_pool_size=6
    ),
    "sequences": lambda: start().shuffle(20).pack_sequences(33, num_bins=3),
    "documents": lambda: start().shuffle(64),
}


def split_after_shuffle(tokenizer_file):
    """Shuffle source rows, split them, pack them, shuffle the rows."""
    pipeline = Pipeline(source([text_dataset("words", 90)], chunk_size=4))
    return (
        pipeline.shuffle(25, seed=3)
        .tokenize(tokenizer_id=tokenizer_file, field="text", split_long_samples=True, max_length=12)
        .shuffle(9)
        .pack_flat(17, algorithm="first_fit", num_bins=3, pad_token_id=0)
        .shuffle(4)
    )
