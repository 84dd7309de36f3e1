# SPDX-License-Identifier: BSD-3-Clause
"""Functions for the ranks of test_flight_recorder.py: each returns its records."""

from __future__ import annotations

import time
from typing import Any

import torch
from faults import told, x
from torch import distributed

from openreg_distributed.flight_recorder import flight_records, save_flight_records

KEEPS = 5  # calls, in the test of that


def every_kind(rank: int, size: int) -> dict[str, Any]:
    """One call of each kind, the last of them in a group of its own."""
    inputs, outputs = [x(2) for _ in range(size)], [x(2) for _ in range(size)]
    distributed.all_reduce(x(4, 3))
    distributed.broadcast(x(2).half(), 0)
    distributed.reduce(x(2), 0)
    distributed.all_gather(outputs, x(2))
    distributed.all_gather_into_tensor(x(4), x(2))
    distributed.reduce_scatter(x(2), inputs)
    distributed.reduce_scatter_tensor(x(2), x(4))
    distributed.all_to_all(outputs, inputs)
    distributed.all_to_all_single(x(4), x(4))
    distributed.gather(x(2), outputs if rank == 0 else None, 0)
    distributed.scatter(x(2), inputs if rank == 0 else None, 0)
    distributed.barrier()
    if rank == 0:
        distributed.send(x(7), 1)
        distributed.send(x(8), 1)
    else:
        distributed.recv(x(7), 0)
        distributed.recv(x(8))
    part = distributed.new_group([0, 1], group_desc="a part")
    distributed.all_reduce(x(9), group=part)
    torch.openreg.synchronize()
    return flight_records(stacks=False)


def uneven(rank: int, size: int) -> list[list[list[int]]]:
    """The sizes that are recorded of the outputs of an all_gather, and of the inputs of a reduce_scatter."""
    tensors = [x(2), x(3)]
    distributed.all_gather(tensors, x(2 + rank))
    distributed.reduce_scatter(x(2 + rank), tensors)
    torch.openreg.synchronize()
    gathered, scattered = flight_records(stacks=False)["entries"][-2:]
    return [gathered["output_sizes"], scattered["input_sizes"]]


def under_way(rank: int, size: int) -> list[dict[str, Any]]:
    """Rank 0 calls what rank 1 does not; the records while it waits, and after the group was aborted."""
    distributed.barrier()
    if rank == 1:
        return []
    tensor = x()
    distributed.all_reduce(tensor, async_op=True)
    before = flight_records(stacks=False, only_active=True)
    distributed.group.WORLD.abort()
    told(torch.openreg.synchronize)
    after = flight_records(stacks=False)
    torch.openreg.reset_device()
    return [before, after]


def many(rank: int, size: int) -> dict[str, Any]:
    for _ in range(3 * KEEPS):
        distributed.all_reduce(x())
    torch.openreg.synchronize()
    return flight_records(stacks=False)


def how_long(rank: int, size: int) -> tuple[str, float, float]:
    """The error for the duration of work that waits for the other rank, the seconds of the call, and of the work."""
    distributed.barrier()
    store = distributed.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(["asked"])
    begin = time.monotonic()
    work = distributed.all_reduce(x(), async_op=True)
    unknown = told(work._get_duration)[1] if rank == 0 else ""
    store.set("asked", "")
    work.wait()
    torch.openreg.synchronize()
    return unknown, time.monotonic() - begin, work._get_duration() / 1e3


def one_calls_another(rank: int, size: int) -> tuple[str, str]:
    distributed.all_reduce(x(3))
    distributed.barrier()
    error = told(lambda: (distributed.all_reduce(x(4 + rank)), torch.openreg.synchronize()))
    torch.openreg.reset_device()
    return error


def calling_lines(rank: int, size: int) -> list[str]:
    """The functions on the stack of a call."""
    distributed.all_reduce(x(3))
    (entry,) = flight_records()["entries"]
    return [frame["name"] for frame in entry["frames"]]


def saved(rank: int, size: int, folder: str) -> None:
    distributed.all_reduce(x(3))
    torch.openreg.synchronize()
    save_flight_records(f"{folder}/saved_{rank}", stacks=False)
