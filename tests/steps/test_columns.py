"""Calls over columns: rows as Polars would give them, and refusals on the line of the call."""

import copy
import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource
from zephon.build_index import build_index
from zephon.errors import DataError, PlanError
from zephon.planner.compiler import compile_plan
from zephon.planner.rewrites import REWRITES
from zephon.planner.rewrites.push_predicates import push_predicates

ROWS = [
    {"text": f"word {i}", "k": i, "score": None if i % 7 == 0 else i / 10, "tags": ["a"] * (i % 3)}
    for i in range(60)
]


@pytest.fixture(params=["parquet", "memory", "jsonl"])
def dataset(request, tmp_path):
    """Give the same rows as files, with and without types in them, and in memory."""
    if request.param == "memory":
        return Dataset.from_dict("a", {0: InMemoryShard(ROWS[:25]), 1: InMemoryShard(ROWS[25:])})
    for number, rows in enumerate([ROWS[:25], ROWS[25:]]):
        frame = pl.DataFrame(rows)
        if request.param == "parquet":
            pq.write_table(frame.to_arrow(), tmp_path / f"{number}.parquet", row_group_size=10)
        else:
            frame.write_ndjson(tmp_path / f"{number}.jsonl")
    types = {"text": "string", "k": "int64", "score": "float64", "tags": "list<string>"}
    schema = types if request.param == "jsonl" else None
    return Dataset.from_path("a", tmp_path, schema=schema)


def pipeline(*datasets):
    source = StaticMixtureWorkSource(
        datasets=list(datasets), mixture={d.name: 1.0 for d in datasets}, shuffle_shards=False
    )
    return Pipeline(source)


def rows_of(pipe):
    """Give payloads as plain values."""
    return [{name: _plain(value) for name, value in record.payload.items()} for record in pipe]


def _plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


def ids_of(pipe):
    return [record.meta.sample_id for record in pipe]


def frame(steps):
    return steps(pl.DataFrame(ROWS)).to_dicts()


def test_a_filter_keeps_rows_and_their_ids(dataset):
    pipe = pipeline(dataset).filter(pl.col("score") > 2, pl.col("k") % 2 == 0)
    wanted = frame(lambda f: f.filter(pl.col("score") > 2, pl.col("k") % 2 == 0))
    assert rows_of(pipe) == wanted
    assert [row for _, _, row in ids_of(pipe)] == [
        row["k"] if row["k"] < 25 else row["k"] - 25 for row in wanted
    ]


def test_a_null_is_not_true(dataset):
    kept = rows_of(pipeline(dataset).filter(pl.col("score") > -1))
    assert len(kept) == sum(row["score"] is not None for row in ROWS)
    assert len(rows_of(pipeline(dataset).filter(pl.col("score").is_null()))) == 60 - len(kept)


def test_columns_are_added_and_replaced_in_place(dataset):
    def steps(f):
        return f.with_columns(pl.col("text").str.to_uppercase(), n=pl.col("tags").list.len())

    assert rows_of(steps(pipeline(dataset))) == frame(steps)


def test_a_select_leaves_nothing_else(dataset):
    def steps(f):
        return f.select("k", double=pl.col("k") * 2)

    assert rows_of(steps(pipeline(dataset))) == frame(steps)


def test_fields_get_other_names_and_are_left_out(dataset):
    def steps(f):
        return f.rename({"k": "text", "text": "k"}).drop("score", "tags")

    assert rows_of(steps(pipeline(dataset))) == frame(steps)


def test_many_steps_are_one_evaluation(dataset):
    def steps(f):
        f = f.with_columns(n=pl.col("k") + 1).filter(pl.col("n") > 10)
        return f.rename({"n": "m"}).with_columns(text=pl.col("m").cast(pl.String)).drop("tags")

    pipe = steps(pipeline(dataset))
    assert rows_of(pipe) == frame(steps)
    assert pipe.explain().count("ComputeColumns(") == 1


def test_what_is_filtered_is_counted(dataset):
    pipe = pipeline(dataset).filter(pl.col("k") >= 50)
    assert len(list(pipe)) == 10
    told = pipe.accounting()["a"]
    assert (told["rows_drawn"], told["rows_filtered"], told["rows_dropped"]) == (60, 50, 0)


def test_a_constant_needs_no_column(dataset):
    assert rows_of(pipeline(dataset).select(one=pl.lit(1)).take(2)) == [{"one": 1}, {"one": 1}]


def test_datasets_of_a_mixture_agree_on_a_type(tmp_path):
    for name, dtype in (("a", pa.int32()), ("b", pa.int64())):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"n": pa.array([1, 2, 3], dtype)}), tmp_path / name / "0.parquet")
    both = [Dataset.from_path(name, tmp_path / name) for name in "ab"]
    pipe = pipeline(*both).with_columns(m=pl.col("n") * 2)
    assert sorted(row["m"] for row in rows_of(pipe)) == [2, 2, 4, 4, 6, 6]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.filter(pl.col("scroe") > 1), "filter: .*'scroe'.*did you mean 'score'"),
        (lambda p: p.filter(pl.col("k") + 1), "filter"),
        (lambda p: p.filter(True), "filter: "),
        (lambda p: p.filter(pl.col("k") > pl.col("k").mean()), "filter: "),
        (lambda p: p.select(), "select: "),
        (lambda p: p.with_columns(pl.col("k").shift(1)), "with_columns: "),
        (lambda p: p.with_columns(a=1).filter(pl.col("k")), "with_columns: "),
        (lambda p: p.rename({"kk": "a"}), "rename: .*'kk'"),
        (lambda p: p.rename({"k": "text"}), "rename: .*'text'"),
        (lambda p: p.drop("scores"), "drop: .*did you mean 'score'"),
        (lambda p: p.map_transform(len).filter(pl.col("k") > 1), "cannot come after map_transform"),
        (lambda p: p.batch(2).filter(pl.col("k") > 1), "filter: it cannot come after batch"),
        (lambda p: p.drop("text").tokenize(tokenizer_id="t", field="text"), "after drop"),
    ],
)
def test_a_mistake_is_refused_where_it_is_made(call, message, tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "0.parquet")
    with pytest.raises(PlanError, match=message):
        call(pipeline(Dataset.from_path("a", tmp_path)))


def test_a_type_that_nobody_knows_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "0.jsonl").write_text('{"k": 1}\n')
    with pytest.raises(PlanError, match=r"filter: .*'k'.*schema="):
        pipeline(Dataset.from_path("a", tmp_path)).filter(pl.col("k") > 1)


def test_an_index_tells_of_a_field_that_the_first_rows_lack(tmp_path):
    rows = [{"k": 1}] * 70 + [{"k": 2, "late": late} for late in (5, None, 7)]
    (tmp_path / "0.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    late = pl.col("late")
    plain = pipeline(Dataset.from_path("a", tmp_path))
    with pytest.raises(PlanError, match="no field 'late' is known"):
        plain.filter(late > 5)
    build_index("jsonl", tmp_path, progress=False)
    indexed = pipeline(Dataset.from_path("a", tmp_path))
    assert rows_of(copy.copy(indexed).filter(late > 5)) == [{"k": 2, "late": 7}]
    assert len(rows_of(copy.copy(indexed).filter(late.is_null()))) == 71
    assert rows_of(copy.copy(indexed).filter(pl.col("k") > 1).select("late")) == [
        {"late": 5},
        {"late": None},
        {"late": 7},
    ]
    indexed.drop("k").load_state_dict(plain.drop("k").state_dict())
    assert rows_of(indexed) == [{}] * 70 + [{"late": late} for late in (5, None, 7)]


@pytest.mark.parametrize("kind", ["jsonl", "memory"])
def test_a_name_that_no_column_can_have_is_left_to_functions(kind, tmp_path):
    rows = [{"k": 1, "\ud800": 2}]
    (tmp_path / "0.jsonl").write_text(f"{json.dumps(rows[0])}\n")
    build_index("jsonl", tmp_path, progress=False)
    opened = Dataset.from_path("a", tmp_path)
    pipe = pipeline(opened if kind == "jsonl" else Dataset.from_dict("a", {0: InMemoryShard(rows)}))
    for call in (
        lambda: pipe.select("\ud800"),
        lambda: pipe.rename({"\ud800": "a"}),
        lambda: pipe.rename({"k": "\udcff"}),
        lambda: pipe.with_columns(pl.exclude("k") + 1),
        lambda: pipe.with_columns(**{"\ud800": pl.col("k")}),
    ):
        with pytest.raises(PlanError):
            call()
    made = pipe.filter(pl.col("k") > 0).with_columns(n=pl.col("k") + 1)
    assert rows_of(copy.copy(made)) == [{"k": 1, "\ud800": 2, "n": 2}]
    assert rows_of(made.drop("\ud800")) == [{"k": 1, "n": 2}]


@pytest.mark.parametrize("name", ["*", "^.*$", "^a$"])
def test_a_field_whose_name_is_a_pattern_is_chosen_under_another_name(name, tmp_path):
    pq.write_table(pa.table({name: [1, 3], "k": [2, 0]}), tmp_path / "0.parquet")
    pipe = pipeline(Dataset.from_path("a", tmp_path))
    every = pl.all()
    for call in (
        lambda: pipe.select(every),
        lambda: pipe.select("k", every.exclude("k")),
        lambda: pipe.filter(every > 0),
        lambda: pipe.with_columns(every + 1),
    ):
        with pytest.raises(PlanError, match="takes for a pattern; rename the field before"):
            call()
    assert rows_of(copy.copy(pipe).filter(pl.col("k") > 0)) == [{name: 1, "k": 2}]
    assert rows_of(pipe.rename({name: "n"}).filter(every < 3).select(every + 1)) == [
        {"n": 2, "k": 3}
    ]


@pytest.mark.parametrize("name", ["", "\0", "\0row", "0", "column_1"])
def test_any_text_may_name_a_field(name, tmp_path):
    pq.write_table(pa.table({name: [1, 3], "k": [2, 0]}), tmp_path / "0.parquet")
    pipe = pipeline(Dataset.from_path("a", tmp_path))
    odd = pl.col(name)
    for build in (
        lambda p: p.filter(odd > 2),
        lambda p: p.with_columns(one=1 * odd, two=pl.lit(1)).filter(odd > 2).drop("one", "two"),
        lambda p: p.rename({name: "n"}).filter(pl.col("n") > 2).rename({"n": name or "n"}),
    ):
        (row,) = rows_of(build(copy.copy(pipe)))
        assert list(row.values()) == [3, 0]
    if not name:
        pipe.select(pl.col("", "k") * 2)
        assert rows_of(pipe) == [{"": 2, "k": 4}, {"": 6, "k": 0}]


def test_what_polars_computes_only_beside_other_rows_is_refused(tmp_path):
    pq.write_table(pa.table({"s": [None, {"a": 1}]}), tmp_path / "0.parquet")
    with pytest.raises(PlanError, match="does not fit the fields s: cannot compare string"):
        pipeline(Dataset.from_path("a", tmp_path)).filter(pl.col("s").cast(pl.Float32) >= "a")


def test_types_that_do_not_join_are_refused_with_both_places(tmp_path):
    pq.write_table(pa.table({"k": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"k": ["one"]}), tmp_path / "1.parquet")
    with pytest.raises(PlanError, match=r"0\.parquet.*int64.*1\.parquet.*string"):
        pipeline(Dataset.from_path("a", tmp_path)).filter(pl.col("k") > 1)


RAISES, NEVER = pl.col("t").cast(pl.Int64) > 0, pl.col("k") < 0


@pytest.mark.parametrize("size", [1, 2, 4, None])
@pytest.mark.parametrize(
    ("steps", "raises"),
    [
        (lambda p: p.filter(RAISES), True),
        (lambda p: p.filter(RAISES, pl.col("k") < 2), True),
        (lambda p: p.with_columns(n=RAISES).filter(NEVER | pl.col("n")), True),
        (lambda p: p.filter(RAISES, NEVER), False),
        (lambda p: p.filter(RAISES).filter(NEVER), False),
        (lambda p: p.with_columns(n=RAISES).filter(NEVER).drop("n"), False),
        (lambda p: p.filter(RAISES & NEVER), True),
        (lambda p: p.filter(NEVER & RAISES), True),
        (lambda p: p.filter(NEVER, RAISES), False),
        (lambda p: p.filter(NEVER).filter(RAISES), False),
    ],
)
def test_whether_a_filter_raises_is_not_decided_by_row_groups(steps, raises, size, tmp_path):
    table = pa.table({"k": [1, 2, 3, -1], "t": ["bad", "2", "3", "4"]})
    if size is None:
        dataset = Dataset.from_dict("a", {0: InMemoryShard(table.to_pylist())})
    else:
        pq.write_table(table, tmp_path / "0.parquet", row_group_size=size)
        dataset = Dataset.from_path("a", tmp_path)
    pipe = steps(pipeline(dataset))
    if raises:
        with pytest.raises(DataError, match=r"col.* raised conversion from `str` .*, row 0; mend"):
            list(pipe)
    else:
        assert rows_of(pipe) == [{"k": -1, "t": "4"}]


def without_push(pipe):
    """Let filters run where they were called."""
    rules = tuple(rule for rule in REWRITES if rule is not push_predicates)
    pipe._plan = compile_plan(pipe._node, rewrites=rules)
    return pipe


@pytest.mark.parametrize(
    ("k", "other", "said"),
    [
        (pa.array([1, 2**63], pa.uint64()), pa.int64(), r"int64, got 9223372036854775808;"),
        (pa.array([1, 2**53 + 1]), pa.float64(), "double, got 9007199254740993;"),
        (pa.array([1, 10**14]).cast(pa.timestamp("s")), pa.timestamp("ns"), r"\[ns\], got one of"),
        (pa.array([[1], [2**63]], pa.list_(pa.uint64())), pa.list_(pa.int64()), "got a list: "),
        (pa.array([b"1", b"\xff"]).view(pa.string()), pa.string(), "got bytes that are not"),
    ],
    ids=["integers", "floats", "times", "lists", "texts"],
)
def test_a_value_beyond_the_joined_type_is_an_error_wherever_filters_run(k, other, said, tmp_path):
    table = pa.table({"k": k, "j": [1, 2], "text": ["a", "b"]})
    pq.write_table(table, tmp_path / "0.parquet", row_group_size=1, write_statistics=False)
    table = pa.table({"k": pa.array([None], other), "j": [3], "text": ["c"]})
    pq.write_table(table, tmp_path / "1.parquet")
    dataset = Dataset.from_path("a", tmp_path)
    never = pl.col("k").is_null() & (pl.col("j") > 9)
    for place in (lambda p: p, without_push):
        for looks in (never, pl.col("k").is_null()):
            with pytest.raises(DataError, match=rf"^dataset 'a', shard '0.*row 1: .*{said}"):
                list(place(pipeline(dataset).filter(looks)))
        pipe = place(pipeline(dataset).filter(pl.col("k").is_not_null(), pl.col("j") != 2))
        assert [row["j"] for row in rows_of(pipe)] == [1]


@pytest.mark.parametrize("value", ["two", 2.5, True, 2**70, [2]])
@pytest.mark.parametrize("kind", ["jsonl", "memory"])
def test_a_value_of_another_type_is_an_error_wherever_filters_run(kind, value, tmp_path):
    rows = [{"k": 1, "j": 1}, {"k": value, "j": 2}, {"k": 3, "j": 3}]
    schema = {"k": "int64", "j": "int64"}
    if kind == "memory":
        dataset = Dataset.from_dict("a", {0: InMemoryShard(rows)}, schema=schema)
    else:
        (tmp_path / "0.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        dataset = Dataset.from_path("a", tmp_path, schema=schema)
    for place in (lambda p: p, without_push):
        with pytest.raises(
            DataError, match=r"^dataset 'a', .*row 1.* must be a value of type int64"
        ):
            list(place(pipeline(dataset).filter(pl.col("k") < 0)))
        pipe = place(pipeline(dataset).filter(pl.col("k") < 3, pl.col("j") != 2))
        assert [row["j"] for row in rows_of(pipe)] == [1]


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "memory"])
def test_a_filter_over_computed_fields_keeps_bad_rows_away_too(kind, tmp_path, tokenizer_file):
    rows = [{"t": "ash", "k": 1}, {"t": None, "k": 2}, {"t": "elm", "k": 3}]
    schema = {"t": "string", "k": "int64"}
    if kind == "memory":
        dataset = Dataset.from_dict("a", {0: InMemoryShard(rows)}, schema=schema)
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "0.parquet")
        dataset = Dataset.from_path("a", tmp_path)
    else:
        (tmp_path / "0.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        dataset = Dataset.from_path("a", tmp_path, schema=schema)

    def run(*filters, between=lambda p: p):
        pipe = between(pipeline(dataset).with_columns(z=pl.col("t").is_not_null()))
        pipe = pipe.filter(*filters).tokenize(tokenizer_id=tokenizer_file, field="t")
        found = len(list(pipe))
        return found, pipe.accounting()["a"]["rows_filtered"]

    assert run(pl.col("z")) == (2, 1)
    assert run(pl.col("z"), between=lambda p: p.shuffle(buffer_size=2, seed=1)) == (2, 1)
    assert run(pl.col("z"), between=lambda p: p.rename({"k": "n"}).filter(pl.col("n") > 1)) == (
        1,
        2,
    )
    with pytest.raises(DataError, match=r"row 1.* field 't' must be text, got null"):
        run(pl.col("z") | (pl.col("k") < 3))


@pytest.fixture(params=["jsonl", "memory"])
def surprise(request, tmp_path):
    """Give rows of which one has a field that none of those looked at has."""
    rows = [{"k": i} for i in range(200)] + [{"k": 1, "z": "own"}]
    if request.param == "memory":
        return Dataset.from_dict("a", {0: InMemoryShard(rows)}, schema={"k": "int64"})
    (tmp_path / "0.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Dataset.from_path("a", tmp_path, schema={"k": "int64"})


@pytest.mark.parametrize(
    "steps",
    [
        lambda p: p,
        lambda p: p.batch(3),
        lambda p: p.map_transform(dict),
        lambda p: p.filter(pl.col("z") > 0),
        lambda p: p.options(runner="inline"),
    ],
)
def test_a_row_that_has_the_new_name_itself_is_said_where_it_lies(surprise, steps):
    pipe = steps(pipeline(surprise).rename({"k": "z"}))
    wanted = r"dataset 'a', shard '0(\.jsonl)?', row 200: a row must have no field 'z', since"
    with pytest.raises(DataError, match=wanted):
        [dict(record.payload) for item in pipe for record in getattr(item, "records", [item])]


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        (lambda p: p.rename({"k": "z"}).drop("z"), {}),
        (lambda p: p.rename({"k": "z"}).rename({"z": "y"}), {"y": 1}),
        (lambda p: p.with_columns(z=pl.col("k")).drop("z"), {"k": 1}),
        (lambda p: p.with_columns(z=pl.col("k")), {"k": 1, "z": 1}),
        (lambda p: p.rename({"k": "z"}).select("z"), {"z": 1}),
    ],
)
def test_what_was_renamed_onto_or_computed_hides_the_own_field(surprise, steps, wanted):
    pipe = pipeline(surprise).filter(pl.col("k") == 1)
    assert rows_of(steps(pipe)) == [wanted, wanted]
