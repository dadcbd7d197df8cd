import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from zephon.errors import PlanError
from zephon.io.fields import (
    NUMBERS,
    TEXT,
    TOKENS,
    Column,
    Field,
    can_hold,
    joined_fields,
    merged_kind,
    widened,
)


def test_a_column_has_one_type_whatever_the_files_hold():
    assert Column("text", "text").type == TEXT
    assert Column("ids", "tokens").type == TOKENS


def test_an_unknown_kind_is_refused_with_the_nearest():
    with pytest.raises(PlanError, match=r"no kind 'txt'; did you mean 'text'\?"):
        Column("text", "txt")


def test_an_unknown_missing_is_refused():
    with pytest.raises(PlanError, match=r"missing must be 'error' or 'empty', got 'emtpy'"):
        Column("text", "text", missing="emtpy")


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        ([], "unknown"),
        (["unknown"], "unknown"),
        (["unknown", "text"], "text"),
        (["text", "text"], "text"),
        (["text", "tokens", "unknown"], "other"),
        (["tokens", "numbers", "unknown"], "numbers"),
        (["tokens", "numbers", "scalar"], "other"),
    ],
)
def test_kinds_of_several_places_are_merged(kinds, kind):
    assert merged_kind(kinds) == kind


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_have_a_type_of_their_own(kind):
    column = Column("n", kind)
    assert column.dtype == np.dtype(kind)
    item = pa.uint8() if kind == "bool" else pa.type_for_alias(kind)
    assert column.type == pa.large_list(item)
    assert column.remedy("mend it").startswith("mend it, or leave the field out of packed rows")
    assert ("{'n': 'float64'}" in column.allowance) == (kind in ("int32", "int64", "float32"))
    assert Column("n", "tokens").remedy("mend it") == "mend it"


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        ([], ""),
        (["", ""], ""),
        (["", "bool"], "bool"),
        (["int32", "int64"], "int64"),
        (["int32", "float32"], "float64"),
        (["float32", "float64"], "float64"),
        (["float32", "", "float32"], "float32"),
        (["bool", "int32"], None),
        (["bool", "float64"], None),
    ],
)
def test_the_narrowest_kind_that_holds_all(kinds, kind):
    assert widened(kinds) == kind


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("tokens", {"int32", "int64", ""}),
        ("int32", {"int32", "int64", ""}),
        ("int64", {"int32", "int64", ""}),
        ("float32", {"int32", "int64", "float32", "float64", ""}),
        ("float64", {"int32", "int64", "float32", "float64", ""}),
        ("bool", {"bool", ""}),
    ],
)
def test_what_a_column_may_hold(wanted, found):
    assert {kind for kind in [*NUMBERS, "", None] if can_hold(wanted, kind)} == found


def test_a_column_of_any_type_needs_one():
    column = Column("n", "any", values=pa.int8())
    assert (column.type, column.wanted) == (pa.int8(), "a value of type int8")
    with pytest.raises(PlanError, match="column 'n': no kind 'any'"):
        Column("n", "any")


def test_the_type_of_a_field_is_found_when_it_is_asked_for_and_once():
    asked = []

    def find(name):
        asked.append(name)
        return pa.int8()

    field = Field("n", "scalar", find_type=find)
    assert field == Field("n", "scalar", pa.int64())
    assert repr(field) == "Field(name='n', kind='scalar')"
    assert not asked
    assert (field.type, field.type, asked) == (pa.int8(), pa.int8(), ["n"])
    assert replace(field, kind="other").type == pa.int8()
    assert replace(field, type=pa.int16()).type == pa.int16()
    assert pickle.loads(pickle.dumps(replace(field, type=pa.int16()))).type == pa.int16()
    with pytest.raises(AttributeError, match="no attribute 'typ'"):
        field.typ  # noqa: B018


def test_fields_of_several_datasets_have_the_type_that_holds_all():
    small, wide = Field("n", "scalar", pa.int8()), Field("n", "scalar", pa.int64())
    (joined,) = joined_fields([[small], [wide]])
    assert joined.type == pa.int64()
    (joined,) = joined_fields([[small], [Field("n", "scalar")]])
    assert joined.type is None
    (joined,) = joined_fields([[small], [Field("n", "text", pa.large_string())]])
    assert (joined.kind, joined.type) == ("other", None)
