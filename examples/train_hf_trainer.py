"""The Hugging Face Trainer, resumed with any number of processes that divides a step.

    torchrun --nproc-per-node 2 examples/train_hf_trainer.py --steps 5
    torchrun --nproc-per-node 1 examples/train_hf_trainer.py --steps 10

A step takes `gradient_accumulation_steps` batches off the stream, and none beyond. The pipeline's
state lies beside the model, in the checkpoint folder that the Trainer makes.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tiny import MICROBATCH, TinyModel, batches_of_a_step, digest, make_pipeline, write_data

from zephon import Pipeline

try:
    from transformers import Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer_utils import get_last_checkpoint
except ImportError as missing:
    raise SystemExit(
        f"this example needs transformers and accelerate, which cannot be imported ({missing}); "
        "pip install 'transformers[torch]'"
    ) from None

STATE = "pipeline.pt"


class Streaming(Trainer):
    """A Trainer that reads a pipeline, and prints what it was fed."""

    def __init__(self, pipeline: Pipeline, **settings: Any) -> None:
        super().__init__(**settings, callbacks=[Saving(pipeline), Reporting(self)])
        self.pipeline = pipeline
        self.seen: list[tuple[torch.Tensor, torch.Tensor]] = []  # loss and rows of each batch

    def get_train_dataloader(self) -> Any:
        """Give the stream as it is: `accelerator.prepare` would deal out its batches once more."""
        return tensors_of(self.pipeline)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
        """Return the mean loss of a batch; the Trainer divides it by the batches of a step."""
        loss = model(inputs)
        self.seen.append((loss.detach(), inputs["input_ids"]))
        return loss


class Saving(TrainerCallback):
    """Puts the pipeline's state into checkpoints."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def on_save(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> None:
        """Save; every process asks for the state, and one of them writes it."""
        found = self.pipeline.state_dict()
        if args.should_save:
            torch.save(
                found, Path(args.output_dir or ".", f"checkpoint-{state.global_step}", STATE)
            )


class Reporting(TrainerCallback):
    """Prints the loss of a step, and what names its rows in their order, of all processes."""

    def __init__(self, trainer: Streaming) -> None:
        self.trainer = trainer

    def on_step_end(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> None:
        """Print a line."""
        losses, rows = zip(*self.trainer.seen, strict=True)
        self.trainer.seen = []
        accelerator = self.trainer.accelerator
        loss = torch.as_tensor(accelerator.reduce(torch.stack(losses).mean(), "mean"))
        named = digest(torch.as_tensor(accelerator.gather(torch.cat(rows))))
        if state.is_world_process_zero:
            print(f"step {state.global_step - 1}: loss {loss:.5f}, rows {named}", flush=True)


def tensors_of(pipeline: Pipeline) -> Iterator[dict[str, Any]]:
    """Give the tensors of one iteration; the Trainer brings them to the device."""
    for batch in pipeline:
        yield batch.to_training(return_labels=True, exclude_fields=("ids", "texts"))


def main() -> None:
    """Train, and save at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5, help="to end at, from the beginning")
    parser.add_argument("--out", type=Path, default=Path("example-run"))
    args = parser.parse_args()
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    settings = TrainingArguments(
        output_dir=str(args.out / "hf_trainer"),
        max_steps=args.steps,  # a stream has no length
        per_device_train_batch_size=MICROBATCH,
        gradient_accumulation_steps=batches_of_a_step(ranks),
        ignore_data_skip=True,  # the pipeline goes on by itself where it was
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        save_strategy="steps",
        save_steps=args.steps,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
        use_cpu=not torch.cuda.is_available(),
    )
    with settings.main_process_first():
        write_data(args.out)
    torch.manual_seed(0)
    model = TinyModel()
    pipeline = make_pipeline(args.out, settings.process_index, ranks)
    saved = settings.output_dir or "."
    found = get_last_checkpoint(saved) if Path(saved).exists() else None
    if found is not None:
        pipeline.load_state_dict(torch.load(Path(found, STATE)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    trainer = Streaming(pipeline, model=model, args=settings, optimizers=(optimizer, None))
    trainer.train(resume_from_checkpoint=found)


if __name__ == "__main__":
    main()
