"""Only what looks at each row by itself, without chance and without Python, is taken."""

import datetime
import re

import polars as pl
import pyarrow as pa
import pytest

from zephon.errors import PlanError
from zephon.expressions import resolve, row_by_row

FIELDS = (
    ("a", pa.int64()),
    ("b", pa.int32()),
    ("f", pa.float64()),
    ("s", pa.large_string()),
    ("t", pa.bool_()),
    ("d", pa.timestamp("us")),
    ("l", pa.large_list(pa.int64())),
    ("w", pa.large_list(pa.large_string())),
    ("o", pa.struct([("x", pa.int8())])),
    ("p", pa.struct([("x", pa.int64()), ("y", pa.large_string())])),
)
A, B, F, S, T, D, L = (pl.col(name) for name in "abfstdl")
PARTS = pl.col("o").struct

BY_ROW = [
    A < 5, A.is_in([1, 2]), A.is_in(pl.Series([1, 2])), A.replace({1: 2}), A.clip(0, 3), A // B,
    A.replace_strict({1: 2}, default=0), A.repeat_by(B), F.is_nan(),
    A.reinterpret(signed=False), pl.int_ranges(0, A), pl.coalesce("a", "b"), pl.struct("a", "b"),
    pl.when(A > 1).then(B).otherwise(3), T & ~T, pl.lit(1), pl.lit(1) + 2, pl.lit([1, 2]),
    pl.date(2020, 1, 1), D.dt.year(), D.dt.truncate("1d") > pl.datetime(2020, 1, 1),
    S.str.contains("x"), S.str.len_chars().is_between(1, 5), S.cast(pl.Int64), S.str.split(" "),
    S.str.to_datetime("%d/%b/%Y"), S.str.json_decode(pl.Struct({"a": pl.Int64})),
    S.str.contains_any(["a", "b"]), pl.concat_str("s", "s"),
    S.cast(pl.Enum(["a"]), strict=False).to_physical(), S.cast(pl.Enum(["a", "b"])).cat.len_bytes(),
    S == "Categorical", S.replace_strict({"x": 1}), L.list.get(50),
    L.list.sum(), L.list.eval(pl.element().sort() + 1), L.list.eval(pl.element().sum()),
    pl.col("w").list.join(","), PARTS.field("x"), PARTS.with_fields(pl.field("x") + 1),
    PARTS.field("*"), pl.all().is_null(), pl.col("a", "b") < 3, pl.sum_horizontal("a", "b"),
]  # fmt: skip
NOT_BY_ROW = [
    A.mean(), A.mean() > A, A.shift(), A.cum_sum(), A.diff(), A.sum().over("b"), A.sort(), A.rank(),
    A.unique(), A.is_duplicated(), A.is_first_distinct(), A.fill_null(strategy="forward"),
    A.rle_id(), A.drop_nulls(), A.null_count(), A.filter(A > 1), A.explode(), L.explode(),
    A.implode(), A.is_in(B), A.is_in(B.implode()), pl.when(A.max() > 1).then(B), A + pl.len(),
    pl.len(), pl.int_range(5), pl.int_range(pl.len()), A + pl.int_range(pl.len()),
    A + pl.lit(pl.Series([1, 2, 3])), pl.lit(pl.Series([1, 2, 3])), S.str.to_date(),
    pl.col("a", "b").mean(), pl.all().shift(1), L.list.eval(pl.element() + 1).list.sum() + A.max(),
    A.sample(2), A.shuffle(1), L.list.sample(1),
    L.list.eval(pl.element().sample(fraction=1.0, shuffle=True)),
]  # fmt: skip
IN_PYTHON = [
    A.map_elements(lambda x: x, pl.Int64), A.map_batches(lambda x: x),
    A.map_batches(lambda x: x, is_elementwise=True, return_dtype=pl.Int64),
    pl.fold(pl.lit(0), lambda a, b: a + b, [A, B]), A.name.map(lambda name: name + "x"),
]  # fmt: skip


def made(given):
    return resolve("select", (given,), FIELDS, True, str)


@pytest.mark.parametrize("given", BY_ROW, ids=str)
def test_what_looks_at_each_row_by_itself_is_taken(given):
    assert made(given)


@pytest.mark.parametrize("given", NOT_BY_ROW, ids=str)
def test_what_looks_at_other_rows_or_at_chance_is_refused(given):
    with pytest.raises(PlanError, match=r"looks at each row by itself, .* compute it before"):
        made(given)


@pytest.mark.parametrize("given", IN_PYTHON, ids=str)
def test_what_calls_python_is_refused(given):
    with pytest.raises(PlanError, match="Python"):
        made(given)


def test_the_part_that_is_not_row_by_row_is_named():
    with pytest.raises(PlanError, match=r"itself, col\(\"a\"\).mean\(\) in \[\("):
        made(A.mean() < A)


HASHES = [
    A.hash(), A.hash(1) % 10 == 0, pl.struct("a", "s").hash(), pl.all().hash(),
    L.list.eval(pl.element().hash()), pl.when(T).then(S.hash()).otherwise(0),
    S.cast(pl.Categorical).hash(),
]  # fmt: skip


@pytest.mark.parametrize("given", HASHES, ids=str)
def test_hashes_differ_between_versions_so_they_are_refused(given):
    with pytest.raises(PlanError, match=r"every version of Polars .* map_transform, with hashlib"):
        made(given)


def test_a_field_may_be_called_as_what_is_refused():
    for given in (A.alias("Hash"), S == "Hash", A.alias("function"), S == "function\x81hash()"):
        assert made(given)


CATEGORIES = [
    S.cast(pl.Categorical), S.cast(pl.Categorical).to_physical() > 5,
    pl.struct(S.cast(pl.Categorical), "a"),
    pl.col("w").list.eval(pl.element().cast(pl.Categorical).to_physical()),
    pl.col("w").cast(pl.List(pl.Categorical)), pl.lit("a", dtype=pl.Categorical) == S,
    S.replace_strict({"a": "b"}, return_dtype=pl.Categorical, default=None),
    S.str.json_decode(pl.Struct({"a": pl.Categorical})).struct.field("a").to_physical(),
]  # fmt: skip


@pytest.mark.parametrize("given", CATEGORIES, ids=str)
def test_numbers_of_categories_differ_between_processes_so_they_are_refused(given):
    with pytest.raises(PlanError, match=r"no Categorical, .* use pl\.String, or pl\.Enum\("):
        made(given)


def test_categories_of_what_has_none_are_refused_without_a_panic(capfd):
    for given in (S.cat.len_bytes(), S.cat.len_chars() > 0, ~(A.cat.len_chars() > 0)):
        with pytest.raises(PlanError, match=r"expected an Enum before \.cat, col\(\"[sa]\"\) is "):
            made(given)
    assert capfd.readouterr().err == ""


UTC = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
NEVER = [
    (S == 1, "cannot compare string with numeric type"),
    (A == "1", "cannot compare string with numeric type"),
    (L > 1, "could not evaluate '>' comparison"),
    (D < UTC, "could not evaluate '<' comparison"),
    (A.str.len_chars(), "expected `String`, got `i64`"),
    (S.dt.year(), "`year` operation not supported for dtype `str`"),
    (S.str.contains("("), "regex error: regex parse error: unclosed group;"),
    (S.str.strip_chars(A), "expected `String`, got `i64`"),
]


@pytest.mark.parametrize(("given", "why"), NEVER, ids=lambda each: str(each)[:30])
def test_what_works_on_no_row_of_these_types_is_refused(given, why):
    with pytest.raises(PlanError, match=rf"does not fit the fields [a-z, ]+: .*{re.escape(why)}"):
        made(given)


OF_SEVERAL_TYPES = [
    pl.col("p").cast(pl.Boolean), pl.col("p").cast(pl.Int64), pl.col("o").cast(pl.Int64),
    pl.col("p").cast(pl.Int64, strict=False), pl.col("o").cast(pl.List(pl.Int64)),
    pl.struct("a", pl.col("p").cast(pl.Boolean)), pl.col("o", "p").cast(pl.Float64),
]  # fmt: skip


@pytest.mark.parametrize("given", OF_SEVERAL_TYPES, ids=str)
def test_what_gives_other_types_for_other_rows_is_refused(given):
    wanted = r"one type, .*cast.* gives .* for some rows and .* for others; .*\.struct\.field\("
    for call in ("select", "with_columns", "filter"):
        with pytest.raises(PlanError, match=f"{call}: expected an expression that gives {wanted}"):
            resolve(call, (given,), FIELDS, True, str)


@pytest.mark.parametrize("where", ["made_up", "_asked", "check_categories", "_alike"])
@pytest.mark.parametrize("error", [pl.exceptions.SchemaError, pl.exceptions.PanicException])
def test_whatever_polars_raises_names_the_call_and_the_expression(monkeypatch, where, error):
    def failing(*_):
        raise error("no such thing")

    monkeypatch.setattr(row_by_row, where, failing)
    with pytest.raises(PlanError, match=r"select: \[\(col\(\"a.* fields a: no such thing; mend"):
        made(A + 1)
