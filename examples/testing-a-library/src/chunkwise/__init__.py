# SPDX-License-Identifier: BSD-3-Clause
"""A library that works on any accelerator: it runs models on data that does not fit into memory at once."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn


def default_device() -> torch.device:
    """The accelerator of this process, else the CPU."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return accelerator if accelerator is not None else torch.device("cpu")


def predict(model: nn.Module, data: Tensor, *, device: torch.device | None = None, chunk: int = 1024) -> Tensor:
    """Give the model's answers for all rows, computed in chunks on its device; halve the chunk when memory runs out."""
    device = device or default_device()
    answers: list[Tensor] = []
    start = 0
    with torch.no_grad():
        while start < len(data):
            fits = True
            try:
                answers.append(model(data[start : start + chunk].to(device)).cpu())
            except torch.OutOfMemoryError:
                if chunk == 1:
                    raise
                fits = False  # and no more in this block: the exception's traceback keeps the model's tensors
            if fits:
                start += chunk
            else:
                chunk //= 2
                torch.accelerator.empty_cache()
    return torch.cat(answers)


def prefetch(batches: Iterable[Tensor], device: torch.device) -> Iterator[Tensor]:
    """Give batches on the device; each is copied while the one before it is in use."""
    if device.type == "cpu":
        yield from batches
        return
    copies = torch.Stream(device)
    waiting: Tensor | None = None
    for batch in batches:
        with copies:
            moved = batch.pin_memory().to(device, non_blocking=True)
        if waiting is not None:
            yield waiting
        current = torch.accelerator.current_stream(device)
        current.wait_stream(copies)
        moved.record_stream(current)
        waiting = moved
    if waiting is not None:
        yield waiting


def average(models: list[nn.Module]) -> dict[str, Tensor]:
    """Give the mean of the models' states, on the device of the first; the models may be on several.

    Integers, such as the number of batches that BatchNorm counts, have no mean and are those of the first model.
    """
    states = [model.state_dict() for model in models]
    return {
        name: torch.stack([state[name].to(first.device) for state in states]).mean(dim=0)
        if first.is_floating_point() or first.is_complex()
        else first.clone()
        for name, first in states[0].items()
    }
