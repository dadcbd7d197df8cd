"""The chains of calls by which three trainers build their pipelines, word for word.

`titan` and `megatron` make one in a row; `automodel` is an adapter, which ends a pipeline that was
begun elsewhere. Beside each stands what the trainer asks of a batch.
"""

import torch

from tests.written import dataset
from zephon import Dataset, MixtureSpec, Pipeline, StaticMixtureWorkSource
from zephon.io import CacheOptions, StoreOptions
from zephon.work import TokenEstimation

S = 32  # what the model sees; rows have one token more
TEXTS = [
    {"text": " ".join(["the tree", "and the wood", "birch", "elm!"][: 1 + i % 4] * (1 + i % 9))}
    for i in range(160)
]


def write_data(folder):
    """Write two datasets, once."""
    for kind, name in (("parquet", "prose"), ("jsonl", "code")):
        if not (folder / name).exists():
            dataset(kind, folder / name, TEXTS if kind == "parquet" else TEXTS[::-1], name=name)


def from_files(folder, **changes):
    """Build a work source of two datasets on disk with every keyword that recipes pass."""
    write_data(folder)
    settings = {
        "chunk_size": 16, "seed": 42, "shuffle_shards": True, "shuffle_within_shard": True,
        "shuffle_block_size": "auto", "token_estimation": None, "exhausted_policy": None,
    }  # fmt: skip
    return StaticMixtureWorkSource(
        datasets=[
            Dataset.from_path(name="prose", path=folder / "prose", fmt=None),
            Dataset.from_path(name="code", path=str(folder / "code"), fmt="jsonl"),
        ],
        mixture=MixtureSpec({"prose": 0.7, "code": 0.3}),
        **{**settings, **changes},
    )


def titan(folder, tokenizer, algorithm="wrap", bins=None, cap=None, **options):
    pipe = Pipeline(from_files(folder))
    pipe.prefetch(buffer_size=64, parallelism=2)
    pipe.fetch_parallelism(2)
    pipe.tokenize(
        tokenizer_id=tokenizer, field="text", add_attention_mask=False, max_length=S + 1,
        split_long_samples=True, special_tokens="bos_eos", bos_token_id=None, eos_token_id=None,
        parallelism=2,
    )  # fmt: skip
    pipe.pack_flat(
        max_length=S + 1, algorithm=algorithm, num_bins=bins, max_sequences_per_bin=cap,
        pad_token_id=0, emit_positions=True, drop_oversized=False, parallelism=2,
    )  # fmt: skip
    pipe.shuffle(seed=1, buffer_size=64, parallelism=2)
    pipe.batch(2, drop_last=True)
    pipe.options(deterministic=True, dp_degree=1, dp_group_id=0, canonical_replicas=4)
    return pipe.options(**options)


def titan_batch(batch):
    out = batch.to_training(
        tokens_field="input_ids", return_labels=True, return_padding_mask=True, dtype=torch.long,
        ignore_index=-100, rename_fields={"input_ids": "input"}, flatten=True,
        exclude_fields=("ids", "texts"), return_num_valid_tokens=True,
    )  # fmt: skip
    assert set(out) == {"input", "labels", "positions", "padding_mask", "num_valid_tokens"}
    return out


def megatron(folder, tokenizer, microbatch=4, **options):
    work = {"exhausted_policy": "repeat", "token_estimation": TokenEstimation()}
    cache = CacheOptions.from_any(
        {"enabled": True, "root": folder / "cache", "limit_bytes": "500gb"}
    )
    return (
        Pipeline(from_files(folder, **work))
        .tokenize(
            tokenizer_id=tokenizer, field="text", add_attention_mask=False, max_length=S + 1,
            split_long_samples=True, special_tokens="bos_eos", parallelism=2,
        )
        .pack_flat(max_length=S + 1, algorithm="wrap", emit_positions=True, parallelism=2)
        .batch(microbatch, drop_last=True)
        .options(
            deterministic=True, canonical_replicas=4, io_options=StoreOptions(cache=cache),
            **options,
        )
    )  # fmt: skip


def megatron_batch(batch, mode="preserve"):
    out = batch.to_training(
        tokens_field="input_ids", return_labels=True, return_loss_mask=True,
        return_cu_seqlens=True, eos_mask_loss=True, eos_token_id=2, position_mode=mode,
        dtype=torch.long, ignore_index=-100,
        rename_fields={"input_ids": "tokens", "positions": "position_ids"},
        exclude_fields=("ids", "texts"),
    )  # fmt: skip
    names = {"tokens", "labels", "loss_mask", "position_ids", "cu_seqlens", "max_seqlen"}
    assert set(out) == names
    return out


def create_source_pipeline(folder, tokenizer, *, seed, dp_rank, dp_world_size):
    """Begin a pipeline, as an adapter's user does; `automodel` ends it."""
    estimation = TokenEstimation(
        primer="measure", calibration_samples=64, calibration_shards_min=1,
        calibration_shards_max=2, fallback_tokens_per_byte=0.25,
    )  # fmt: skip
    work = from_files(
        folder, seed=seed, exhausted_policy=None, stop_after_passes=2, token_estimation=estimation
    )
    pipe = Pipeline(work).prefetch(buffer_size=32, parallelism=1)
    return pipe.tokenize(
        tokenizer_id=tokenizer, field="text", max_length=S + 1, split_long_samples=True,
        add_attention_mask=False, parallelism=1,
    ).options(dp_degree=dp_world_size, dp_group_id=dp_rank)  # fmt: skip


def finalize_pipeline(pipe, batch_size, seed, dp_rank, dp_world_size):
    pipe.pack_flat(max_length=S + 1, algorithm="first_fit", num_bins=4, pad_token_id=0)
    pipe.shuffle(buffer_size=16, seed=seed)
    pipe.batch(batch_size, drop_last=True)
    pipe.options(dp_degree=dp_world_size, dp_group_id=dp_rank, canonical_replicas=4)
    pipe.validate(strict=True)


def automodel(folder, tokenizer, *, dp_degree, dp_group_id, **options):
    pipe = create_source_pipeline(
        folder, tokenizer, seed=3, dp_rank=dp_group_id, dp_world_size=dp_degree
    )
    finalize_pipeline(pipe, 2, 3, dp_group_id, dp_degree)
    return pipe.options(**options)


def automodel_batch(batch):
    out = batch.to_training(
        return_labels=True, return_padding_mask=True, return_document_ids=True,
        return_cu_seqlens=True, mask_document_boundaries=True,
        rename_fields={"positions": "position_ids"}, exclude_fields=("ids", "texts"),
    )  # fmt: skip
    assert set(out) == {
        "input_ids", "labels", "position_ids", "padding_mask", "document_ids", "cu_seqlens",
        "max_seqlen",
    }  # fmt: skip
    return out
