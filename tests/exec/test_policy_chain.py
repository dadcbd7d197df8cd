"""Policies of a plan: refused where the mixture counts otherwise, built with the plan's numbers."""

import pytest

from tests.properties.recipes import source, text_dataset, token_dataset
from zephon import Pipeline
from zephon.errors import PlanError
from zephon.ops import DomainGroups
from zephon.work import TokenEstimation

NAMES = ("prose", "code", "maths")
ESTIMATED = {"token_estimation": TokenEstimation(fallback_tokens_per_byte=0.5)}
EXACT = {"mixture_unit": "tokens"}


def texts(**work):
    return Pipeline(source([text_dataset("words", 12)], **work)).options(runner="inline")


def lists(**work):
    return Pipeline(source([token_dataset(name, [3, 5] * 9) for name in NAMES], **work)).options(
        runner="inline"
    )


def tokenize(pipe, **more):
    return pipe.tokenize(tokenizer_id="tok", field="text", **more)


# Steps that would undo what the mixture counts

UNDONE = {
    "samples": (
        lambda: tokenize(texts(**ESTIMATED)).ensure_mixture(weight_by="samples"),
        "ensure_mixture: weight_by='samples' undoes token_estimation, with which weights count tok",
    ),
    "samples of packed rows": (
        lambda: lists(**ESTIMATED).pack_flat(9, algorithm="wrap").ensure_mixture(weight_by="samp"),
        "weight_by='samp' is no field here; did you mean 'samples'",
    ),
    "samples of packed rows, spelt": (
        lambda: lists(**ESTIMATED).pack_flat(9, algorithm="wrap").ensure_mixture(
            weight_by="samples"
        ),
        "ensure_mixture: weight_by='samples' undoes token_estimation",
    ),
    "before tokenize": (
        lambda: tokenize(texts(**ESTIMATED).ensure_mixture(weight_by="text")),
        "ensure_mixture: it stands before tokenize, and with token_estimation it must count token",
    ),
    "shuffle before tokenize": (
        lambda: tokenize(texts(**EXACT).shuffle(4)),
        "shuffle: with mixture_unit='tokens' .* nothing may reorder rows before; call shuffle aft",
    ),
    "ensure_mixture before tokenize": (
        lambda: tokenize(texts(**EXACT).ensure_mixture(weight_by="samples")),
        "ensure_mixture: with mixture_unit='tokens' .*; call ensure_mixture after tokenize",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDONE)
def test_a_step_that_undoes_the_mixture_is_refused_at_the_call(name):
    call, message = UNDONE[name]
    with pytest.raises(PlanError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("unit", [ESTIMATED, EXACT])
def test_a_refused_call_leaves_the_pipeline_as_it_was(unit):
    pipe = texts(**unit).ensure_mixture(weight_by="text")
    before = pipe.explain()
    with pytest.raises(PlanError, match="ensure_mixture"):
        tokenize(pipe)
    assert pipe.explain() == before


ALLOWED = {
    "shuffle, estimated": lambda: tokenize(texts(**ESTIMATED).shuffle(4)),
    "mixture, estimated": lambda: tokenize(texts(**ESTIMATED)).ensure_mixture(),
    "field, estimated": lambda: tokenize(
        texts(**ESTIMATED), preserve_upstream_payload=True
    ).ensure_mixture(weight_by="text"),
    "both, estimated": lambda: tokenize(texts(**ESTIMATED).shuffle(4)).ensure_mixture().shuffle(4),
    "shuffle, exact": lambda: tokenize(texts(**EXACT)).shuffle(4),
    "token lists, exact": lambda: lists(**EXACT).shuffle(4).ensure_mixture(weight_by="samples"),
    "samples, counted so": lambda: tokenize(texts().ensure_mixture(weight_by="samples")),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_keeps_the_mixture_is_taken(name):
    assert isinstance(ALLOWED[name](), Pipeline)


# Who shares rows


def at_the_end(**arguments):
    """Give the components of each row, where no row is done before the data end."""
    pipe = lists(shuffle_within_shard=True)
    pipe.pack_sequences(1000, num_bins=1, **arguments)
    return [{NAMES[number] for number in r.meta.component_token_counts} for r in pipe]


def test_domains_are_numbered_as_the_groups_are_named():
    groups = DomainGroups({"z": ["maths"], "a": ["code", "prose"]})
    assert at_the_end(homogeneity="group", groups=groups) == [{"maths"}, {"prose", "code"}]


def test_components_in_no_group_come_after_the_groups():
    groups = DomainGroups({"z": ["maths"]})
    with pytest.warns(RuntimeWarning, match="'prose', 'code' are in no group"):
        found = at_the_end(homogeneity="group", groups=groups)
    assert found == [{"maths"}, {"prose"}, {"code"}]


def test_each_component_is_a_domain_in_the_order_of_the_source():
    assert at_the_end(homogeneity="full") == [{"prose"}, {"code"}, {"maths"}]
    assert at_the_end() == [set(NAMES)]


# What a mixture is kept for


@pytest.mark.parametrize("target", [{"maths": 3, "prose": 1}, {"maths": 1, "prose": 1, "code": 2}])
def test_a_target_is_that_of_the_components_of_its_names(target):
    """With a rate of 0, components that the target leaves out come last."""
    pipe = lists(shuffle_within_shard=True).ensure_mixture(
        mixture=target, weight_by="samples", max_buffer_size=1000, obsolete_drain_rate=0.0
    )
    rows = [NAMES[next(iter(r.meta.component_sample_counts))] for r in pipe]
    assert sorted(rows) == sorted(NAMES * 18)
    first = rows[:12]
    total = sum(target.values())
    assert {name: first.count(name) for name in target} == {
        name: 12 * share // total for name, share in target.items()
    }
