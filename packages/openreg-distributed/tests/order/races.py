# SPDX-License-Identifier: BSD-3-Clause
"""Programs of two ranks with and without a race. Each returns whether its numbers are wrong.

Each is ordered by nothing but what the parameter `right` adds, so it depends on the order of streams what is seen.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import distributed

COUNT = 64


def full(value: float) -> torch.Tensor:
    return torch.full((COUNT,), float(value), device="openreg")


def is_not(tensor: torch.Tensor, value: float) -> bool:
    torch.openreg.synchronize()
    return tensor.tolist() != [float(value)] * COUNT


def forgotten_wait(rank: int, right: bool) -> bool:
    """A sum is read while it may not be there."""
    tensor = full(rank + 1)
    work = distributed.all_reduce(tensor, async_op=True)
    if right:
        work.wait()
    return is_not(tensor * 2, 6)


def buffer_reused_too_early(rank: int, right: bool) -> bool:
    """The operand of a collective is overwritten while that may still read it."""
    operand, output = full(rank), full(-1).repeat(2)
    work = distributed.all_gather_into_tensor(output, operand, async_op=True)
    if right:
        work.wait()
    operand.fill_(7)
    work.wait()
    return is_not(output[COUNT * (1 - rank) :][:COUNT], 1 - rank)


def wait_of_another_stream(rank: int, right: bool) -> bool:
    """One stream waits for the collective, and another one reads what that gives."""
    reader = torch.Stream("openreg")
    tensor = full(rank + 1)
    work = distributed.all_reduce(tensor, async_op=True)
    work.wait()
    with reader:
        if right:
            work.wait()
        read = tensor + 0
    return is_not(read, 3)


def operand_that_is_not_there(rank: int, right: bool) -> bool:
    """A collective of one stream takes what another one computes."""
    producer = torch.Stream("openreg")
    tensor = full(0)
    torch.openreg.synchronize()
    with producer:
        tensor.add_(rank + 1)
    if right:
        torch.openreg.current_stream().wait_stream(producer)
    distributed.all_reduce(tensor)
    return is_not(tensor, 3)


def one_message_of_two(rank: int, right: bool) -> bool:
    """Of two messages that come, the second alone is waited for."""
    sent = [full(10 * rank + i) for i in range(2)]
    come = [full(-1) for _ in range(2)]
    works = [distributed.isend(tensor, 1 - rank) for tensor in sent]
    works += [distributed.irecv(tensor, 1 - rank) for tensor in come]
    for work in works if right else works[-1:]:
        assert work is not None
        work.wait()
    both = come[0] + come[1]
    return is_not(both, 20 * (1 - rank) + 1)


PROGRAMS: tuple[Callable[[int, bool], bool], ...] = (
    forgotten_wait,
    buffer_reused_too_early,
    wait_of_another_stream,
    operand_that_is_not_there,
    one_message_of_two,
)


def all_programs(rank: int, size: int) -> dict[str, tuple[bool, bool]]:
    """Which of them went wrong: with its race, and without."""
    return {program.__name__: (program(rank, False), program(rank, True)) for program in PROGRAMS}
