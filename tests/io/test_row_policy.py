"""Words about bad rows and nulls: what is known, and what each lets go."""

import pytest

from zephon.errors import DatasetError
from zephon.io.row_policy import RAISES, RowPolicy


@pytest.mark.parametrize(
    ("on_error", "null_text", "loses"),
    [
        ("raise", "error", False),
        ("raise", "empty", False),
        ("raise", "drop", True),
        ("skip", "error", True),
        ("quarantine", "empty", True),
    ],
)
def test_known_words(on_error, null_text, loses):
    policy = RowPolicy.checked("words", on_error, null_text)
    assert policy == RowPolicy(on_error, null_text)
    assert policy.loses_rows is loses
    assert (policy == RAISES) is ((on_error, null_text) == ("raise", "error"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("skp", "error"), r"on_error must be one of 'raise', .* got 'skp'; .*'skip'"),
        ((None, "error"), "on_error must be one of .* got None"),
        ((["skip"], "error"), r"on_error must be one of .* got \['skip'\]"),
        (("raise", "dropp"), "null_text must be one of 'error', .* got 'dropp'; .*'drop'"),
        (("raise", True), "null_text must be one of .* got True"),
    ],
)
def test_unknown_words_are_refused_with_the_nearest(given, message):
    with pytest.raises(DatasetError, match=f"^dataset 'words': {message}"):
        RowPolicy.checked("words", *given)
