# SPDX-License-Identifier: BSD-3-Clause
"""Calls that do not match, for test_mismatches.py: each rank returns its error, after its device computed again."""

from __future__ import annotations

from collections.abc import Callable

import torch
from faults import told, x
from torch import distributed


def outcome(call: Callable[[], object]) -> str:
    """The error of a call and of what follows it. The device has to compute again after a reset."""

    def called() -> None:
        call()
        torch.openreg.synchronize()

    _, text = told(called)
    if "the group has failed" in text:  # another rank was faster, and this one's call was refused
        text = text.partition("the group has failed: ")[2]
    torch.openreg.reset_device()
    assert (x() + 1).tolist() == [2] * 4
    return text


def message(rank: int, size: int, sent: int, expected: int) -> str:
    """Rank 0 sends so many numbers to rank 1, which expects so many."""
    distributed.barrier()
    return outcome(lambda: distributed.send(x(sent), 1) if rank == 0 else distributed.recv(x(expected), 0))


def message_from_anybody(rank: int, size: int, sent: int, expected: int) -> str:
    distributed.barrier()
    return outcome(lambda: distributed.send(x(sent), 1) if rank == 0 else distributed.recv(x(expected)))


def all_reduce(rank: int, size: int) -> str:
    return outcome(lambda: distributed.all_reduce(x(3 + rank)))


def large_all_reduce(rank: int, size: int) -> str:
    return outcome(lambda: distributed.all_reduce(x(100_000 if rank else 4)))


def broadcast(rank: int, size: int) -> str:
    return outcome(lambda: distributed.broadcast(x(8 if rank == 0 else 4), 0))


def reduce(rank: int, size: int) -> str:
    return outcome(lambda: distributed.reduce(x(8 if rank else 4), 0))


def all_gather(rank: int, size: int) -> str:
    count = 2 + rank
    return outcome(lambda: distributed.all_gather_into_tensor(x(size * count), x(count)))


def uneven_all_gather(rank: int, size: int) -> str:
    """Rank 0 expects of rank 1 less than that has."""
    sizes = [1, 2] if rank == 0 else [1, 3]
    return outcome(lambda: distributed.all_gather([x(count) for count in sizes], x(sizes[rank])))


def reduce_scatter(rank: int, size: int) -> str:
    count = 2 + rank
    return outcome(lambda: distributed.reduce_scatter_tensor(x(count), x(size * count)))


def all_to_all(rank: int, size: int) -> str:
    """Rank 0 sends three rows to rank 1, which expects one."""
    sent, expected = ([1, 3], [1, 1]) if rank == 0 else ([1, 1], [1, 1])
    return outcome(lambda: distributed.all_to_all_single(x(sum(expected)), x(sum(sent)), expected, sent))


def gather(rank: int, size: int) -> str:
    outputs = [x(4) for _ in range(size)] if rank == 0 else None
    return outcome(lambda: distributed.gather(x(4 if rank == 0 else 6), outputs, 0))


def scatter(rank: int, size: int) -> str:
    inputs = [x(6) for _ in range(size)] if rank == 0 else None
    return outcome(lambda: distributed.scatter(x(6 if rank == 0 else 4), inputs, 0))


def coalesced(rank: int, size: int) -> str:
    """As many bytes altogether, in other pieces."""
    pieces = [x(1), x(3)] if rank == 0 else [x(2), x(2)]
    return outcome(lambda: distributed.all_reduce_coalesced(pieces))


def another_call(rank: int, size: int) -> str:
    return outcome(lambda: distributed.all_reduce(x()) if rank == 0 else distributed.broadcast(x(), 0))


def another_root(rank: int, size: int) -> str:
    return outcome(lambda: distributed.broadcast(x(), rank))


def another_reduction(rank: int, size: int) -> str:
    operation = distributed.ReduceOp.SUM if rank == 0 else distributed.ReduceOp.MAX
    return outcome(lambda: distributed.all_reduce(x(), operation))


def another_dtype(rank: int, size: int) -> str:
    return outcome(lambda: distributed.all_reduce(x() if rank == 0 else x().int()))


def one_of_three(rank: int, size: int) -> str:
    """Rank 2 disagrees with both others."""
    return outcome(lambda: distributed.all_reduce(x(9 if rank == 2 else 4)))


def one_call_less(rank: int, size: int) -> str:
    """Rank 1 has left a call out, so its last one meets another."""

    def calls() -> None:
        if rank == 0:
            distributed.all_reduce(x(4))  # raises here if the other rank was faster
        distributed.broadcast(x(5), 0)

    return outcome(calls)
