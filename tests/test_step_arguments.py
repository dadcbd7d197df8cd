"""Arguments of shuffling, keeping mixtures and packing that cannot be: refused at the call."""

import warnings

import pytest

from tests.properties.recipes import source, two_datasets
from zephon import Dataset, InMemoryShard, MixtureSpec, Pipeline
from zephon.errors import NotYetError, PlanError
from zephon.ops import DomainGroups

DATASETS = two_datasets()
WRAP = {"algorithm": "wrap"}
BINS = {"num_bins": 4, "pad_token_id": 0}


def lists():
    return Pipeline(source(DATASETS))


def shuffle(**changes):
    return lists().shuffle(**changes)


def mix(**changes):
    return lists().ensure_mixture(**changes)


def flat(**changes):
    return lists().pack_flat(**{"max_length": 8, **BINS, **changes})


def cut(algorithm="wrap", **changes):
    return lists().pack_flat(8, algorithm=algorithm, **{"pad_token_id": 0, **changes})


def sequences(**changes):
    return lists().pack_sequences(**{"max_length": 8, "num_bins": 4, **changes})


SHUFFLE = {
    "size 0": ({"buffer_size": 0}, "buffer_size must be .* at least 1, got 0"),
    "size below": ({"buffer_size": -3}, "at least 1, got -3"),
    "size of part": ({"buffer_size": 2.5}, "at least 1, got 2.5"),
    "size flag": ({"buffer_size": True}, "at least 1, got True"),
    "algorithm": ({"algorithm": "blok"}, "algorithm='blok' is unknown; did you mean 'block'"),
    "algorithm far": ({"algorithm": "x"}, "known are: block, block_warmup, streaming"),
    "growth 1": ({"warmup_growth": 1}, "warmup_growth must be a finite number above 1, got 1"),
    "growth below": ({"warmup_growth": 0.5}, "above 1, got 0.5"),
    "growth nan": ({"warmup_growth": float("nan")}, "above 1, got nan"),
    "growth endless": ({"warmup_growth": float("inf")}, "finite number above 1, got inf"),
    "growth text": ({"warmup_growth": "2"}, "above 1, got '2'"),
    "seed": ({"seed": None}, "seed must be an integer, got None"),
    "seed text": ({"seed": "7"}, "seed must be an integer, got '7'"),
    "parallelism": ({"parallelism": 0}, "parallelism must be .* at least 1, got 0"),
    "placement": ({"placement": "loca"}, "placement='loca' is unknown; did you mean 'local'"),
    "no place yet": ({"placement": "remot"}, "'remot' is unknown; did you mean 'remote'"),
}
MIX = {
    "size": ({"max_buffer_size": 0}, "max_buffer_size must be .* at least 1, got 0"),
    "size of part": ({"max_buffer_size": 1.5}, "at least 1, got 1.5"),
    "ratio 0": ({"drain_target_ratio": 0}, "drain_target_ratio must be between 0 and 1, got 0"),
    "ratio 1": ({"drain_target_ratio": 1.0}, "between 0 and 1, got 1.0"),
    "ratio nan": ({"drain_target_ratio": float("nan")}, "between 0 and 1, got nan"),
    "rate below": ({"obsolete_drain_rate": -0.1}, "obsolete_drain_rate must be from 0 to 1, got -"),
    "rate above": ({"obsolete_drain_rate": 1.1}, "from 0 to 1, got 1.1"),
    "tolerance": ({"warn_tolerance": 2}, "warn_tolerance must be from 0 to 1, got 2"),
    "tolerance flag": ({"warn_tolerance": True}, "from 0 to 1, got True"),
    "weight": ({"weight_by": 3}, "must be 'auto', 'samples', the name of a field, or a function"),
    "weight none": ({"weight_by": None}, "the name of a field, or a function, got None"),
    "weight field": ({"weight_by": "input_idz"}, "'input_idz' is no field here; did you mean 'inp"),
    "name": ({"mixture": {"prosa": 1}}, "mixture has no component 'prosa'; did you mean 'prose'"),
    "names": ({"mixture": MixtureSpec({"x": 1})}, "has no component 'x'; known are: code, prose"),
    "no mixture": ({"mixture": {}}, "must be a non-empty mapping"),
    "parallelism": ({"parallelism": -1}, "parallelism must be .* at least 1, got -1"),
    "placement": ({"placement": "gpu"}, "'gpu' is unknown; known are: auto, local, remote"),
}
PACK = {
    "length": ({"max_length": 0}, "max_length must be .* at least 1, got 0"),
    "length flag": ({"max_length": True}, "at least 1, got True"),
    "algorithm": ({"algorithm": "firstfit"}, "'firstfit' is unknown; did you mean 'first_fit'"),
    "algorithm far": (
        {"algorithm": "ffd"},
        "known are: best_fit, best_fit_decreasing, best_fit_wrap, first_fit, wrap",
    ),
    "bins": ({"num_bins": 0}, "num_bins must be .* at least 1, got 0"),
    "no bins": ({"num_bins": None}, "algorithm='first_fit' needs num_bins"),
    "no bins, best": ({"num_bins": None, "algorithm": "best_fit"}, "'best_fit' needs num_bins"),
    "cap": ({"max_sequences_per_bin": 0}, "max_sequences_per_bin must be .* at least 1, got 0"),
    "pool": ({"candidate_pool_size": 9}, "candidate_pool_size=9 has no meaning .*='first_fit'"),
    "pool, best": (
        {"candidate_pool_size": 9, "algorithm": "best_fit"},
        "under algorithm='best_fit', only under best_fit_wrap and best_fit_decreasing",
    ),
    "age": ({"max_candidate_age": 9}, "max_candidate_age=9 has no meaning"),
    "minimum": ({"min_sequence_length": -1}, "min_sequence_length must be .* at least 0, got -1"),
    "oversized": ({"drop_oversized": "yes"}, "drop_oversized must be True or False, got 'yes'"),
    "flush": ({"flush_strategy": "lifo"}, "flush_strategy='lifo' is unknown; did you mean 'fifo'"),
    "flush none": ({"flush_strategy": None}, "flush_strategy=None is unknown"),
    "shuffle": ({"shuffle_strategy": "lenght"}, "'lenght' is unknown; did you mean 'length'"),
    "shuffle flag": ({"shuffle_strategy": True}, "known are: length, random"),
    "seed": ({"shuffle_seed": 1.5}, "shuffle_seed must be an integer, got 1.5"),
    "homogeneity": ({"homogeneity": "groop"}, "homogeneity='groop' is unknown; did you mean 'gro"),
    "homogeneity with groups": (
        {"homogeneity": "groop", "groups": DomainGroups({"g": ["prose"]})},
        "homogeneity='groop' is unknown; did you mean 'group'",
    ),
    "groups": ({"groups": DomainGroups({"g": ["prose"]})}, "groups needs homogeneity='group', got"),
    "groups, full": (
        {"groups": DomainGroups({"g": ["prose"]}), "homogeneity": "full"},
        "groups needs homogeneity='group', got 'full'; leave groups out",
    ),
    "no groups": ({"homogeneity": "group"}, "homogeneity='group' needs groups, got None; pass"),
    "groups dict": (
        {"homogeneity": "group", "groups": {"g": ["prose"]}}, "needs groups, got .*DomainGroups",
    ),
    "group member": (
        {"homogeneity": "group", "groups": DomainGroups({"g": ["prose", "maths"]})},
        "groups name 'maths', which is no component; known are: code, prose",
    ),
    "tokens field": ({"tokens_field": None}, "tokens_field must be 'auto' or the name .* got None"),
    "tokens field number": ({"tokens_field": 5}, "tokens_field must be 'auto' .* got 5"),
    "aligned": ({"aligned_fields": 5}, "aligned_fields must be 'auto', a list .* got 5"),
    "aligned text": ({"aligned_fields": "mask"}, "aligned_fields must be 'auto', .* got 'mask'"),
    "aligned name": ({"aligned_fields": ["mask"]}, "aligned_fields names 'mask', .*there is none"),
    "parallelism": ({"parallelism": 0}, "parallelism must be .* at least 1, got 0"),
    "placement": ({"placement": 1}, "placement=1 is unknown"),
}  # fmt: skip
FLAT = {
    "no pad": ({"pad_token_id": None}, "algorithm='first_fit' pads rows, so it needs pad_token_id"),
    "pad below": ({"pad_token_id": -1}, "pad_token_id must be .* at least 0, got -1"),
    "pad text": ({"pad_token_id": "0"}, "pad_token_id must be .* at least 0, got '0'"),
    "positions": ({"emit_positions": 1}, "emit_positions must be True or False, got 1"),
}
CUT = {
    **{
        f"{name} {algorithm}": (
            {"algorithm": algorithm, **changes},
            f"{next(iter(changes))}=.* has no meaning under algorithm='{algorithm}'",
        )
        for algorithm in ("wrap", "best_fit_wrap")
        for name, changes in {"bins": {"num_bins": 3}, "drop": {"drop_oversized": True}}.items()
    },
    "bins, look-ahead": (
        {"algorithm": "best_fit_decreasing", "num_bins": 3},
        "num_bins=3 has no meaning .* only under first_fit and best_fit; leave it out",
    ),
    "pool, wrap": ({"candidate_pool_size": 3}, "candidate_pool_size=3 has no meaning"),
    "age, wrap": ({"max_candidate_age": 3}, "max_candidate_age=3 has no meaning"),
    "pool 0": ({"algorithm": "best_fit_wrap", "candidate_pool_size": 0}, "at least 1, got 0"),
    "age 0": ({"algorithm": "best_fit_wrap", "max_candidate_age": 0}, "at least 1, got 0"),
    **{
        f"no pad {algorithm} {cap}": (
            {"algorithm": algorithm, "pad_token_id": None, "max_sequences_per_bin": cap},
            f"pack_flat: algorithm='{algorithm}' pads rows, so it needs pad_token_id",
        )
        for algorithm, cap in (("wrap", 3), ("best_fit_wrap", None), ("best_fit_decreasing", None))
    },
}
SEQUENCES = {
    "length_fn": ({"length_fn": 5}, "length_fn must be a function of a row, got 5"),
    **{
        f"length_fn {algorithm}": (
            {"length_fn": len, "algorithm": algorithm, "num_bins": None},
            f"length_fn has no meaning under algorithm='{algorithm}', .* use first_fit, best_fi",
        )
        for algorithm in ("wrap", "best_fit_wrap")
    },
    "payloads": ({"pack_payloads": "keeplist"}, "'keeplist' is unknown; did you mean 'keep_list'"),
    "payloads number": ({"pack_payloads": 5}, "known are: keep_list, numpy_array, torch_tensor"),
}
REFUSED = {
    **{f"shuffle {name}": (shuffle, "shuffle", *case) for name, case in SHUFFLE.items()},
    **{f"ensure_mixture {name}": (mix, "", *case) for name, case in MIX.items()},
    **{f"pack_flat {name}": (flat, "pack_flat", *case) for name, case in {**PACK, **FLAT}.items()},
    **{f"cut {name}": (cut, "pack_flat", *case) for name, case in CUT.items()},
    **{
        f"pack_sequences {name}": (sequences, "pack_sequences", *case)
        for name, case in {**PACK, **SEQUENCES}.items()
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_argument_that_cannot_be_is_refused(name):
    call, where, arguments, message = REFUSED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is said of a call that is refused
        with pytest.raises(PlanError, match=message) as caught:
            call(**arguments)
    assert str(caught.value).startswith(where)
    assert isinstance(caught.value, ValueError)
    assert not isinstance(caught.value, NotYetError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("argument", ["pad_token_id", "emit_positions"])
def test_documents_side_by_side_are_not_padded(argument):
    with pytest.raises(TypeError, match=argument):
        sequences(**{argument: 0})


@pytest.mark.parametrize("argument", ["length_fn", "pack_payloads"])
def test_documents_end_to_end_are_tokens(argument):
    with pytest.raises(TypeError, match=argument):
        flat(**{argument: len})


def test_no_row_is_looked_at_for_a_call_that_is_refused(monkeypatch):
    looks = []
    for look in ("first_lists", "held_in"):
        monkeypatch.setattr(Dataset, look, lambda *_, look=look: looks.append(look))
    rows = [{"input_ids": [1, 2], "mask": [0, 1]}]
    pipe = Pipeline(source([Dataset.from_dict("prose", {0: InMemoryShard(rows)})]))
    for call in (pipe.pack_flat, pipe.pack_sequences):
        with pytest.raises(PlanError, match="'fist_fit' is unknown"):
            call(8, algorithm="fist_fit")
    assert looks == []
