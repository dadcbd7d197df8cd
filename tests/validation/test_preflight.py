"""Tokenizers load before a run does, and a failure names which, why, and no secret."""

import pytest
import tokenizers

from tests.planner.plans import batch, fetch, tokenize
from zephon.errors import ValidationError
from zephon.options import RuntimeOptions
from zephon.validation import preflight_tokenizers
from zephon.validation.preflight import without_secrets


class Piped:
    """A pipeline, as far as a preflight looks into it."""

    def __init__(self, node, **options):
        self._node = node
        self._options = RuntimeOptions(**options)


def test_a_plan_whose_tokenizers_load_has_no_issues():
    assert preflight_tokenizers(tokenize(tokenizer_id="__fallback__")) == []
    assert preflight_tokenizers(batch(fetch()), strict=True) == []


def test_a_tokenizer_that_is_not_there():
    plan = tokenize(tokenizer_id="/no/such/place")
    (failed,) = preflight_tokenizers(plan)
    assert (failed.code, failed.severity) == ("TOKENIZER_PREFLIGHT_FAILED", "error")
    assert failed.message.startswith("the tokenizer '/no/such/place' must load, got TokenizerError")
    with pytest.raises(ValidationError, match="'/no/such/place' must load") as caught:
        preflight_tokenizers(plan, strict=True)
    assert caught.value.report == [failed]


def test_an_object_that_is_no_tokenizer_is_named_by_its_type():
    (failed,) = preflight_tokenizers(tokenize(tokenizer=3))
    assert "the tokenizer of type int must load" in failed.message


def test_the_back_end_of_the_pipeline_is_the_one_tried():
    unigram = tokenizers.Tokenizer(
        tokenizers.models.Unigram([("<unk>", 0.0), ("a", -1.0)], unk_id=0)
    )
    plan = tokenize(tokenizer=unigram, special_tokens="none")
    assert preflight_tokenizers(Piped(plan)) == []
    (failed,) = preflight_tokenizers(Piped(plan, tokenizer_backend="gigatoken"))
    assert "gigatoken" in failed.message


def test_secrets_are_blanked_out():
    told = without_secrets(
        "https://user:pass@host/f?X-Amz-Signature=9f, token hf_AbC123, Authorization: Bearer abc.d"
    )
    for secret in ("user", "pass", "9f", "AbC123", "abc.d"):
        assert secret not in told
    assert "host/f?X-Amz-Signature=***" in told


def test_a_secret_in_a_name_is_in_no_message():
    (failed,) = preflight_tokenizers(tokenize(tokenizer_id="https://me:s3cret@host/tok"))
    assert "s3cret" not in str(failed)
