"""One rank of a trainer, in a process of its own.

The argument is JSON, the fields of `Job`; who this is stands in RANK and WORLD_SIZE. A rank trains
a tiny model, appends a line for each step to a log of its own, and all save at the end, from where
any number of ranks goes on. What the three trainers do differently is a class each.
"""

import hashlib
import json
import pickle
import sys
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from tests.cases.chains import (
    S,
    automodel,
    automodel_batch,
    megatron,
    megatron_batch,
    titan,
    titan_batch,
)
from tests.cases.tiny_model import TinyModel, trained
from zephon.options import from_device_mesh

STEP = 8  # rows of a global step: one microbatch of two of each of the four lanes
MICRO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What all ranks of a job are told.

    trainer: a name in `TRAINERS`. data: the folder of both datasets. tokenizer: its folder. out:
    the folder of logs and of what is saved. stop: the step to save and to end at. peers: ranks
    that share their data, neighbours. options: further ones.
    """

    trainer: str
    data: str
    tokenizer: str
    out: str
    stop: int
    peers: int = 1
    options: dict = field(default_factory=dict)

    def command(self):
        """Name the module, and what it is to read."""
        return ["tests.cases.trainers_job", json.dumps(asdict(self))]


class Trainer:
    """A rank: its place in the mesh, its model, and what is saved.

    mesh: None: there is one process, and torch.distributed does not run.
    """

    def __init__(self, job):
        torch.manual_seed(0)
        self.job, self.model = job, TinyModel()
        self.mesh, self.ranks, self.rank = None, 1, 0
        if dist.is_initialized():
            shape = (dist.get_world_size() // job.peers, job.peers)
            self.mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
            self.ranks, self.rank = shape[0], self.mesh.get_local_rank("dp")
        self.place = Path(job.out) / "saved"
        self.wrap()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.step = 0
        self.pipe = self.make_pipe()
        if self.place.exists():
            self.load()
        self.items = None if self.pipe is None else iter(self.pipe)

    def wrap(self):
        if self.mesh is not None:
            self.model = DistributedDataParallel(
                self.model, process_group=self.mesh["dp"].get_group()
            )

    def described(self, chain, **options):
        data, tokenizer = Path(self.job.data), self.job.tokenizer
        return chain(data, tokenizer, **{**options, **self.job.options})

    def parts(self):
        """Give (tokens, positions, labels) of the microbatches of a step."""
        batches = islice(self.items, STEP // MICRO // self.ranks)
        return [tuple(t.view(MICRO, S) for t in self.asked(batch)) for batch in batches]

    def added(self, number):
        if self.mesh is not None:
            dist.all_reduce(number, group=self.mesh["dp"].get_group())
        return number

    def load(self):
        saved = torch.load(self.place / "model")
        bare = getattr(self.model, "module", self.model)
        bare.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.step = saved["step"]
        if self.pipe is not None:
            self.pipe.restore(self.loaded())

    def save(self):
        state = None if self.pipe is None else self.saved()
        if self.mesh is None or dist.get_rank() == 0:
            bare = getattr(self.model, "module", self.model)
            self.place.mkdir(exist_ok=True)
            parts = {"model": bare.state_dict(), "optimizer": self.optimizer.state_dict()}
            torch.save({**parts, "step": self.step}, self.place / "model")
            (self.place / "pipeline").write_bytes(state)

    def run(self):
        """Train and log until the step to stop at; save."""
        name = f"{self.ranks}-{self.rank}-{0 if self.mesh is None else dist.get_rank()}.log"
        with (Path(self.job.out) / name).open("a") as log:
            while self.step < self.job.stop:
                parts = self.parts()
                loss = trained(
                    self.model, self.optimizer, parts, ranks=self.ranks, added=self.added
                )
                rows = [digested(row) for ids, *_ in parts for row in ids]
                log.write(json.dumps([self.step, self.rank, loss, rows]) + "\n")
                self.step += 1
        self.save()
        if self.items is not None:
            self.items.close()


def digested(row):
    return hashlib.sha256(row.numpy().tobytes()).hexdigest()


class Titan(Trainer):
    """Sharded model; one distributed checkpoint holds it, the optimizer and a pickled state."""

    def wrap(self):
        if self.mesh is not None:
            fully_shard(self.model, mesh=self.mesh["dp"])

    def make_pipe(self):
        pipe = self.described(titan, dp_degree=self.ranks, dp_group_id=self.rank)
        pipe.options(world_size=self.ranks, global_rank=self.rank)
        pipe.options(aggregate_dir=f"{self.job.out}/meet", run_id="titan")
        assert pipe.preflight_tokenizers().ok
        return pipe

    def asked(self, batch):
        out = titan_batch(batch)
        return out["input"], out["positions"], out["labels"]

    def save(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        loader = {"state": pickle.dumps(self.pipe.checkpoint()), "step": self.step}
        state = {"model": model, "optimizer": optimizer, "dataloader": loader}
        dcp.save(state, checkpoint_id=self.place)

    def load(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        state = {"model": model, "optimizer": optimizer, "dataloader": {"state": b"", "step": 0}}
        dcp.load(state, checkpoint_id=self.place)
        set_state_dict(
            self.model, self.optimizer,
            model_state_dict=state["model"], optim_state_dict=state["optimizer"],
        )  # fmt: skip
        self.pipe.restore(pickle.loads(state["dataloader"]["state"]))
        self.step = state["dataloader"]["step"]


class Megatron(Trainer):
    """Of ranks that share data the first alone has a pipeline, and the others get its batches."""

    def make_pipe(self):
        self.first = self.mesh is None or self.mesh.get_local_rank("tp") == 0
        if not self.first:
            return None
        identity = {"dp_degree": self.ranks, "dp_group_id": self.rank}
        return self.described(
            megatron, microbatch=MICRO, world_size=self.ranks, global_rank=self.rank,
            aggregate_dir=f"{self.job.out}/meet", run_id="megatron", **identity,
        )  # fmt: skip

    def asked(self, batch):
        out = megatron_batch(batch)
        return out["tokens"], out["position_ids"], out["labels"]

    def parts(self):
        own = [super().parts()] if self.first else [None]
        if self.mesh is not None:
            group = self.mesh["tp"].get_group()
            dist.broadcast_object_list(own, group=group, group_src=0)
        return own[0]

    def saved(self):
        return pickle.dumps(self.pipe.checkpoint())

    def loaded(self):
        return pickle.loads((self.place / "pipeline").read_bytes())


class AutoModel(Trainer):
    """Every rank has a pipeline; those that share data name the same part of them."""

    def make_pipe(self):
        identity = {"world_size": 1, "global_rank": 0, "dp_degree": 1, "dp_group_id": 0}
        if self.mesh is not None:
            identity = from_device_mesh(self.mesh, "dp")
        meet = {"aggregate_dir": f"{self.job.out}/meet", "run_id": "automodel"}
        return self.described(automodel, **identity, **meet)

    def asked(self, batch):
        out = automodel_batch(batch)
        return out["input_ids"], out["position_ids"], out["labels"]

    def saved(self):
        return self.pipe.checkpoint(as_bytes=True)

    def loaded(self):
        return (self.place / "pipeline").read_bytes()


TRAINERS = {"titan": Titan, "megatron": Megatron, "automodel": AutoModel}


def main():
    job = Job(**json.loads(sys.argv[1]))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    TRAINERS[job.trainer](job).run()
    dist.destroy_process_group()
