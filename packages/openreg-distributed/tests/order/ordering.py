# SPDX-License-Identifier: BSD-3-Clause
"""Functions for the ranks of test_stream_order.py. A late rank waits for a key of the group's store."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import torch
from torch import distributed


def store() -> distributed.Store:
    return distributed.distributed_c10d._get_default_store()


def full(value: float, count: int = 1000) -> torch.Tensor:
    return torch.full((count,), float(value), device="openreg")


def late_peer(rank: int, size: int, key: str) -> None:
    """Neither the host nor other streams wait for a peer that is late, and what follows on the stream does."""
    tensor = full(rank + 1)
    if rank == 1:
        store().wait([key])
        distributed.all_reduce(tensor)
        assert tensor[0].item() == 3
        return
    work = distributed.all_reduce(tensor, async_op=True)
    assert not work.is_completed()
    other = torch.Stream("openreg")
    with other:
        assert (full(2) + 3).sum().item() == 5000  # the host waits for this stream, and an engine is free for it
    work.wait()
    after = tensor * 2
    assert not torch.openreg.current_stream().query()
    store().set(key, "")
    assert after[0].item() == 6
    assert work.is_completed()
    assert work.is_success()


def work_before(rank: int, size: int) -> None:
    """A collective begins after the work that was queued before it, and later work sees its result."""
    tensor = full(0)
    for step in range(50):
        torch.openreg._sleep(200_000)
        tensor.fill_(rank + step)
        distributed.all_reduce(tensor)
        tensor.add_(1)
        assert tensor.sum().item() == 1000 * (2 * step + 1 + 1)


def in_flight(rank: int, size: int, key: str) -> None:
    """More collectives than there are communication streams, of which none is waited for before all are queued."""
    tensors = [full(rank + i) for i in range(40)]
    if rank == 1:
        store().wait([key])
    works = [distributed.all_reduce(tensor, async_op=True) for tensor in tensors]
    if rank == 0:
        assert not works[0].is_completed()
        store().set(key, "")
    for i, work in enumerate(works):
        work.wait()
        assert tensors[i][0].item() == 2 * i + 1


def freed_while_in_use(rank: int, size: int, key: str) -> None:
    """The operand is dropped at once; its memory is not given to others while the transport uses it."""
    if rank == 1:
        store().wait([key])
    outputs = []
    for i in range(20):
        operand = full(rank + i)
        output = torch.empty(size * 1000, device="openreg")
        distributed.all_gather_into_tensor(output, operand, async_op=True)
        outputs.append(output)
        del operand
        full(-1)  # would take the memory
    gc.collect()
    if rank == 0:
        store().set(key, "")
    torch.openreg.synchronize()
    for i, output in enumerate(outputs):
        assert output.cpu().tolist() == [i] * 1000 + [i + 1] * 1000


def futures(rank: int, size: int, key: str) -> None:
    """A callback is called at once, and what it queues comes after the collective."""
    tensor = full(rank + 1)
    if rank == 1:
        store().wait([key])
    called = []

    def double(future: torch.futures.Future) -> torch.Tensor:
        called.append(True)
        return future.value()[0] * 2

    result = distributed.all_reduce(tensor, async_op=True).get_future().then(double)
    if rank == 0:
        assert called
        store().set(key, "")
    assert result.wait()[0].item() == 6


def barrier(rank: int, size: int, key: str) -> None:
    """The host waits in a barrier, until all ranks have come with the work of their stream done."""
    if rank == 1:
        store().wait([key])
        distributed.barrier()
        return
    opener = threading.Timer(0.05, lambda: store().set(key, ""))
    opener.start()
    distributed.barrier()
    assert store().check([key])
    opener.join()


def threads(rank: int, size: int) -> None:
    """A group and a stream for each of several threads: on one stream, each rank could queue them in another order."""
    groups = [distributed.new_group(list(range(size))) for _ in range(3)]
    wrong: list[str] = []

    def use(index: int) -> None:
        torch.openreg.set_device(rank % 2)
        with torch.Stream("openreg"):
            for step in range(30):
                tensor = full(rank + index + step)
                distributed.all_reduce(tensor, group=groups[index])
                if tensor[0].item() != 2 * (index + step) + 1:
                    wrong.append(f"{index} {step}")

    running = [threading.Thread(target=use, args=(index,)) for index in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not wrong


def thread_that_blocks(rank: int, size: int, key: str) -> None:
    """A thread blocks in a call until the late rank answers, and calls of another thread come to its stream meanwhile.

    Launches block: the call waits for its messages, because it converts their result on the device. The other calls
    convert nothing. A group has eight communication streams for collectives, so the last of them has that of the first.
    """
    group = distributed.group.WORLD
    assert group is not None
    backend = group._get_backend(torch.device("openreg"))
    converted = torch.ones(4, dtype=torch.int16, device="openreg")
    others = [full(rank + i) for i in range(8)]
    if rank == 1:
        store().wait([key])
        distributed.all_reduce(converted)
        for other in others:
            distributed.all_reduce(other)
    else:
        before = backend._get_sequence_number_for_group()
        device = torch.openreg.current_device()

        def block() -> None:
            torch.openreg.set_device(device)
            distributed.all_reduce(converted)

        thread = threading.Thread(target=block)
        thread.start()
        while backend._get_sequence_number_for_group() == before:
            pass
        for other in others[:-1]:
            distributed.all_reduce(other, async_op=True)
        store().set(key, "")
        distributed.all_reduce(others[-1])
        thread.join()
    assert converted.tolist() == [2] * 4
    assert [other[0].item() for other in others] == [2 * i + 1 for i in range(8)]


def both_devices(rank: int, size: int) -> None:
    """One process uses the group with either of its devices."""
    for device in (0, 1, 0):
        with torch.openreg.device(device):
            tensor = full(rank + device)
            distributed.all_reduce(tensor)
            assert tensor.device.index == device
            assert tensor[0].item() == 2 * device + 1


def seeded(rank: int, size: int, orders: bool) -> list[float]:
    """A sum that another stream reads, after it was ordered or not."""
    tensor, other = full(rank + 1, 8), torch.Stream("openreg")
    torch.openreg.synchronize()
    work = distributed.all_reduce(tensor, async_op=True)
    if orders:
        with other:
            work.wait()
    with other:
        read = tensor + 0
    torch.openreg.synchronize()
    return read.tolist()


CALLS: list[Callable[..., None]] = [late_peer, in_flight, freed_while_in_use, futures, barrier]
