# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of operators on four elements, whose time is that of the call, the launch and the allocation."""

from collections.abc import Callable

import torch
from names import ITEM, SMALL, SMALL_OPERATORS
from torch.nn import functional

from workloads.workload import Call, Workload

ELEMENTS = 4


class Operands:
    """The operands of all operators, on one device: vectors of four elements, and square matrices of as many."""

    def __init__(self, device: torch.device) -> None:
        self.x = torch.rand(ELEMENTS, device=device)
        self.y = torch.rand(ELEMENTS, device=device) + 0.5
        self.mask = self.x > self.y
        self.index = torch.tensor([3, 1], device=device)
        self.a = torch.rand(2, 2, device=device)
        self.b = torch.rand(2, 2, device=device)


Operator = Callable[[Operands], object]
OPERATORS: dict[str, Operator] = {
    "add": lambda on: on.x + on.y,
    "add a number": lambda on: on.x + 1,
    "add in place": lambda on: on.x.add_(on.y, alpha=0),
    "sub": lambda on: on.x - on.y,
    "mul": lambda on: on.x * on.y,
    "mul by a number": lambda on: on.x * 2.0,
    "div": lambda on: on.x / on.y,
    "neg": lambda on: -on.x,
    "abs": lambda on: on.x.abs(),
    "exp": lambda on: on.x.exp(),
    "sqrt": lambda on: on.x.sqrt(),
    "tanh": lambda on: on.x.tanh(),
    "sigmoid": lambda on: on.x.sigmoid(),
    "relu": lambda on: on.x.relu(),
    "gelu": lambda on: functional.gelu(on.x),
    "clamp": lambda on: on.x.clamp(0.25, 0.75),
    "square": lambda on: on.x**2,
    "maximum": lambda on: torch.maximum(on.x, on.y),
    "less than": lambda on: on.x < on.y,
    "where": lambda on: torch.where(on.mask, on.x, on.y),
    "sum": lambda on: on.x.sum(),
    "mean": lambda on: on.x.mean(),
    "argmax": lambda on: on.x.argmax(),
    "softmax": lambda on: on.x.softmax(-1),
    "cat": lambda on: torch.cat((on.x, on.y)),
    "clone": lambda on: on.x.clone(),
    "copy": lambda on: on.y.copy_(on.x),
    "fill": lambda on: on.x.fill_(1),
    "index": lambda on: on.x[on.index],
    "matmul": lambda on: on.a @ on.b,
}


def calls(operator: Operator) -> Callable[[torch.device], Call]:
    """Returns the preparation of a workload that calls `operator`."""

    def prepare(device: torch.device) -> Call:
        operands = Operands(device)
        return lambda: operator(operands)

    return prepare


def item(device: torch.device) -> Call:
    """Prepares the host's reading of a number that is complete."""
    return torch.ones((), device=device).item


WORKLOADS = [
    *(Workload(name, calls(OPERATORS[operator])) for name, operator in zip(SMALL, SMALL_OPERATORS, strict=True)),
    Workload(f"{SMALL[0]}, until return", calls(OPERATORS[SMALL_OPERATORS[0]]), until_return=True),
    Workload(ITEM, item),
]
