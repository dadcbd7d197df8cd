"""What calls over columns are given becomes expressions, or is refused with a way out."""

import numpy as np
import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pytest

from tests.expressions.known import resolved
from zephon.errors import PlanError

K, TEXT, SCORE = pl.col("k"), pl.col("text"), pl.col("score")


def names(*given, **changes):
    return [each.name for each in resolved("select", *given, **changes)]


def types(*given):
    return [each.type for each in resolved("select", *given)]


def test_names_expressions_and_iterables_of_them_are_taken():
    assert names("text", K + 1, ["score", K.alias("x")]) == ["text", "k", "score", "x"]
    made = resolved("with_columns", K + 1, y=SCORE * 2, z="text")
    assert [(each.name, each.column) for each in made] == [("k", None), ("y", None), ("z", "text")]
    assert len(resolved("filter", [K > 1, K < 5], TEXT == "a")) == 3


def test_a_constant_reads_nothing():
    (made,) = resolved("with_columns", x=pl.lit(1))
    assert (made.reads, made.name, made.type) == ((), "x", pa.int32())


def test_types_are_those_of_arrow():
    texts = TEXT.str.split(" ")
    enum = TEXT.cast(pl.Enum(["b"]), strict=False)
    assert types(texts.alias("a"), enum.alias("b"), "seen", pl.lit(None)) == [
        pa.large_list(pa.large_string()),
        pa.large_string(),
        pa.timestamp("s"),  # handed on as it is; Polars has no seconds
        pa.null(),
    ]
    assert types(pl.col("seen").dt.truncate("1h")) == [pa.timestamp("ms")]


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        ("filter", True, "filter: expected a Polars expression, got True; join conditions with &"),
        ("filter", "k", "filter: expected a Polars expression, got 'k'; write one, such as"),
        ("filter", K, r"filter: expected a boolean expression, col\(\"k\"\) gives Int64; compare"),
        ("filter", pl.lit(None), "filter: expected a boolean expression, null gives Null"),
        ("filter", np.bool_(True), "filter: expected .*, got .*True.*; join conditions with &"),
        ("filter", None, "filter: expected .*, got None; leave the call out to keep all rows"),
        ("filter", 1, r"filter: expected a Polars expression, got 1; write one, such as pl\.col"),
        ("filter", [], "filter: expected at least one expression, got none; write one, such as"),
        (
            "filter",
            [True, False],
            r"got values of a mask \(list\), which belong to no rows here; write a",
        ),
        ("filter", pl.Series([True]), r"got values of a mask \(Series\), which belong to no rows"),
        ("filter", np.array([True]), r"got values of a mask \(ndarray\), which belong to no rows"),
        ("select", None, r"got None; for a constant pass pl\.lit\(None\)"),
        ("select", 3, "expected a Polars expression or a column's name, got 3; .* pass pl.lit"),
        ("select", {"a": "b"}, "expected a Polars expression or a column's name, got {'a': 'b'}"),
        ("select", pl.col, "expected a Polars expression or a column's name, got .*; write one"),
        ("filter", pl.col("scroe") > 1, "filter: no field 'scroe'; did you mean 'score'?"),
        (
            "select",
            "zzz",
            "select: no field 'zzz'; known are: good, ids, k, odd, score, seen, text",
        ),
        ("select", "odd", "select: the type of field 'odd' is not known; declare odd with schema="),
        ("filter", TEXT + K > 1, "does not fit the fields text, k: .*; mend the expression"),
        ("select", K.map_elements(abs, pl.Int64), "calls a Python function; use map_transform"),
        ("select", K.cast(pl.Int128), "gives Int128, which Arrow does not hold; cast it"),
        ("select", [], "select: expected at least one expression, got none; name a column"),
    ],
)
def test_anything_else_is_refused(call, given, message):
    with pytest.raises(PlanError, match=message):
        resolved(call, given)


def test_two_of_one_name_are_refused_but_by_filter():
    with pytest.raises(PlanError, match="select: two expressions give 'k'; name one of them"):
        resolved("select", "k", K + 1)
    assert len(resolved("filter", K > 1, K < 5)) == 2


def test_a_type_that_polars_lacks_is_refused_where_it_is_read():
    fields = (("k", pa.int64()), ("big", pa.decimal256(60, 2)))
    assert names("k", fields=fields) == ["k"]
    wanted = r"select: Polars cannot hold field 'big', which is decimal256\(60, 2\); drop the field"
    with pytest.raises(PlanError, match=wanted):
        resolved("select", "big", fields=fields)


def test_maps_are_refused_without_a_panic(capfd):
    fields = (("k", pa.int64()), ("m", pa.map_(pa.string(), pa.int64())))
    maps = pl.col("m")
    for given in ("m", maps.is_not_null(), pl.all(), pl.struct("k", "m"), pl.exclude("k")):
        with pytest.raises(PlanError, match="select: Polars cannot hold field 'm', which is map<"):
            resolved("select", given, fields=fields)
    inside = (("k", pa.int64()), ("l", pa.large_list(fields[1][1])))
    with pytest.raises(PlanError, match="Polars cannot hold field 'l'"):
        resolved("select", "l", fields=inside)
    assert names("k", fields=fields) == ["k"]
    assert capfd.readouterr().err == ""


def test_a_field_that_might_be_there_is_said_to_be_unknown():
    with pytest.raises(PlanError, match=r"no field 'kk' is known; did you mean 'k'.* with schema="):
        resolved("filter", pl.col("kk") > 1, complete=False)


OBJECTS = (
    ("meta", pa.struct([("k", pa.int64()), ("in", pa.struct([("z", pa.int8())]))])),
    ("ids", pa.large_list(pa.int32())),
)


@pytest.mark.parametrize("complete", [True, False])
def test_what_is_inside_an_object_is_read_with_struct_field(complete):
    hint = r"no field 'meta.in.z'; .* is pl.col\('meta'\).struct.field\('in'\).struct.field\('z'\)$"
    with pytest.raises(PlanError, match=hint):
        resolved("filter", pl.col("meta.in.z") > 1, fields=OBJECTS, complete=complete)


def test_a_misspelt_name_inside_an_object_is_said():
    inside = pl.col("meta").struct.field
    with pytest.raises(
        PlanError, match="reads 'kk', which no object in meta has; did you mean 'k'"
    ):
        resolved("filter", inside("kk") > 1, fields=OBJECTS)
    with pytest.raises(PlanError, match="reads 'q', which no object in meta has; known are: in, k"):
        resolved("filter", inside("q") > 1, fields=OBJECTS)
    with pytest.raises(
        PlanError, match=r"reads 'q' of an object, but there is none: ids is List\("
    ):
        resolved("filter", pl.col("ids").struct.field("q") > 1, fields=OBJECTS)


def test_selectors_become_the_fields_that_they_choose():
    known = ["k", "text", "score", "good", "ids", "seen"]
    assert names(pl.exclude("odd")) == known
    assert names(pl.col("text", "k")) == ["text", "k"]
    assert names(pl.nth(1)) == ["text"]
    assert all(each.column == each.name for each in resolved("select", pl.exclude("odd")))
    two = (("k", pa.int8()), ("f", pa.float32()))
    assert names(cs.numeric() - cs.by_name("k"), fields=two) == ["f"]


def test_a_field_that_selectors_might_choose_must_have_a_type():
    for given in (pl.all(), cs.numeric(), pl.col(pl.Int64)):
        with pytest.raises(PlanError, match="the type of field 'odd' is not known; declare odd"):
            resolved("select", given)
