# SPDX-License-Identifier: BSD-3-Clause
"""Workloads for torch.compile: small operators, elementwise operators on large tensors, and training steps.

They are measured eager, compiled, and except for the elementwise operators also as a graph. On the CPU, which has no
graphs, the function that a graph would replay is called; for training steps, it is not compiled there.
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from workloads.graphs import replayed
from workloads.models import MODELS, Task
from workloads.training import OPTIMIZERS, step_of
from workloads.workload import Call, Workload

POINTWISE = 19
SMALL = 50


def pointwise(x: torch.Tensor) -> torch.Tensor:
    """Computes nineteen elementwise operators in a row."""
    for _ in range(6):
        x = torch.sin(x) * 0.5 + x
    return x.relu()


def small(x: torch.Tensor) -> torch.Tensor:
    """Computes fifty operators, each of which takes almost no time."""
    for _ in range(SMALL // 2):
        x = (x + 1) * 0.5
    return x


def call_of(function: Callable[[torch.Tensor], torch.Tensor], size: int):
    """Returns the preparation of a workload that calls the function eagerly, on `size` elements."""

    def prepare(device: torch.device) -> Call:
        x = torch.rand(size, device=device)
        return lambda: function(x)

    return prepare


def compiled(function: Callable[[torch.Tensor], torch.Tensor], size: int):
    """Returns the preparation of a workload that calls the compiled function, on `size` elements."""
    return lambda device: call_of(torch.compile(function), size)(device)  # torch.compile imports the compiler


def small_as_graph(device: torch.device) -> Call:
    """Prepares a replay of the small operators, compiled."""
    x = torch.rand(16, device=device)
    function = torch.compile(small)
    return replayed(lambda: function(x), device)


def tiny(device: torch.device) -> Task:
    """Returns a task with two layers, 16 to 32 to 4, and batch 8, which has almost nothing to compute."""
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    labels = torch.randint(4, (8,), device=device)
    return Task(model.to(device), torch.rand(8, 16, device=device), lambda y: functional.cross_entropy(y, labels))


def step(make: Callable[[torch.device], Task], *, is_compiled: bool, is_graph: bool = False):
    """Returns the preparation of a training step with SGD."""

    def prepare(device: torch.device) -> Call:
        task = make(device)
        optimizer = OPTIMIZERS["SGD"](task.model.parameters())
        if is_compiled and not (is_graph and device.type == "cpu"):
            task = Task(torch.compile(task.model), task.batch, torch.compile(task.loss))
        taken = step_of(task, optimizer)
        return replayed(taken, device) if is_graph else taken

    return prepare


WORKLOADS = [
    Workload(f"{POINTWISE} elementwise operators on 1 M, eager", call_of(pointwise, 2**20)),
    Workload(f"{POINTWISE} elementwise operators on 1 M, compiled", compiled(pointwise, 2**20)),
    Workload(f"{SMALL} small operators, eager", call_of(small, 16)),
    Workload(f"{SMALL} small operators, compiled", compiled(small, 16)),
    Workload(f"{SMALL} small operators, compiled, as a graph", small_as_graph),
    Workload("train tiny MLP, eager", step(tiny, is_compiled=False)),
    Workload("train tiny MLP, compiled", step(tiny, is_compiled=True)),
    Workload("train tiny MLP, compiled, whole step as a graph", step(tiny, is_compiled=True, is_graph=True)),
    *(Workload(f"train {model}, eager", step(make, is_compiled=False)) for model, make in MODELS.items()),
    *(Workload(f"train {model}, compiled", step(make, is_compiled=True)) for model, make in MODELS.items()),
    *(
        Workload(f"train {model}, compiled, whole step as a graph", step(make, is_compiled=True, is_graph=True))
        for model, make in MODELS.items()
    ),
]
