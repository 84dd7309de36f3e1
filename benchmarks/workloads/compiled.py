# SPDX-License-Identifier: BSD-3-Clause
"""What torch.compile makes of small operators, of elementwise operators on much memory, and of training steps.

Each is measured as it is, compiled, and as a graph; on the CPU, which has no graphs, what the graph replays is
measured as it is.
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
    """Nineteen elementwise operators in a row."""
    for _ in range(6):
        x = torch.sin(x) * 0.5 + x
    return x.relu()


def small(x: torch.Tensor) -> torch.Tensor:
    """Fifty operators, each of which takes next to no time."""
    for _ in range(SMALL // 2):
        x = (x + 1) * 0.5
    return x


def call_of(function: Callable[[torch.Tensor], torch.Tensor], size: int):
    """The function, as it is, on so many elements."""

    def prepare(device: torch.device) -> Call:
        x = torch.rand(size, device=device)
        return lambda: function(x)

    return prepare


def compiled(function: Callable[[torch.Tensor], torch.Tensor], size: int):
    """The function compiled, on so many elements."""
    return lambda device: call_of(torch.compile(function), size)(device)  # which imports the compiler


def small_as_graph(device: torch.device) -> Call:
    """The small operators, compiled, and replayed."""
    x = torch.rand(16, device=device)
    function = torch.compile(small)
    return replayed(lambda: function(x), device)


def tiny(device: torch.device) -> Task:
    """Two layers, 16 to 32 to 4, batch 8: next to nothing to compute."""
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    labels = torch.randint(4, (8,), device=device)
    return Task(model.to(device), torch.rand(8, 16, device=device), lambda y: functional.cross_entropy(y, labels))


def step(make: Callable[[torch.device], Task], *, is_compiled: bool, is_graph: bool = False):
    """A training step with SGD."""

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
