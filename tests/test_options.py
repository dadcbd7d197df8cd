"""Runtime options: names, defaults, values that cannot be, and what has no effect."""

import warnings

import pytest

from tests.properties.recipes import packed, rows
from zephon.errors import NotYetError, PlanError
from zephon.options import (
    DEFAULT_RUN_ID,
    NO_EFFECT,
    RuntimeOptions,
    parse_size,
)

DOCUMENTED = {
    "runner": None,
    "per_stage_runner": {},
    "run_id": "default_run_id",
    "worker_allocation": "fit_to_ops",
    "max_workers": None,
    "deterministic": True,
    "prefetch_batches": None,
    "default_stage_prefetch": None,
    "per_stage_prefetch": {},
    "op_queue_capacity": None,
    "ipc_transport": "socketpair",
    "ipc_buffer_bytes": 512 * 1024,
    "mixture_config": None,
    "allow_latency_flush_in_deterministic": True,
    "flush_every_k_chunks": None,
    "shutdown_mode": "graceful",
    "auto_validation": "strict",
    "mtp_mode": False,
    "mtp_buffer": None,
    "mtp_buffer_bytes": 8 * 1024 * 1024,
    "mtp_prefetch": None,
    "mtp_auto_checkpoint": True,
    "world_size": 1,
    "global_rank": 0,
    "dp_degree": None,
    "dp_group_id": None,
    "canonical_replicas": None,
    "mapping_strategy": None,
    "shm_enabled": True,
    "shm_coalesce": True,
    "shm_min_item_bytes": 4096,
    "shm_min_new_allocation_bytes": 1024 * 1024,
    "shm_min_forward_bytes": 128 * 1024,
    "shm_compact_above_ratio": 8.0,
    "shm_compact_min_savings_bytes": 16 * 1024 * 1024,
    "shm_max_coalesced_bytes": 64 * 1024 * 1024,
    "max_worker_retries": 3,
    "aggregate_dir": None,
    "aggregate_store": None,
    "aggregate_timeout_s": 180.0,
    "aggregate_serializer": "msgpack",
    "aggregate_compressor": "zstd",
    "metrics_sink_config": None,
}

OTHERS = {  # a harmless value that is not the default, for each option without effect
    "mp_context": "fork",
    "worker_allocation": "global",
    "deterministic": False,
    "default_stage_prefetch": 3,
    "per_stage_prefetch": {0: 2},
    "op_queue_capacity": 5,
    "ipc_transport": "pipe",
    "ipc_buffer_bytes": 1024,
    "mixture_config": None,
    "allow_latency_flush_in_deterministic": False,
    "shutdown_mode": "hard",
    "mtp_buffer": 3,
    "mtp_buffer_bytes": 1024,
    "mtp_prefetch": 2,
    "mtp_auto_checkpoint": False,
    "shm_enabled": False,
    "shm_coalesce": False,
    "shm_min_item_bytes": 1,
    "shm_min_new_allocation_bytes": 1,
    "shm_min_forward_bytes": 1,
    "shm_compact_above_ratio": 2.0,
    "shm_compact_min_savings_bytes": 1,
    "shm_max_coalesced_bytes": 1,
    "aggregate_serializer": "json",
    "aggregate_compressor": "none",
}


def said(value):
    """Name a test by the settings that it tries."""
    return " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else "-"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_defaults_are_the_documented_ones(name):
    assert getattr(RuntimeOptions(), name) == DOCUMENTED[name]
    assert DEFAULT_RUN_ID == "default_run_id"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("prefetch_batchs", "unknown option 'prefetch_batchs'; did you mean 'prefetch_batches'"),
        ("globalbatchsize", "did you mean 'global_batch_size'"),
        ("runer", "did you mean 'runner'"),
        ("_given", "unknown option '_given'"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_right_name(name, message):
    with pytest.raises(PlanError, match=message):
        packed(**{name: 1})


@pytest.mark.parametrize(
    ("old", "new"),
    [("shm_min_size", "shm_min_item_bytes"), ("coalesce_tensors", "shm_coalesce")],
)
def test_a_replaced_option_names_its_successor(old, new):
    with pytest.raises(TypeError, match=f"{old} was replaced by {new}"):
        packed(**{old: 1})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"runner": "thread"}, "runner='thread' is unknown; did you mean 'threads'"),
        ({"runner": 3}, "runner=3 is unknown"),
        ({"per_stage_runner": "inline"}, "per_stage_runner must be a dict from stage numbers"),
        ({"per_stage_runner": {"0": "inline"}}, "stage numbers as keys, got '0'"),
        ({"per_stage_runner": {0: "inlin"}}, r"per_stage_runner\[0\]='inlin' is unknown; did you"),
        ({"flush_every_k_chunks": 0}, "flush_every_k_chunks must be an integer of at least 1"),
        ({"max_worker_retries": -1}, "max_worker_retries must be an integer of at least 0"),
        ({"mapping_strategy": "interleave"}, "did you mean 'interleaved'"),
        ({"tokenizer_backend": "giga"}, "did you mean 'gigatoken'"),
        ({"memory_budget": "12 parsecs"}, "a size must be bytes or text such as '512mb', got '12"),
        ({"memory_budget": 0}, "a size must be at least 1 byte, got 0"),
        ({"memory_budget": True}, "got True"),
        ({"world_size": 0}, "world_size must be an integer of at least 1, got 0"),
        ({"global_rank": -1}, "global_rank must be an integer of at least 0, got -1"),
        ({"dp_degree": 0}, "dp_degree must be an integer of at least 1, got 0"),
        ({"dp_degree": 1.5}, r"dp_degree must be an integer of at least 1, got 1\.5"),
        ({"dp_group_id": -1}, "dp_group_id must be an integer of at least 0, got -1"),
        ({"canonical_replicas": 0}, "canonical_replicas must be an integer of at least 1, got 0"),
        ({"global_batch_size": 0}, "global_batch_size must be an integer of at least 1, got 0"),
        ({"global_batch_size": True}, "got True"),
        ({"max_workers": 0}, "max_workers must be an integer of at least 1, got 0"),
        ({"prefetch_batches": -1}, "prefetch_batches must be an integer of at least 0, got -1"),
        ({"mtp_mode": "yes"}, "mtp_mode must be True or False, got 'yes'"),
        ({"mtp_buffer": 0}, "mtp_buffer must be an integer of at least 1, got 0"),
        ({"mtp_buffer_bytes": 0}, "mtp_buffer_bytes must be an integer of at least 1, got 0"),
        ({"mtp_auto_checkpoint": None}, "mtp_auto_checkpoint must be True or False, got None"),
        ({"auto_validation": "strictly"}, "auto_validation='strictly' is unknown; did you mean 's"),
    ],
    ids=said,
)
def test_a_value_that_cannot_be_is_refused_at_the_call(settings, message):
    with pytest.raises(PlanError, match=message) as caught:
        packed(**settings)
    assert not isinstance(caught.value, NotYetError)


@pytest.mark.parametrize(
    "settings",
    [
        {"ledger": "spans"},
        {"token_cache": "64gb"},
        {"progress": True},
        {"on_metrics": print},
        {"execution_tracking": "nodes"},
        {"metrics_sink_config": {"mode": "log"}},
        {"runner": "ray"},
        {"runner": "remote"},
    ],
    ids=said,
)
def test_what_is_not_there_yet_is_refused_by_name(settings):
    (name,) = settings
    with pytest.raises(NotYetError, match=f"{name}=.* is not there yet"):
        packed(**settings)


@pytest.mark.parametrize("name", ["progress"])
def test_what_is_not_there_yet_may_be_set_to_its_default(name):
    assert len(rows(packed(**{name: DOCUMENTED.get(name, False)}), 2)) == 4


def test_all_options_of_a_call_are_checked_before_any_is_set():
    options = RuntimeOptions()
    with pytest.raises(PlanError):
        options.update(world_size=4, memory_budget="1gb", runner="thread")
    assert (options.world_size, options.memory_budget) == (1, None)
    assert options.without_effect == ()
    with pytest.raises(PlanError):
        options.update(shm_enabled=False, nothing_of_the_kind=1)
    assert options.without_effect == ()


def test_later_calls_add_to_earlier_ones():
    pipe = packed(canonical_replicas=3)
    pipe.options(prefetch_batches=1)
    pipe.options(runner="threads")
    assert rows(pipe) == rows(packed(canonical_replicas=3))


def test_every_option_without_effect_is_tried():
    assert set(OTHERS) == set(NO_EFFECT)


def test_options_without_effect_are_accepted_listed_and_change_no_byte():
    pipe = packed(**OTHERS)
    (line,) = [line for line in pipe.explain().splitlines() if "without effect" in line]
    assert all(name in line for name in NO_EFFECT)
    assert rows(pipe) == rows(packed())
    assert pipe.fingerprint() == packed().fingerprint()
    assert "without effect" not in packed(prefetch_batches=2, max_workers=1).explain()


def test_options_of_a_hosted_engine_have_their_effect_with_it():
    given = {name: OTHERS[name] for name in OTHERS if name.startswith("mtp_")}
    text = packed(mtp_mode=True, **given).explain()
    assert "options without effect here: mtp_prefetch\n" in text
    assert "the engine runs in a child process, up to 3 batches or 0.000977 MiB" in text
    assert "child process" not in packed().explain()


@pytest.mark.parametrize(
    ("settings", "batches"),
    [
        ({"mtp_buffer": 3}, 3),
        ({"prefetch_batches": 2}, 32),
        ({"prefetch_batches": 100}, 50),
        ({"max_workers": 2}, 32),
        ({"max_workers": 40}, 40),
    ],
    ids=said,
)
def test_how_far_a_hosted_engine_may_be_ahead(settings, batches):
    options = RuntimeOptions()
    options.update(**settings)
    assert options.hosted_room() == batches


def test_runners_of_stages_that_no_worker_runs_are_listed_as_without_effect():
    pipe = packed(mp_context="fork", per_stage_runner={1: "threads", 0: "inline"})
    assert "options without effect here: mp_context, per_stage_runner[1]\n" in f"{pipe.explain()}\n"
    assert "without effect" not in packed(per_stage_runner={0: "inline"}).explain()
    assert rows(pipe) == rows(packed())


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        (1, 1),
        ("7", 7),
        ("7b", 7),
        ("2kb", 2048),
        ("750GB", 750 << 30),
        (" 1.5 mb ", 3 << 19),
        ("1tb", 1 << 40),
    ],
)
def test_sizes_are_powers_of_1024(size, wanted):
    assert parse_size(size) == wanted


@pytest.mark.parametrize("size", ["", "mb", "-1", "0.5b", "inf", "nan", "1 2", 0, -5, 1.5, None])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(PlanError, match="a size must be"):
        parse_size(size)


# Who is who: checked against each other when the run opens


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"world_size": 2, "global_rank": 2}, r"2\), got 2"),
        ({"world_size": 2, "global_rank": 2, "dp_degree": 2, "dp_group_id": 0}, "global_rank"),
        ({"world_size": 2, "dp_degree": 4, "dp_group_id": 0}, "dp_degree"),
        ({"world_size": 3, "dp_degree": 2, "dp_group_id": 0}, "world_size"),
        ({"dp_degree": 2, "dp_group_id": 2}, r"dp_group_id must be in \[0, dp_degree=2\), got 2"),
        ({"canonical_replicas": 1, "dp_degree": 2, "dp_group_id": 0}, "canonical_replicas"),
    ],
    ids=said,
)
def test_ranks_that_cannot_be_are_refused_when_the_run_opens(settings, message):
    with pytest.raises(PlanError, match=message):
        iter(packed(**settings))


def test_ranks_without_an_identity_of_their_own_are_those_of_the_world():
    wanted = [packed(dp_degree=2, dp_group_id=g, canonical_replicas=4) for g in (0, 1)]
    found = [packed(world_size=2, global_rank=g, canonical_replicas=4) for g in (0, 1)]
    assert [rows(p) for p in found] == [rows(p) for p in wanted]


def test_peers_of_one_data_group_get_the_same_rows():
    one = packed(world_size=4, global_rank=0, dp_degree=2, dp_group_id=1)
    two = packed(world_size=4, global_rank=3, dp_degree=2, dp_group_id=1)
    assert rows(one) == rows(two)


def test_uneven_lanes_are_warned_of():
    with pytest.warns(RuntimeWarning, match="canonical_replicas"):
        iter(packed(canonical_replicas=5, dp_degree=2, dp_group_id=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iter(packed(canonical_replicas=4, dp_degree=2, dp_group_id=0))
