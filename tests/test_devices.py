"""Tensors on devices and in pinned memory, as far as that goes without an accelerator."""

import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils.pin_memory import pin_memory

from tests.columns_by_hand import engine_batch, user_batch
from zephon import devices
from zephon.errors import PlanError

ROWS, POSITIONS = [[1, 2, 3], [4, 5, 6]], [0, 1, 0]
ASKED = {"return_labels": True, "return_padding_mask": True, "return_loss_mask": True}


def batches():
    return [
        engine_batch(ROWS, positions=[POSITIONS] * 2, packing="flat"),
        user_batch(*({"input_ids": row, "positions": POSITIONS} for row in ROWS)),
    ]


def same(found, wanted):
    return found.keys() == wanted.keys() and all(
        torch.equal(found[name], value) if isinstance(value, torch.Tensor) else found[name] == value
        for name, value in wanted.items()
    )


@pytest.mark.parametrize("batch", batches(), ids=["engine", "records"])
def test_every_tensor_is_handed_over_on_the_device(batch):
    wanted = batch.to_training(**ASKED, return_cu_seqlens=True, flatten=True)
    found = batch.to_training(
        **ASKED, return_cu_seqlens=True, flatten=True, device="meta", non_blocking=True
    )
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        if isinstance(value, torch.Tensor):
            assert found[name].device.type == "meta"
            assert (found[name].shape, found[name].dtype) == (value.shape, value.dtype)
        else:
            assert found[name] == value
    assert {name for name, value in found.items() if not isinstance(value, torch.Tensor)} == {
        *("ids", "texts", "max_seqlen")
    }


def test_tensors_that_functions_made_go_along():
    batch = user_batch(*({"input_ids": row, "image": [0.5]} for row in ROWS))
    out = batch.to_training(collate_fields={"image": torch.tensor}, device=torch.device("meta"))
    assert out["image"].device.type == "meta"
    assert batch.to_training(collate_fields={"image": list}, device="meta")["image"] == [[0.5]] * 2


def test_tensors_that_are_there_are_not_copied():
    made = engine_batch(ROWS).to_training(return_labels=True)
    placed = devices.placed(made, pin_memory=True, device=torch.device("cpu"), non_blocking=True)
    assert all(placed[name] is value for name, value in made.items())


@pytest.mark.skipif(torch.accelerator.is_available(), reason="asks for what is not there")
@pytest.mark.parametrize("device", ["cuda", "cuda:3", 0, torch.device("mps")])
def test_a_device_that_is_not_there_is_refused(device):
    for _ in range(2):  # nothing of it is kept
        with pytest.raises(PlanError, match=r"to_training: device must be one that torch can use"):
            engine_batch(ROWS).to_training(device=device)
    with pytest.raises(PlanError, match=r"has no accelerator, got 'cuda' .*pass device='cpu'"):
        engine_batch(ROWS).to_training(device="cuda")


@pytest.mark.parametrize("device", ["gpu", "", 1.5])
def test_what_is_no_device_is_refused(device):
    with pytest.raises(PlanError, match=r"device must be one that torch can use here.*got '"):
        engine_batch(ROWS).to_training(device=device)


@pytest.mark.parametrize(
    ("dtype", "gives"), [(np.int64, "NumPy arrays of int64"), (None, "lists")], ids=["np", "lists"]
)
def test_arrays_and_lists_go_to_no_device(dtype, gives):
    with pytest.raises(PlanError, match=f"device='cpu' needs tensors, got a dtype that .*{gives}"):
        engine_batch(ROWS).to_training(dtype=dtype, device="cpu")
    with pytest.raises(PlanError, match=f"pin_memory=True needs tensors, got .* {gives}; pass a"):
        engine_batch(ROWS).to_training(dtype=dtype, pin_memory=True)
    with pytest.raises(PlanError, match="non_blocking must be True or False, got 'yes'"):
        engine_batch(ROWS).to_training(non_blocking="yes")


@pytest.mark.parametrize("batch", batches(), ids=["engine", "records"])
def test_without_an_accelerator_nothing_is_pinned_and_nobody_complains(batch):
    wanted = batch.to_training(**ASKED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(batch.to_training(**ASKED, pin_memory=True, non_blocking=True), wanted)
        pinned = pin_memory(batch)
        assert pinned is not batch and pinned == batch
        assert same(pinned.to_training(**ASKED), wanted)
        assert pinned.to_training(dtype=None)["input_ids"] == ROWS
    loader = DataLoader([batch], batch_size=None, pin_memory=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'pin_memory' argument is set as true but no accel")
        assert same(next(iter(loader)).to_training(**ASKED), wanted)


@pytest.fixture
def pins(monkeypatch):
    """Count what would be pinned: the machines that run this have no memory to pin."""
    pinned = []

    def pin(tensor):
        pinned.append(tensor.clone())
        return pinned[-1]

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(devices, "_accelerator", lambda: "cuda")
    return pinned


@pytest.mark.parametrize("by_batch", [False, True])
def test_with_an_accelerator_each_tensor_is_pinned_once(pins, by_batch):
    batch = engine_batch(ROWS)
    if by_batch:
        out = pin_memory(batch).to_training(**ASKED)
    else:
        out = batch.to_training(**ASKED, pin_memory=True)
    tensors = [value for value in out.values() if isinstance(value, torch.Tensor)]
    assert list(map(id, tensors)) == list(map(id, pins))
    assert same(out, batch.to_training(**ASKED))
    assert len(pins) == 4


def test_copies_to_a_device_begin_in_pinned_memory(pins, monkeypatch):
    copied, to = [], torch.Tensor.to

    def noted(tensor, *target, **settings):
        if target == (torch.device("meta"),):
            copied.append((tensor, settings))
        return to(tensor, *target, **settings)

    monkeypatch.setattr(torch.Tensor, "to", noted)
    engine_batch(ROWS).to_training(pin_memory=True, device="meta", non_blocking=True)
    assert len(copied) == len(pins) == 1
    assert copied[0][0] is pins[0] and copied[0][1] == {"non_blocking": True}


def asked(batch):
    return batch.to_training(pin_memory=True)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_worker_of_a_loader_pins_nothing(monkeypatch):
    """What comes back from it is not pinned, and a forked one could not."""

    def refuse(tensor):
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")

    monkeypatch.setattr(torch.Tensor, "pin_memory", refuse)
    monkeypatch.setattr(devices, "_accelerator", lambda: "cuda")
    loader = DataLoader(
        [engine_batch(ROWS)],
        batch_size=None,
        num_workers=1,
        collate_fn=asked,
        multiprocessing_context="fork",
        timeout=60,
    )
    assert next(iter(loader))["input_ids"].tolist() == ROWS
    with pytest.raises(RuntimeError, match="forked"):
        asked(engine_batch(ROWS))
