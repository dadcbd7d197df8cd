"""Work sources of every order, end, schedule and unit, over two components."""

from tests.properties.recipes import lengths, token_dataset
from zephon.work import MixtureSchedule, TokenEstimation, tokens

EARLY, LATE = {"prose": 0.9, "code": 0.1}, {"prose": 0.2, "code": 0.8}
SHIFT = {"prose": 0, "code": 1}

WORKS = {
    "blocks": {"shuffle_block_size": 16},
    "automatic blocks": {"shuffle_block_size": "auto"},
    "global": {"shuffle_block_size": "global", "stop_after_passes": 2},
    "redistribute": {"exhausted_policy": "redistribute"},
    "stop": {"exhausted_policy": "stop"},
    "capped repeats": {"exhausted_policy": "repeat", "max_repeats": 1},
    "a policy each": {
        "exhausted_policy": {"prose": "redistribute", "code": "repeat"},
        "max_repeats": {"code": 2},
    },
    "a fixed order": {"reshuffle_on_repeat": {"code": False}, "stop_after_passes": 2},
    "budget": {"budget": {"code": 25}},
    "schedule": {"schedule": MixtureSchedule({60: LATE, 110: SHIFT})},
    "linear schedule": {"schedule": MixtureSchedule({200: LATE}, interpolation="linear")},
    "estimated tokens": {
        "token_estimation": TokenEstimation(primer={"prose": 0.2, "code": 0.7}),
        "budget": {"prose": tokens(1500)},
        "schedule": MixtureSchedule({900: LATE}, unit="tokens"),
    },
    "exact tokens": {"mixture_unit": "tokens"},
    "exact tokens, redistribute": {
        "mixture_unit": "tokens",
        "exhausted_policy": {"prose": "redistribute", "code": "stop"},
    },
    "exact tokens, budget and schedule": {
        "mixture_unit": "tokens",
        "exhausted_policy": "redistribute",
        "budget": {"code": tokens(1500)},
        "schedule": MixtureSchedule({1200: LATE}, unit="tokens", interpolation="linear"),
        "shuffle_block_size": 24,
    },
}


def two(seed=1):
    return [
        token_dataset("prose", lengths(seed, 160), 3),
        token_dataset("code", lengths(seed + 1, 90, 90), 2),
    ]
