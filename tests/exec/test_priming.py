"""Costs are found once, where a run begins, before its fingerprint; a restore keeps them."""

import threading
import warnings
from itertools import islice

import numpy as np
import pytest

from tests import written
from tests.exec.test_counting import all_rows, estimated, texts, tokenized
from tests.properties.recipes import rows, token_dataset
from zephon import Dataset, InMemoryShard, Pipeline
from zephon.errors import CheckpointError, ExecutionError, PlanError, ShardError
from zephon.exec.launch import tokenizers_of
from zephon.exec.priming import prime
from zephon.io.reader import RowReader
from zephon.work import StaticMixtureWorkSource, TokenEstimation, WorkSource


class Counter:
    """Measures token lists, and knows how often it was asked."""

    def __init__(self, factor=1):
        self.calls = 0
        self.factor = factor

    def __call__(self, row):
        self.calls += 1
        return self.factor * len(row["input_ids"])


def short_and_long():
    return [token_dataset("ones", [1] * 400, 3), token_dataset("longs", [50] * 60, 2)]


def packed(source, **options):
    return (
        Pipeline(source)
        .pack_flat(32, algorithm="wrap")
        .batch(2)
        .options(**{"runner": "inline", **options})
    )


def run_until(pipeline, batches):
    items = iter(pipeline)
    head = list(islice(items, batches))
    state = pipeline.checkpoint()
    items.close()
    return head, state


@pytest.mark.parametrize("begin", ["iter", "checkpoint", "fingerprint", "accounting"])
def test_a_run_that_begins_anyhow_measures_first(begin):
    source = estimated(*short_and_long())
    pipeline = packed(source)
    assert source.requires_token_priming
    iter(pipeline) if begin == "iter" else getattr(pipeline, begin)()
    assert source.token_costs == {"ones": 1.0, "longs": 50.0}
    assert not source.requires_token_priming


def test_a_source_measures_once():
    measure = Counter()
    pipeline = packed(estimated(*short_and_long(), measure=measure))
    pipeline.fingerprint()
    assert measure.calls == 460
    rows(pipeline)
    pipeline.checkpoint()
    rows(pipeline.options(runner="threads"))
    assert measure.calls == 460


def test_costs_are_part_of_the_recipe():
    def fingerprint(factor, *, runner="inline"):
        source = estimated(*short_and_long(), measure=Counter(factor))
        return packed(source, runner=runner).fingerprint()

    assert fingerprint(1) == fingerprint(1) == fingerprint(1, runner="threads")
    assert fingerprint(1) != fingerprint(2)
    measured = packed(estimated(*short_and_long())).fingerprint()
    assert fingerprint(1) == measured  # it counts the same


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_threads_and_inline_measure_the_same_to_the_last_bit(kind, tmp_path, tokenizer_file):
    def costs(**options):
        rng = np.random.default_rng(2)
        many = [{"text": "ash " * int(rng.lognormal(1, 1.5))} for _ in range(700)]
        data = written.dataset(kind, tmp_path, many, shards=7)
        source = estimated(data, calibration_samples=100)
        tokenized(source, tokenizer_file).options(**options).fingerprint()
        return dict(source.token_costs)

    alone = costs(runner="inline")
    assert costs(runner="threads") == costs(runner="threads", memory_budget="1kb") == alone


def test_a_restore_takes_the_costs_of_the_checkpoint_and_measures_nothing():
    first, again = Counter(), Counter(factor=3)
    whole = rows(packed(estimated(*short_and_long(), measure=first)))
    _, state = run_until(packed(estimated(*short_and_long(), measure=first)), 5)
    assert state["recipe"]["source"]["token_costs"] == {"ones": 1.0, "longs": 50.0}
    source = estimated(*short_and_long(), measure=again)
    assert rows(packed(source).restore(state)) == whole[10:]
    assert again.calls == 0
    assert source.token_costs == {"ones": 1.0, "longs": 50.0}


def test_a_restore_reads_no_row_to_find_costs(tmp_path, tokenizer_file, monkeypatch):
    data = written.dataset("parquet", tmp_path, texts())
    state = tokenized(estimated(data), tokenizer_file).checkpoint()
    monkeypatch.setattr(RowReader, "take", _refused)
    source = estimated(data)
    iter(tokenized(source, tokenizer_file).restore(state))
    assert source.token_costs == state["recipe"]["source"]["token_costs"]
    with pytest.raises(ShardError, match="rows were read"):
        iter(tokenized(estimated(data), tokenizer_file))


def _refused(*_, **__):
    raise ShardError("rows were read")


def test_what_is_given_is_never_taken_from_a_checkpoint():
    """A ratio that was changed by hand is another recipe, and the restore says so."""
    _, state = run_until(packed(estimated(*short_and_long(), primer={"ones": 0.03})), 5)
    same = estimated(*short_and_long(), primer={"ones": 0.03}, measure=Counter(9))
    iter(packed(same).restore(state))
    other = estimated(*short_and_long(), primer={"ones": 9.0})
    with pytest.raises(CheckpointError, match=r"token cost of 'ones': was 1\.0, is 1[0-9]+"):
        iter(packed(other).restore(state))


def test_a_checkpoint_of_other_datasets_leaves_the_source_as_it_was():
    _, state = run_until(packed(estimated(*short_and_long())), 5)
    source = estimated(short_and_long()[0])
    with pytest.raises(CheckpointError, match="another recipe"):
        iter(packed(source).restore(state))
    assert source.token_costs is None


def test_explain_says_before_that_it_will_measure_and_after_what_it_found():
    measure = Counter()
    source = estimated(*short_and_long(), primer={"ones": 0.1}, measure=measure)
    pipeline = packed(source)
    before = pipeline.explain()
    assert measure.calls == 0
    assert "longs: tokens of a mean row are measured when the run begins, on 60 rows" in before
    assert "ones: 1.7 tokens a mean row, given as 0.1 a byte" in before
    pipeline.fingerprint()
    assert "longs: 50.0 tokens a mean row" in pipeline.explain()
    fresh = packed(estimated(*short_and_long(), primer={"ones": 0.1}))
    assert "longs: 50.0 tokens a mean row" in fresh.restore(pipeline.checkpoint()).explain()


def test_a_plan_without_tokens_says_what_to_give(tmp_path):
    data = written.dataset("parquet", tmp_path, texts())
    pipeline = Pipeline(estimated(data)).batch(2)
    pipeline.explain()
    with pytest.raises(PlanError, match=r"dataset 'words'.*tokenize\(\).*measure=.*primer="):
        iter(pipeline)
    for given in ({"primer": 0.3}, {"measure": lambda row: len(row["text"])}):
        source = estimated(data, **given)
        assert len(list(Pipeline(source).batch(2).options(runner="inline"))) == 20
        assert source.token_costs["words"] >= 1


def test_given_ratios_read_nothing(tmp_path, tokenizer_file):
    data = written.dataset("parquet", tmp_path, texts())
    (tmp_path / "000.parquet").unlink()
    source = estimated(data, primer=0.25)
    tokenized(source, tokenizer_file).fingerprint()
    assert source.token_costs["words"] == max(1.0, 0.25 * data.mean_row_bytes())


def test_a_dataset_that_is_never_read_is_not_measured():
    measure = Counter()
    datasets = [*short_and_long(), token_dataset("never", [9] * 30)]
    source = StaticMixtureWorkSource(
        datasets,
        {"ones": 1, "longs": 1, "never": 0},
        token_estimation=TokenEstimation(measure=measure),
    )
    packed(source).fingerprint()
    assert measure.calls == 460


def test_bad_rows_of_a_sample_make_a_fallback_with_a_warning(tmp_path, tokenizer_file):
    lines = ["{broken" if i % 3 else {"text": "ash"} for i in range(90)]
    source = estimated(written.dataset("jsonl", tmp_path, lines), fallback_tokens_per_byte=0.5)
    with pytest.warns(RuntimeWarning, match=r"'words': 30 of 90 rows could be counted"):
        tokenized(source, tokenizer_file).fingerprint()
    dataset = source.components[0].dataset
    assert source.token_costs["words"] == 0.5 * dataset.mean_row_bytes()


def test_a_measure_that_fails_stops_the_run_before_it_begins():
    source = estimated(*short_and_long(), measure=lambda row: row["tokens"])
    with pytest.raises(ExecutionError, match=r"measure failed on dataset 'ones', shard '0', row 0"):
        iter(packed(source))
    assert source.requires_token_priming


def test_nothing_warns_where_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        packed(estimated(*short_and_long())).fingerprint()


def test_pipelines_that_share_a_source_find_their_own_costs(tmp_path, tokenizer_file):
    source = estimated(written.dataset("parquet", tmp_path, texts()))

    def cost(**changes):
        tokenized(source, tokenizer_file, **changes).fingerprint()
        return source.token_costs["words"]

    whole, cut = cost(), cost(max_length=2, truncation=True)
    assert cut < 2 < whole
    assert cost() == whole


def test_costs_of_a_checkpoint_do_not_outlive_its_run():
    state = packed(estimated(*short_and_long(), measure=Counter(7))).checkpoint()
    source = estimated(*short_and_long(), measure=Counter())
    iter(packed(source).restore(state))
    assert source.token_costs["longs"] == 350
    packed(source).fingerprint()
    assert source.token_costs["longs"] == 50


def test_costs_that_were_set_by_hand_stand():
    measure = Counter()
    source = estimated(*short_and_long(), measure=measure)
    source.set_token_costs({"ones": 2.0, "longs": 60.0})
    rows(packed(source))
    assert measure.calls == 0
    assert source.token_costs == {"ones": 2.0, "longs": 60.0}


class Chunks(WorkSource):
    """A source of the user's own that wants to know how long rows are."""

    def __init__(self, data):
        self.data = data
        self.found = None

    __hash__ = None

    datasets_by_id = property(lambda self: {0: self.data})
    requires_token_priming = property(lambda self: self.found is None)

    def next_chunk(self):
        return None

    def prime(self, io_options=None, counting_spec=None, pre_tokenize_replay=None, mp_context=None):
        self.found = counting_spec("words", *all_rows(self.data)).tolist()
        assert (pre_tokenize_replay, mp_context) == (None, None)


@pytest.mark.parametrize("restored", [None, {"recipe": {"source": {}}}])
def test_a_source_of_the_users_own_is_primed_likewise(restored, tmp_path, tokenizer_file):
    data = written.dataset("parquet", tmp_path, texts())
    pipeline = tokenized(estimated(data), tokenizer_file)
    plan = pipeline._compiled()
    tokenizers = tokenizers_of(plan, pipeline._options)
    source = Chunks(data)
    prime(plan, source, pipeline._options, tokenizers, restored)
    encode = written.texts_to_tokens(tokenizer_file)
    assert source.found == [len(encode(row["text"])) for row in texts()]
    prime(plan, source, pipeline._options, tokenizers, restored)  # once is enough


def test_rows_in_memory_of_mixed_kinds_can_be_measured():
    data = Dataset.from_dict("mixed", {0: InMemoryShard([{"input_ids": [1, 2]}, {"image": b"x"}])})
    source = estimated(data, measure=lambda row: len(row.get("input_ids", [0] * 9)))
    Pipeline(source).batch(1).fingerprint()
    assert source.token_costs == {"mixed": pytest.approx(5.5)}


def test_no_thread_is_left_once_costs_are_known(tmp_path, tokenizer_file):
    before = set(threading.enumerate())
    data = written.dataset("parquet", tmp_path, texts())
    tokenized(estimated(data), tokenizer_file).options(runner="threads").fingerprint()
    assert set(threading.enumerate()) == before
