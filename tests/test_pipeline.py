"""The public calls: what each accepts and refuses, in which order, and what comes later."""

import json
from types import MappingProxyType

import pytest

from tests.properties.recipes import packed, rows, rows_of, source, text_dataset, two_datasets
from tests.written import dataset, lines, pipeline
from zephon import Dataset, InMemoryShard, Pipeline, SampleBatch, StaticMixtureWorkSource
from zephon.errors import NotYetError, PlanError, TokenizerError
from zephon.work import WorkSource

WRAP = {"algorithm": "wrap"}


def texts():
    return Pipeline(source([text_dataset("words", 12)]))


def lists():
    return Pipeline(source(two_datasets()))


def tokenize(**changes):
    return texts().tokenize(**{"tokenizer_id": "tok", "field": "text", **changes})


def pack(**changes):
    return lists().pack_flat(**{"max_length": 8, "algorithm": "wrap", **changes})


# What cannot be is refused where it is said

REFUSED = {
    "tokenize field empty": (tokenize, {"field": ""}, r"field must be a column name, got ''"),
    "tokenize field number": (tokenize, {"field": 3}, r"field must be a column name, got 3"),
    "tokenize missing_field": (
        tokenize, {"missing_field": "eror"}, r"missing_field='eror' is unknown; did you mean 'err",
    ),
    "tokenize special_tokens": (tokenize, {"special_tokens": "both"}, "known are: bos, bos_eos,"),
    "tokenize padding": (tokenize, {"padding": "max-length"}, "did you mean 'max_length'"),
    "tokenize padding kind": (tokenize, {"padding": ["longest"]}, r"padding=.*longest.* is unk"),
    "tokenize return_tensors": (tokenize, {"return_tensors": "jax"}, "None, 'np' or 'pt', got 'j"),
    "tokenize max_length": (tokenize, {"max_length": 0}, "max_length must be .* at least 1, got 0"),
    "tokenize max_length bool": (tokenize, {"max_length": True}, "at least 1, got True"),
    "tokenize parallelism": (tokenize, {"parallelism": 0}, "parallelism must be .* least 1, got 0"),
    "tokenize placement": (tokenize, {"placement": "locl"}, "'locl' is unknown; did you mean 'loc"),
    "tokenize placement kind": (tokenize, {"placement": None}, "placement=None is unknown"),
    "tokenize splits without bound": (
        tokenize, {"split_long_samples": True}, "split_long_samples=True needs max_length",
    ),
    "tokenize pads without bound": (
        tokenize, {"padding": "max_length"}, "padding='max_length' needs max_length",
    ),
    "tokenize cuts without bound": (tokenize, {"truncation": True}, "truncation=True needs max_le"),
    "tokenize splits and cuts": (
        tokenize,
        {"split_long_samples": True, "truncation": True, "max_length": 9},
        "choose one of them",
    ),
    "tokenize no room": (
        tokenize, {"truncation": True, "max_length": 1}, "no room for the 2 special tokens",
    ),
    "tokenize bos under none": (
        tokenize, {"special_tokens": "none", "bos_token_id": 3}, "bos_token_id=3 has no place",
    ),
    "tokenize eos under template": (
        tokenize, {"special_tokens": "tokenizer_default", "eos_token_id": 3}, "eos_token_id=3 has",
    ),
    "tokenize negative id": (tokenize, {"bos_token_id": -1}, "bos_token_id must .* least 0, got -"),
    "pack max_length": (pack, {"max_length": 0}, "max_length must be .* at least 1, got 0"),
    "pack max_length text": (pack, {"max_length": "8"}, "at least 1, got '8'"),
    "pack algorithm": (pack, {"algorithm": "warp"}, "algorithm='warp' is unknown; did you mean 'w"),
    "pack pad": (pack, {"pad_token_id": -1}, "pad_token_id must be .* at least 0, got -1"),
    "pack parallelism": (pack, {"parallelism": 0}, "parallelism must be .* at least 1, got 0"),
    "pack placement": (pack, {"placement": "gpu"}, "pack_flat: placement='gpu' is unknown"),
    "batch size": (lists().batch, {"microbatch_size": 0}, "microbatch_size must .* least 1, got 0"),
    "batch size part": (lists().batch, {"microbatch_size": 1.5}, "at least 1, got 1.5"),
    "batch placement": (
        lists().batch, {"microbatch_size": 1, "placement": "x"}, "batch: placement='x' is unknown",
    ),
    "fetch parallelism": (lists().fetch, {"parallelism": 0}, "parallelism must be .* least 1"),
    "fetch_parallelism": (lists().fetch_parallelism, {"parallelism": -2}, "at least 1, got -2"),
    "fetch max_batch": (lists().fetch, {"max_batch": 0}, "max_batch must be .* at least 1, got 0"),
    "prefetch buffer": (lists().prefetch, {"buffer_size": 0}, "buffer_size must .* at least 1"),
    "prefetch parallelism": (lists().prefetch, {"parallelism": 0}, "parallelism must be .* le"),
    "prefetch placement": (lists().prefetch, {"placement": "far"}, "prefetch: placement='far' is"),
    "restore allow": (
        lists().restore, {"state": {}, "allow": ["wieghts"]}, "'wieghts'.*; did you mean 'weights'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_argument_that_cannot_be_is_refused(name):
    call, arguments, message = REFUSED[name]
    with pytest.raises(PlanError, match=message) as caught:
        call(**arguments)
    assert isinstance(caught.value, ValueError)
    assert not isinstance(caught.value, NotYetError)
    assert "\n" not in str(caught.value)


def test_prefetch_twice():
    with pytest.raises(RuntimeError, match="prefetch: it was called before"):
        lists().prefetch().prefetch(16)


@pytest.mark.parametrize("argument", [5, None, [1, 2], "prose"])
def test_a_pipeline_needs_a_work_source(argument):
    with pytest.raises(PlanError, match=f"expected a work source, got {type(argument).__name__}"):
        Pipeline(argument)


def test_misspelt_arguments_are_refused():
    with pytest.raises(TypeError, match="trucation"):
        tokenize(trucation=True)
    with pytest.raises(TypeError, match="length_fn"):
        pack(length_fn=len)


ORDERS = {
    "tokenize after batch": (
        lambda p: p.batch(2).tokenize(tokenizer_id="tok", field="text"),
        "tokenize: it cannot come after batch; call tokenize earlier",
    ),
    "tokenize after pack_flat": (
        lambda p: p.pack_flat(8, **WRAP).tokenize(tokenizer_id="tok", field="text"),
        "tokenize: it cannot come after pack_flat",
    ),
    "tokenize twice": (
        lambda p: p.tokenize(tokenizer_id="tok", field="t").tokenize(tokenizer_id="t", field="t"),
        "tokenize: it was called before; call it once",
    ),
    "pack_flat after batch": (
        lambda p: p.batch(2).pack_flat(8, **WRAP),
        "pack_flat: it cannot come after batch; call pack_flat earlier",
    ),
    "pack_flat twice": (
        lambda p: p.pack_flat(8, **WRAP).pack_flat(8, **WRAP),
        "pack_flat: it was called before; call it once",
    ),
    "batch twice": (lambda p: p.batch(2).batch(3), "batch: it was called before; call it once"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_calls_in_an_impossible_order_are_refused_where_they_are_made(name):
    call, message = ORDERS[name]
    with pytest.raises(PlanError, match=message):
        call(lists())


def test_a_refused_call_leaves_the_pipeline_as_it_was():
    pipe = packed()
    wanted = pipe.explain()
    for call in (lambda: pipe.batch(3), lambda: pipe.tokenize(tokenizer_id="t", field="x")):
        with pytest.raises(PlanError):
            call()
    assert pipe.explain() == wanted
    assert len(rows(pipe)) > 100


def test_packing_needs_a_token_field():
    with pytest.raises(
        PlanError, match=r"no token field .* the fields are text, id; call tokenize"
    ):
        texts().pack_flat(8, **WRAP)
    with pytest.raises(PlanError, match=r"tokens_field must be 'input_ids', .*got 'ids'"):
        tokenize().pack_flat(8, tokens_field="ids", **WRAP)


def test_a_parquet_field_that_cannot_be_is_refused_at_the_call(tmp_path):
    words = dataset("parquet", tmp_path, [{"text": "ash", "score": 1.5, "tokens": [1, 2]}] * 3)
    with pytest.raises(PlanError, match="no field 'txt' in dataset 'words'; did you mean 'text'"):
        pipeline(words).tokenize(tokenizer_id="tok", field="txt")
    with pytest.raises(PlanError, match="'score' of dataset 'words' must hold text, it holds sca"):
        pipeline(words).tokenize(tokenizer_id="tok", field="score")
    with pytest.raises(PlanError, match=r"'text' .* must hold lists of integers, it holds text"):
        pipeline(words).pack_flat(8, tokens_field="text", **WRAP)


def test_the_field_must_be_in_every_dataset_of_the_mixture(tmp_path):
    prose = dataset("parquet", tmp_path / "a", [{"text": "ash"}] * 3, name="prose")
    code = dataset("parquet", tmp_path / "b", [{"body": "fir"}] * 3, name="code")
    with pytest.raises(PlanError, match="no field 'text' in dataset 'code'"):
        pipeline(prose, code).tokenize(tokenizer_id="tok", field="text")
    zero = Pipeline(source([prose, code], {"prose": 1.0, "code": 0.0}))
    assert zero.tokenize(tokenizer_id="tok", field="text") is zero


# What is documented and not there yet is refused by name

LATER = {
    "placement of tokenize": (lambda: tokenize(placement="remote"), "tokenize: placement='remote'"),
    "placement of pack_flat": (lambda: pack(placement="remote"), "pack_flat: placement='remote'"),
    "placement of batch": (lambda: lists().batch(2, placement="remote"), "batch: placement='remo"),
    "placement of prefetch": (lambda: lists().prefetch(placement="remote"), "prefetch: placement="),
    "tf": (lambda: tokenize(return_tensors="tf"), "return_tensors='tf'"),
    "placement of shuffle": (lambda: lists().shuffle(placement="remote"), "shuffle: placement="),
    "placement of ensure_mixture": (
        lambda: lists().ensure_mixture(placement="remote"), "ensure_mixture: placement='remote'",
    ),
    "placement of pack_sequences": (
        lambda: lists().pack_sequences(8, placement="remote"), "pack_sequences: placement='remote'",
    ),
    **{
        f"runner {name}": (lambda name=name: lists().options(runner=name), f"runner='{name}' is no")
        for name in ("ray", "remote")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", LATER)
def test_what_is_not_there_yet_is_refused_by_name(name):
    call, message = LATER[name]
    with pytest.raises(NotYetError, match=message) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, NotImplementedError)


@pytest.mark.parametrize("fmt", ["vortex", "lance", "mds", "litdata"])
def test_formats_that_are_not_there_yet_are_refused_by_name(tmp_path, fmt):
    lines(tmp_path, "a.jsonl", [{"text": "ash"}])
    with pytest.raises(NotYetError, match=f"format '{fmt}' is not supported yet"):
        Dataset.from_path("words", tmp_path, fmt=fmt)


def test_a_work_source_of_ones_own_is_checked_where_it_is_given():
    class Own(WorkSource):
        datasets_by_id = MappingProxyType({})

        def next_chunk(self):
            raise AssertionError

    with pytest.raises(PlanError, match="must be a non-empty mapping from ids to datasets"):
        Pipeline(Own())
    with pytest.raises(PlanError, match="expected a work source, got list"):
        Pipeline([])
    with pytest.raises(PlanError, match="got the copy of a StaticMixtureWorkSource for lane 1"):
        Pipeline(source([text_dataset("words", 12)]).clone_for_lane(1, 2))


def test_a_tokenizer_that_is_not_there_is_refused_before_the_first_row():
    with pytest.raises(TokenizerError, match="tokenizer_id='/nowhere/tok': no such file"):
        iter(tokenize(tokenizer_id="/nowhere/tok"))
    with pytest.raises(TokenizerError, match=r"expected a tokenizers\.Tokenizer .* got .*int"):
        iter(tokenize(tokenizer=5))


# Calls build in place


def test_calls_change_the_pipeline_and_return_it(tokenizer_file):
    pipe = texts()
    assert pipe.fetch_parallelism(2) is pipe
    assert pipe.fetch(3, max_batch=8) is pipe
    assert pipe.prefetch(16) is pipe
    assert pipe.tokenize(tokenizer_id=tokenizer_file, field="text") is pipe
    assert pipe.pack_flat(16, **WRAP) is pipe
    assert pipe.batch(2) is pipe
    assert pipe.options(runner="inline") is pipe
    assert pipe.restore(pipe.checkpoint()) is pipe
    assert all(len(batch) == 2 for batch in pipe)


def test_a_pipeline_has_no_length_and_no_index():
    with pytest.raises(TypeError):
        len(packed())
    with pytest.raises(TypeError):
        packed()[0]


@pytest.mark.parametrize("place", ["first", "before batch", "last"])
def test_prefetch_moves_no_row_wherever_it_stands(place):
    pipe = lists().options(runner="inline")
    calls = [lambda: pipe.pack_flat(33, **WRAP), lambda: pipe.batch(2)]
    calls.insert({"first": 0, "before batch": 1, "last": 2}[place], lambda: pipe.prefetch(8))
    for call in calls:
        call()
    items = list(pipe)
    assert all(isinstance(item, SampleBatch) for item in items)
    plain = list(lists().pack_flat(33, **WRAP).batch(2).options(runner="inline"))
    assert [rows_of(batch) for batch in items] == [rows_of(batch) for batch in plain]


@pytest.mark.parametrize("settings", [(1,), (7, 3)])
def test_fetch_parallelism_may_stand_anywhere_and_changes_no_row(settings):
    wanted = rows(packed())
    assert rows(packed().fetch_parallelism(*settings)) == wanted


# Sets of settings that must not matter


def test_equal_calls_say_equal_things(tokenizer_file):
    one = tokenize(tokenizer_id=tokenizer_file, padding=False).pack_flat(8, **WRAP).batch(2)
    two = tokenize(tokenizer_id=tokenizer_file, padding="do_not_pad").pack_flat(8, **WRAP).batch(2)
    assert one.fingerprint() == two.fingerprint()
    assert one.explain() == two.explain()


def test_a_state_is_plain_json(tokenizer_file):
    pipe = texts().tokenize(tokenizer_id=tokenizer_file, field="text").pack_flat(8, **WRAP).batch(2)
    state = pipe.checkpoint()
    assert json.loads(json.dumps(state)) == state


def test_a_mixture_that_would_not_be_asked_for_chunks_is_refused():
    class Own(StaticMixtureWorkSource):
        def next_chunk(self):
            return None

    found = Dataset.from_dict("a", {0: InMemoryShard([{"text": "x"}])})
    with pytest.raises(PlanError, match=r"Own overrides next_chunk\(\), .* derive from WorkSource"):
        Pipeline(Own([found], {"a": 1}))
