"""What a run says of documents that fit no row: once, with totals, whenever it ends."""

import warnings

import polars as pl
import pytest

from tests.properties.recipes import source, token_dataset
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import DataError, ExecutionError

LENGTHS = [5, 9, 4, 20, 3, 8, 11, 2] * 30
"""Per round three documents, of 40 tokens, are longer than a row of 8."""

PACK = {"num_bins": 2, "pad_token_id": 0}


def job(runner="inline", lengths=LENGTHS, lanes=1, batch=None, **changes):
    pipe = Pipeline(source([token_dataset("prose", lengths, 1)], shuffle_within_shard=False))
    pipe.pack_flat(8, **{**PACK, **changes}).options(runner=runner, canonical_replicas=lanes)
    return pipe if batch is None else pipe.batch(batch, drop_last=False)


class Heard:
    """Runs something; keeps what was said of dropped documents, and from where."""

    def __init__(self, run):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.out = run()
        found = [w for w in told if "packing dropped" in str(w.message)]
        self.texts = [str(w.message) for w in found]
        self.files = [w.filename for w in found]
        assert all(w.category is RuntimeWarning for w in found)


def left_after(pipe, items):
    found = iter(pipe)
    for _ in range(items):
        next(found)
    found.close()


def dropped(pipe):
    (part,) = pipe.accounting().values()
    return part["tokens_dropped"].get("oversized", 0)


@pytest.mark.parametrize(
    "call", [lambda p: p.filter(pl.lit(False)), lambda p: p.map_transform(_none)]
)
def test_where_no_row_is_left_it_is_said_what_dropped_them(call):
    pipe = call(Pipeline(source([token_dataset("prose", LENGTHS, 1)], shuffle_within_shard=False)))
    with pytest.warns(
        RuntimeWarning, match="^no row is left: filters and functions dropped all of the 240 that"
    ):
        assert list(pipe.batch(4).options(runner="inline")) == []


def _none(row):
    return None


@pytest.mark.parametrize("runner", ["inline", "threads"])
@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("batch", [None, 4])
def test_it_is_said_once_at_the_end_for_all_lanes(runner, lanes, batch):
    pipe = job(runner, lanes=lanes, batch=batch)
    heard = Heard(lambda: list(pipe))
    (text,) = heard.texts
    assert text == (
        "packing dropped 90 documents of 1,200 tokens so far, each longer than max_length=8: "
        "accounting() counts them; pass drop_oversized=False to make them an error, or tokenize "
        "with split_long_samples=True to keep them in parts"
    )
    assert heard.files == [__file__]
    assert dropped(pipe) == 1200


@pytest.mark.parametrize("algorithm", ["best_fit", "best_fit_decreasing"])
def test_every_algorithm_that_keeps_documents_whole_says_so(algorithm):
    bins = None if algorithm == "best_fit_decreasing" else 2
    (text,) = Heard(lambda: list(job(algorithm=algorithm, num_bins=bins))).texts
    assert text.startswith("packing dropped 90 documents of 1,200 tokens")


def test_one_document_is_one():
    (text,) = Heard(lambda: list(job(lengths=[3, 9, 4]))).texts
    assert text.startswith("packing dropped 1 document of 9 tokens so far, longer than max_length")


@pytest.mark.parametrize("items", [1, 7, 40])
def test_a_run_that_is_left_says_what_was_dropped_before_what_it_handed_out(items):
    """Not what lanes dropped while they ran ahead, which is another number each time."""
    told = set()
    for runner in ("inline", "threads"):
        pipe = job(runner)
        (text,) = Heard(lambda pipe=pipe: left_after(pipe, items)).texts
        assert f"of {dropped(pipe)} tokens so far" in text
        told.add(text)
    assert len(told) == 1
    assert 0 < dropped(pipe) < 1200


def test_it_is_said_where_the_iterator_is_closed():
    heard = Heard(lambda: left_after(job(), 5))
    assert heard.files == [__file__]


def test_with_steps_it_is_what_was_dropped_before_the_last_step():
    told = set()
    for runner in ("inline", "threads"):
        pipe = job(runner, lanes=2).batch(2).options(global_batch_size=12)
        (text,) = Heard(lambda pipe=pipe: list(pipe)).texts
        assert f"of {dropped(pipe):,} tokens so far" in text
        told.add(text)
    assert len(told) == 1


def test_a_resumed_run_counts_from_the_beginning_of_the_data():
    pipe = job()
    items = iter(pipe)
    for _ in range(30):
        next(items)
    state = pipe.checkpoint()
    Heard(items.close)
    resumed = job().restore(state)
    (text,) = Heard(lambda: list(resumed)).texts
    assert text.startswith("packing dropped 90 documents of 1,200 tokens so far")


QUIET = {
    "nothing is too long": {"lengths": [5, 8, 0, 3] * 9},
    "wrap cuts": {"algorithm": "wrap", "num_bins": None},
    "best_fit_wrap cuts": {"algorithm": "best_fit_wrap", "num_bins": None},
    "no data": {"lengths": [0, 0]},
}


@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_said_where_nothing_is_dropped(name):
    pipe = job(**QUIET[name])
    assert Heard(lambda: list(pipe)).texts == []
    assert dropped(pipe) == 0


def test_nothing_is_said_before_a_document_is_dropped():
    """It is read ahead, but the row that was handed out came before."""
    pipe = job(lengths=[8, 8, 3, 20, 4])
    assert Heard(lambda: left_after(pipe, 2)).texts == []
    assert Heard(lambda: list(pipe)).texts != []


def test_nothing_is_said_of_a_run_that_never_began():
    assert Heard(lambda: iter(job()).close()).texts == []


def test_an_error_in_the_data_stays_the_error():
    pipe = job(drop_oversized=False, lengths=[3, 4, 20])
    with pytest.raises(DataError, match="Sequence length 20 exceeds max_length 8") as caught:
        assert Heard(lambda: list(pipe)).texts == []
    assert isinstance(caught.value, ValueError)


def test_an_error_in_a_later_row_hides_nothing_and_is_not_hidden():
    rows = [{"input_ids": [1] * n} for n in (9, 8, 8, 12, 8, 8)] + [{"input_ids": None}]
    data = Dataset.from_dict("prose", {0: InMemoryShard(rows)})
    pipe = Pipeline(source([data], shuffle_within_shard=False)).pack_flat(8, **PACK)

    def run():
        with pytest.raises(DataError, match="row 6"):
            list(pipe.options(runner="inline"))

    (text,) = Heard(run).texts
    assert f"of {dropped(pipe)} tokens so far" in text


def test_a_function_measures_what_is_too_long():
    rows = token_dataset("prose", [3] * 12, 1)
    pipe = Pipeline(source([rows], shuffle_within_shard=False)).options(runner="inline")
    pipe.pack_sequences(8, num_bins=1, length_fn=lambda row: 9 if row["input_ids"][0] % 4000 else 4)
    heard = Heard(lambda: list(pipe))
    assert [len(r.payload["packed_samples"]) for r in heard.out] == [2, 1]
    (text,) = heard.texts
    assert text.startswith("packing dropped 9 documents of 27 tokens so far")


@pytest.mark.parametrize("unit", ["samples", "tokens"])
@pytest.mark.parametrize("lanes", [1, 3])
def test_data_without_end_of_which_nothing_is_left_are_an_error(unit, lanes):
    """A filter that lets nothing through must not read for ever, and none of its rows is lost."""
    data = [token_dataset(name, [3] * 20, 1) for name in ("prose", "code")]
    work = source(data, mixture_unit=unit, exhausted_policy="repeat")
    pipe = Pipeline(work).filter(pl.col("input_ids").list.len() > 3)
    pipe.pack_flat(8, algorithm="wrap").options(runner="inline", canonical_replicas=lanes)
    with pytest.raises(ExecutionError, match="no row of many passes gave a document"):
        next(iter(pipe))


def test_one_component_of_which_nothing_is_left_stops_a_mixture_by_tokens():
    """Its share can never come; the other one goes on in a mixture that counts samples."""

    def job(unit):
        data = [token_dataset("prose", [3] * 20, 1), token_dataset("code", [0] * 20, 1)]
        pipe = Pipeline(source(data, mixture_unit=unit, exhausted_policy="repeat"))
        pipe.filter(pl.col("input_ids").list.len() > 0)
        return pipe.pack_flat(8, algorithm="wrap").options(runner="inline").take(40)

    with pytest.raises(ExecutionError, match="leave out the component that gives none"):
        list(job("tokens"))
    pipe = job("samples")
    assert len(list(pipe)) == 40
    part = pipe.accounting()["code"]
    assert part["rows_filtered"] == part["rows_drawn"] > 30
