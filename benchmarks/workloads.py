# SPDX-License-Identifier: BSD-3-Clause
"""What is measured: each workload makes, for a device, the function that is called over and over."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Workload:
    """`prepare` takes a device and gives the function to time.

    With `until_return` the time is that of the call alone, otherwise that of the work: the device is
    synchronised before and after a block of calls.
    """

    name: str
    prepare: Callable[[torch.device], Callable[[], object]]
    until_return: bool = False


def allocation(device: torch.device) -> Callable[[], object]:
    """Allocates 1 KiB and frees it."""
    return lambda: torch.empty(1024, dtype=torch.uint8, device=device)


def addition(count: int) -> Callable[[torch.device], Callable[[], object]]:
    """Adds two vectors of float32 into a new one."""

    def prepare(device: torch.device) -> Callable[[], object]:
        a, b = torch.rand(count, device=device), torch.rand(count, device=device)
        return lambda: a + b

    return prepare


def training_step(model: nn.Module, shape: tuple[int, ...], device: torch.device) -> Callable[[], object]:
    """Forward, cross entropy, backward and SGD with momentum on one batch."""
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batch = torch.rand(shape, device=device)
    labels = torch.randint(10, shape[:1], device=device)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()

    return step


def mlp(device: torch.device) -> Callable[[], object]:
    """Three layers, 256 to 512 to 512 to 10, batch 128."""
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return training_step(model, (128, 256), device)


def convnet(device: torch.device) -> Callable[[], object]:
    """The network of examples/quickstart.py, batch 64."""
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(512, 10),
    )
    return training_step(model, (64, 1, 8, 8), device)


WORKLOADS = (
    Workload("allocate and free 1 KiB", allocation),
    Workload("add 4 floats, until return", addition(4), until_return=True),
    Workload("add 4 floats", addition(4)),
    Workload("add 1 M floats", addition(1 << 20)),
    Workload("MLP training step", mlp),
    Workload("convnet training step", convnet),
)
