# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of training steps: eager, replayed as a graph, and with work of the host between the steps."""

from collections.abc import Callable

import torch
from torch.optim import Optimizer

from workloads.graphs import replayed
from workloads.models import MODELS, Task
from workloads.workload import Call, Workload

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
}


def step_of(task: Task, optimizer: Optimizer) -> Call:
    """Returns a function that runs forward, loss, backward and the optimizer on the task's batch."""

    def step() -> None:
        optimizer.zero_grad()
        task.loss(task.model(task.batch)).backward()
        optimizer.step()

    return step


def training(model: str, optimizer: str):
    """Returns the preparation of an eager training step."""

    def prepare(device: torch.device) -> Call:
        task = MODELS[model](device)
        return step_of(task, OPTIMIZERS[optimizer](task.model.parameters()))

    return prepare


def replay(model: str):
    """Returns the preparation of a training step as one launch of a graph; on the CPU, of the eager step."""

    def prepare(device: torch.device) -> Call:
        return replayed(training(model, "SGD")(device), device)

    return prepare


def augment(images: torch.Tensor) -> torch.Tensor:
    """Augments images as a data loader does on the host: with noise, a shift and a flip."""
    noisy = images + 0.01 * torch.rand_like(images)
    return noisy.roll(1, -1).flip(-2).contiguous()


def with_host_work(model: str):
    """Returns the preparation of a training step on a batch that operators of the CPU augment in the main thread."""

    def prepare(device: torch.device) -> Call:
        task = MODELS[model](device)
        step = step_of(task, OPTIMIZERS["SGD"](task.model.parameters()))
        source = task.batch.to("cpu", copy=True)  # on the CPU too, where the step writes the batch

        def augmented_step() -> None:
            task.batch.copy_(augment(source))
            step()

        return augmented_step

    return prepare


WORKLOADS = [
    *(
        Workload(f"train {model}, {optimizer}", training(model, optimizer))
        for optimizer in OPTIMIZERS
        for model in MODELS
    ),
    *(Workload(f"train {model}, graph replay", replay(model)) for model in MODELS),
    *(Workload(f"train {model}, host work between steps", with_host_work(model)) for model in MODELS),
]
