import pytest

from zephon.errors import PlanError
from zephon.io.fields import TEXT, TOKENS, Column, merged_kind


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
    ],
)
def test_kinds_of_several_places_are_merged(kinds, kind):
    assert merged_kind(kinds) == kind
