"""The call that makes tokens of text."""

from __future__ import annotations

from typing import Self

from zephon.planner import checks, logical
from zephon.planner.logical.pack import Pack
from zephon.steps.description import Description, check_placement, path_text, whole


class TokenSteps(Description):
    """Text becomes tokens."""

    def tokenize(
        self,
        tokenizer: object | None = None,
        tokenizer_id: str | None = None,
        *,
        field: str,
        missing_field: str = "error",
        add_attention_mask: bool = True,
        max_length: int | None = None,
        padding: bool | str = False,
        truncation: bool = False,
        return_tensors: str | None = None,
        split_long_samples: bool = False,
        split_special_tokens: bool = False,
        use_fast: bool = True,
        preserve_upstream_payload: bool = False,
        special_tokens: str = "bos_eos",
        bos_token_id: int | None = None,
        eos_token_id: int | None = None,
        placement: str = "auto",
        parallelism: int | None = None,
    ) -> Self:
        """Encode a text field into ``input_ids``.

        Args:
            tokenizer: a tokenizer object of ``tokenizers`` or ``transformers``.
            tokenizer_id: a tokenizer.json, or the directory that holds one.
            field: the text column; a dotted path reaches into nested rows.
            missing_field: "error", or "empty" to read a row without the field as "".
            add_attention_mask: also give ``attention_mask``.
            max_length: bound for truncation, splitting and padding; cuts nothing by itself.
            padding: True or "longest" (of the batch, in ``to_training``), "max_length", or False.
            truncation: cut what is longer than ``max_length``.
            return_tensors: what records hold: None for lists, "np", "pt".
            split_long_samples: make several rows of what is longer than ``max_length``.
            split_special_tokens: read special tokens in the text as plain characters.
            use_fast: accepted; there are only fast tokenizers here.
            preserve_upstream_payload: keep the row's other fields.
            special_tokens: "bos_eos", "bos", "eos", "none", or "tokenizer_default".
            bos_token_id: instead of the tokenizer's own.
            eos_token_id: instead of the tokenizer's own.
            placement: "auto" or "local".
            parallelism: tasks that may run at once.

        Raises:
            PlanError: an argument cannot be, or a dataset is known not to have the field.
        """
        check_placement("tokenize", placement)
        self._refuse_after("tokenize", logical.MakesTokens, Pack, logical.Batch)
        node = logical.Tokenize(
            input=self._node,
            tokenizer=tokenizer,
            tokenizer_id=None if tokenizer is not None else path_text("tokenize", tokenizer_id),
            field=field,
            missing_field=missing_field,
            add_attention_mask=add_attention_mask,
            max_length=whole(max_length),
            padding=_padding(padding),
            truncation=truncation,
            return_tensors=return_tensors,
            split_long_samples=split_long_samples,
            split_special_tokens=split_special_tokens,
            use_fast=use_fast,
            preserve_upstream_payload=preserve_upstream_payload,
            special_tokens=special_tokens,
            bos_token_id=whole(bos_token_id),
            eos_token_id=whole(eos_token_id),
            parallelism=4 if parallelism is None else whole(parallelism),
        )
        checks.check_reads(node.reads(), self._node, "tokenize")
        return self._add(node)


def _padding(padding: bool | str) -> str:
    if isinstance(padding, str):
        return "none" if padding == "do_not_pad" else padding
    if isinstance(padding, bool):
        return "longest" if padding else "none"
    return repr(padding)
