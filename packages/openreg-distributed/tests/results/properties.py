# SPDX-License-Identifier: BSD-3-Clause
"""Functions for the ranks of test_properties.py: random sequences of collectives, waited for in any order."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from collectives import same
from reference import reduced
from torch import distributed
from values import exact, placed

ReduceOp = distributed.ReduceOp


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in memory: the order of its dimensions there, gaps along each, and what is before it."""

    order: tuple[int, ...]
    steps: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Call:
    """One call, the same on every rank."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    layout: Layout
    operation: str
    root: int  # of as many ranks as there are
    is_async: bool
    seed: int  # of the values


Check = Callable[[], None]


class Rank:
    """One rank's side of calls. Each method begins one and gives its works, and what compares the results."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def begin(self, call: Call) -> tuple[list[Any], Check]:
        self.call, self.root = call, call.root % self.size
        works, results = getattr(self, call.kind)()
        return [work for work in works if work is not None], lambda: self.check(call, results)

    @staticmethod
    def check(call: Call, results: list[tuple[torch.Tensor, np.ndarray]]) -> None:
        for tensor, expected in results:
            same(tensor, expected, call.dtype, operation=call.operation, call=call)

    def values(self, rank: int, what: object = "", shape: tuple[int, ...] | None = None) -> np.ndarray:
        """What a rank gives; every rank can make it."""
        call = self.call
        return exact(call.shape if shape is None else shape, call.dtype, rank, f"{call.operation}{call.seed}{what}")

    def tensor(self, array: np.ndarray) -> torch.Tensor:
        layout = self.call.layout
        dims = array.ndim
        order = [i for i in layout.order if i < dims]
        return placed(array, self.call.dtype, order, [*layout.steps, 1, 1][:dims], layout.offset)

    def room(self, like: np.ndarray) -> torch.Tensor:
        return self.tensor(np.ones_like(like))

    def every(self, what: object = "") -> list[np.ndarray]:
        return [self.values(rank, what) for rank in range(self.size)]

    def options(self) -> dict[str, Any]:
        return {"async_op": self.call.is_async}

    def reduction(self) -> Any:
        return getattr(ReduceOp, self.call.operation)

    def all_reduce(self) -> Any:
        tensor = self.tensor(self.values(self.rank))
        work = distributed.all_reduce(tensor, self.reduction(), **self.options())
        return [work], [(tensor, reduced(self.every(), self.call.operation))]

    def reduce(self) -> Any:
        tensor = self.tensor(self.values(self.rank))
        work = distributed.reduce(tensor, self.root, self.reduction(), **self.options())
        is_root = self.rank == self.root
        return [work], [(tensor, reduced(self.every(), self.call.operation) if is_root else self.values(self.rank))]

    def grid(self) -> list[list[np.ndarray]]:
        """What each rank gives to each."""
        return [[self.values(giver, taker) for taker in range(self.size)] for giver in range(self.size)]

    def reduce_scatter(self) -> Any:
        grid = self.grid()
        output = self.room(grid[0][0])
        inputs = [self.tensor(one) for one in grid[self.rank]]
        work = distributed.reduce_scatter(output, inputs, self.reduction(), **self.options())
        return [work], [(output, reduced([one[self.rank] for one in grid], self.call.operation))]

    def broadcast(self) -> Any:
        tensor = self.tensor(self.values(self.rank))
        return [distributed.broadcast(tensor, self.root, **self.options())], [(tensor, self.values(self.root))]

    def all_gather(self) -> Any:
        outputs = [self.room(one) for one in self.every()]
        work = distributed.all_gather(outputs, self.tensor(self.values(self.rank)), **self.options())
        return [work], list(zip(outputs, self.every(), strict=True))

    def uneven_all_gather(self) -> Any:
        given = [self.values(rank, shape=(rank, *self.call.shape)) for rank in range(self.size)]
        outputs = [self.room(one) for one in given]
        work = distributed.all_gather(outputs, self.tensor(given[self.rank]), **self.options())
        return [work], list(zip(outputs, given, strict=True))

    def gathered_into_one(self) -> Any:
        expected = np.stack(self.every())
        output = self.room(expected)
        work = distributed.all_gather_into_tensor(output, self.tensor(self.values(self.rank)), **self.options())
        return [work], [(output, expected)]

    def gather(self) -> Any:
        outputs = [self.room(one) for one in self.every()] if self.rank == self.root else None
        work = distributed.gather(self.tensor(self.values(self.rank)), outputs, self.root, **self.options())
        return [work], list(zip(outputs or [], self.every(), strict=True)) if outputs is not None else []

    def scatter(self) -> Any:
        inputs = [self.tensor(one) for one in self.every()] if self.rank == self.root else None
        output = self.room(self.values(self.rank))
        return [distributed.scatter(output, inputs, self.root, **self.options())], [(output, self.values(self.rank))]

    def all_to_all(self) -> Any:
        grid = self.grid()
        outputs = [self.room(one[self.rank]) for one in grid]
        work = distributed.all_to_all(outputs, [self.tensor(one) for one in grid[self.rank]], **self.options())
        return [work], [(output, one[self.rank]) for output, one in zip(outputs, grid, strict=True)]

    def uneven_all_to_all(self) -> Any:
        counts = np.random.default_rng(self.call.seed).integers(0, 3, (self.size, self.size)).tolist()
        parts = [[self.values(giver, taker, (count, *self.call.shape)) for taker, count in enumerate(counts[giver])]
                 for giver in range(self.size)]  # fmt: skip
        expected = np.concatenate([one[self.rank] for one in parts])
        output = self.room(expected)
        whole = self.tensor(np.concatenate(parts[self.rank]))
        received = [one[self.rank] for one in counts]
        work = distributed.all_to_all_single(output, whole, received, counts[self.rank], **self.options())
        return [work], [(output, expected)]

    def ring(self) -> Any:
        """To the next rank, and from the one before."""
        if self.size == 1:
            return [], []
        sent, output = self.tensor(self.values(self.rank)), self.room(self.values(self.rank))
        before = (self.rank - 1) % self.size
        works = [distributed.isend(sent, (self.rank + 1) % self.size), distributed.irecv(output, before)]
        return works, [(output, self.values(before))]

    def coalesced(self) -> Any:
        tensors = [self.tensor(self.values(self.rank, i)) for i in range(3)]
        with distributed._coalescing_manager(device=torch.device("openreg"), async_ops=True) as manager:
            for tensor in tensors:
                distributed.all_reduce(tensor, self.reduction())
        return [manager], [(tensor, reduced(self.every(i), self.call.operation)) for i, tensor in enumerate(tensors)]


REDUCTIONS = ["all_reduce", "reduce", "reduce_scatter", "coalesced"]
MOVERS = [
    *("broadcast", "all_gather", "uneven_all_gather", "gathered_into_one", "gather", "scatter"),
    *("all_to_all", "uneven_all_to_all", "ring"),
]


def make(rank: int, size: int, calls: list[Call], order: list[int]) -> str:
    """Makes the calls, waits for them in an order, compares; gives what was wrong."""
    try:
        mine = Rank(rank, size)
        begun = [mine.begin(call) for call in calls]
        for i in order:
            for work in begun[i][0]:
                work.wait()
        for _, check in begun:
            check()
    except Exception:
        return traceback.format_exc()
    return ""
