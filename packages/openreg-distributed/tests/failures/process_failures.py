# SPDX-License-Identifier: BSD-3-Clause
"""Functions for the ranks of test_process_failures.py: calls that a seed chooses, until one rank leaves the others."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import threading
from typing import Any

import torch
from faults import told, x
from ranks import limit_calls
from torch import distributed

CALLS = 12
WAYS = ("killed", "hangs", "raises", "exits")


def leave(code: int) -> None:
    """Ends the process as the interpreter does: exit handlers, finalization, static destructors.

    Processes of `multiprocessing` do without all that.
    """
    ctypes.pythonapi.Py_Exit(code)


def call(choice: random.Random, rank: int, size: int) -> list[Any]:
    """The next call, the same on all ranks, which waits or does not; gives what has to stay alive."""
    kind = choice.choice(("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "ring", "barrier"))
    count = choice.choice((1, 100, 10_000)) * size
    root = choice.randrange(size)
    waits = choice.random() < 0.5
    tensor = x(count)
    if kind == "all_reduce":
        work = distributed.all_reduce(tensor, async_op=True)
    elif kind == "all_gather":
        work = distributed.all_gather_into_tensor(x(size * count), tensor, async_op=True)
    elif kind == "reduce_scatter":
        work = distributed.reduce_scatter_tensor(x(count // size), tensor, async_op=True)
    elif kind == "broadcast":
        work = distributed.broadcast(tensor, root, async_op=True)
    elif kind == "all_to_all":
        work = distributed.all_to_all_single(x(count), tensor, async_op=True)
    elif kind == "ring":
        sent = distributed.isend(tensor, (rank + 1) % size)
        work = distributed.irecv(x(count), (rank - 1) % size)
        if waits and sent is not None:
            sent.wait()
    else:
        work = distributed.barrier(async_op=True)
    if waits and work is not None:
        work.wait()
    return [work, tensor]


def fail(way: str) -> None:
    """How a rank leaves the others alone; does not return."""
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif way == "hangs":
        threading.Event().wait()  # until it is killed
    elif way == "raises":
        distributed.destroy_process_group()  # as a program does in `finally`
    leave(7)


def failure(rank: int, size: int, way: str, culprit: int, moment: int, seed: int) -> tuple[str, str]:
    """Returns this rank's error after one rank has failed. The device has to compute again after a reset."""
    choice = random.Random(seed)

    def calls() -> None:
        alive = []
        for i in range(CALLS):
            if i == moment:
                if rank == culprit:
                    fail(way)
                limit_calls(4, meet=False)
            alive.append(call(choice, rank, size))
        alive.append(distributed.all_reduce(x(), async_op=True))  # which needs all ranks
        torch.openreg.synchronize()

    error = told(calls)
    torch.openreg.reset_device()
    assert (x() + 1).tolist() == [2] * 4
    return error


def departure(rank: int, size: int, seed: int) -> None:
    """Ends with work under way, some of it without an answer, and with or without an end of the group."""
    choice = random.Random(seed)
    distributed.barrier()
    limit_calls(1)  # for which an end may wait
    alive = []

    def calls() -> None:
        for _ in range(choice.randrange(CALLS)):
            alive.append(call(choice, rank, size))
        if rank == choice.randrange(size):
            alive.extend(distributed.all_reduce(x(1000), async_op=True) for _ in range(3))
            alive.append(distributed.irecv(x(), (rank + 1) % size))

    told(calls)  # of ranks that have ended before, perhaps
    if choice.random() < 0.5:
        alive.clear()
    if choice.random() < 0.5:
        distributed.destroy_process_group()
    leave(0)
