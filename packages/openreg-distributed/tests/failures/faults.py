# SPDX-License-Identifier: BSD-3-Clause
"""Functions for the ranks of test_faults.py: each returns the errors that its rank got, and after which time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from datetime import timedelta
from typing import Any

import torch
from ranks import limit_calls
from torch import distributed

from openreg_testing.plugin.gate import Gate


def told(call: Any) -> tuple[str, str]:
    """The type and the text of the error that the call raises."""
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


def x(*shape: int) -> torch.Tensor:
    return torch.ones(shape or (4,), device="openreg")


def a_call_without_answer(rank: int, size: int) -> dict[str, Any]:
    """Rank 0 calls, the other does not."""
    distributed.barrier()
    limit_calls(2)
    if rank == 1:
        return {}
    tensor = x(4, 2)  # a failed device makes none
    begin = time.monotonic()
    gate = Gate()
    gate.close()  # a timeout begins after the work before the call, and so not before wait() has returned
    work = distributed.all_reduce(tensor, async_op=True)
    work.wait()
    gate.open()
    result: dict[str, Any] = {"synchronize": told(torch.openreg.synchronize)}
    result["after"] = time.monotonic() - begin
    result["wait"] = told(work.wait)
    result["success"] = (work.is_completed(), work.is_success())
    result["next"] = told(lambda: distributed.all_reduce(tensor))
    torch.openreg.reset_device()
    gate.end()
    result["device"] = (x() + 1).tolist()
    return result


def a_wait_with_a_limit(rank: int, size: int) -> dict[str, Any]:
    distributed.barrier()
    if rank == 1:
        return {}
    work = distributed.all_reduce(x(), async_op=True)
    begin = time.monotonic()
    result: dict[str, Any] = {"wait": told(lambda: work.wait(timedelta(seconds=0.3)))}
    result["after"] = time.monotonic() - begin
    torch.openreg.reset_device()
    return result


def a_receive_without_send(rank: int, size: int) -> tuple[str, str]:
    distributed.barrier()
    limit_calls(1)
    if rank == 1:
        return "", ""
    tensor = x()
    distributed.irecv(tensor, 1)
    error = told(torch.openreg.synchronize)
    torch.openreg.reset_device()
    return error


def a_peer_dies(rank: int, size: int, how: str) -> dict[str, Any]:
    """The last rank ends while the others work with it."""
    distributed.barrier()
    if rank == size - 1:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(3)
    return {"error": told(lambda: (distributed.all_reduce(x()), torch.openreg.synchronize()))}


def an_abort(rank: int, size: int) -> dict[str, Any]:
    distributed.barrier()
    if rank == 1:
        return {}
    work = distributed.all_reduce(x(), async_op=True)
    distributed.group.WORLD.abort()
    result: dict[str, Any] = {"wait": told(work.wait)}
    torch.openreg.synchronize()  # the device goes on
    result["device"] = (x() + 1).tolist()
    result["next"] = told(lambda: distributed.all_reduce(x()))
    return result


def another_call(rank: int, size: int) -> tuple[str, str]:
    return told(lambda: distributed.all_reduce(x()) if rank == 0 else distributed.broadcast(x(), 0))


def another_size(rank: int, size: int) -> tuple[str, str]:
    return told(lambda: distributed.all_reduce(x(2 + rank)))


def exits_at_work(rank: int, size: int) -> None:
    """Ends with collectives under way that no other rank calls."""
    distributed.barrier()
    limit_calls(3)
    gate = Gate()
    gate.close()  # no timeout begins before the last call
    passed = torch.openreg.current_stream().record_event()
    for _ in range(3):
        distributed.all_reduce(x(1000), async_op=True)
    if rank == 0:
        distributed.irecv(x(), 1)
        distributed.all_gather_into_tensor(x(8), x(4), async_op=True)
    gate.open()
    passed.synchronize()  # the kernel of the gate reads from it no longer


def exits_with_the_group(rank: int, size: int, under_way: str) -> None:
    """The interpreter and the process end, as those of a program do that has not destroyed its group."""
    distributed.barrier()
    if under_way == "a kernel":  # the collective waits for it
        a = torch.ones(1500, 1500, device="openreg")
        for _ in range(20):
            a = a @ a
        distributed.all_reduce(a)
    if under_way == "calls":  # that no other rank makes
        exits_at_work(rank, size)
    ctypes.pythonapi.Py_Exit(0)


def a_child_exits_with_the_group(rank: int, size: int) -> int:
    """The exit status of a forked child, in which no thread of the group runs."""
    distributed.barrier()
    child = os.fork()
    if child == 0:
        ctypes.pythonapi.Py_Exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def a_failing_kernel_before(rank: int, size: int) -> tuple[str, str]:
    """The work before a collective fails on rank 0, which resets its device before the group may have looked.

    A gate delays the failure until the call is made: a call on a failed device would be refused.
    """
    tensor, index = x(4), torch.tensor([99], device="openreg")
    distributed.barrier()
    if rank == 1:
        return told(lambda: (distributed.all_reduce(x(1)), torch.openreg.synchronize()))
    gate = Gate()
    gate.close()
    distributed.all_reduce(tensor[index])
    gate.open()
    error = told(torch.openreg.synchronize)
    torch.openreg.reset_device()
    gate.end()
    return error


def bad_input(rank: int, size: int) -> dict[str, tuple[str, str]]:
    """Every call is refused by both ranks on the calling line, so the group goes on."""
    device = torch.openreg.current_device()
    other = torch.device("openreg", 1 - device)
    backend = distributed.group.WORLD._get_backend(torch.device("openreg"))
    with torch.openreg.graph(torch.openreg.Graph()):
        captured = told(lambda: distributed.all_reduce(x()))
    result = {
        "cpu": told(lambda: backend.allreduce([torch.ones(3)])),
        "devices": told(lambda: distributed.all_gather([x(), x().to(other)], x())),
        "dtypes": told(lambda: backend._reduce_scatter_base(x(2).int(), x(4))),
        "sizes": told(lambda: distributed.all_gather_into_tensor(x(7), x(4))),
        "parts": told(lambda: distributed.all_to_all_single(x(4), x(4), [1, 2], [2, 2])),
        "rows": told(lambda: distributed.all_to_all_single(x(3), x(3))),
        "nothing": told(lambda: backend.allgather_coalesced([[] for _ in range(size)], [])),
        "peer": told(lambda: backend.send([x()], 7, 0)),
        "operation": told(lambda: distributed.all_reduce(x(), distributed.ReduceOp.BAND)),
        "complex": told(
            lambda: distributed.all_reduce(
                torch.ones(2, dtype=torch.complex64, device="openreg"), distributed.ReduceOp.MAX
            )
        ),
        "sparse": told(lambda: distributed.all_reduce(x(3, 3).to_sparse())),
        "captured": captured,
    }
    tensor = x()
    distributed.all_reduce(tensor)
    assert tensor.tolist() == [size] * 4
    return result


def wrong_device(rank: int, size: int) -> tuple[str, str]:
    other = torch.device("openreg", 1 - torch.openreg.current_device())
    return told(lambda: distributed.all_reduce(x().to(other)))


def never_complete(rank: int, size: int, port: int) -> tuple[str, str]:
    """A world of more ranks than ever come."""
    return told(
        lambda: distributed.init_process_group(
            "occl",
            init_method=f"tcp://127.0.0.1:{port}",
            rank=rank,
            world_size=size + 1,
            timeout=timedelta(seconds=1.5),
        )
    )


def lost_store(rank: int, size: int) -> tuple[str, str]:
    """The store does not answer when the group is made."""
    store = distributed.PrefixStore("silent", distributed.HashStore())
    return told(
        lambda: distributed.init_process_group(
            "occl", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=1)
        )
    )


def store_that_ends(rank: int, size: int, port: int) -> tuple[str, str]:
    """The rank that has the store is killed, and the other one makes a further group."""
    distributed.init_process_group(
        "occl",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=120),
    )
    distributed.barrier()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return told(lambda: distributed.new_group([0, 1], timeout=timedelta(seconds=5)))


def injected(rank: int, size: int, specification: str, calls: int, limit: float | None = None) -> dict[str, Any]:
    """Calls until one raises; on rank 1 a fault is injected into one of them, which may have a timeout of its own."""
    distributed.barrier()
    begin = time.monotonic()
    faults = torch.openreg.inject_faults(specification) if rank == 1 else contextlib.nullcontext()
    error: tuple[str, str] = ("", "")
    sums = []
    at_fault = int(specification.rpartition(":")[2])
    with faults:
        for number in range(1, calls + 1):
            if limit is not None and number == at_fault:
                limit_calls(limit)
            tensor = x()
            error = told(lambda tensor=tensor: (distributed.all_reduce(tensor), torch.openreg.synchronize()))
            if error[0]:
                break
            sums.append(tensor[0].item())
    torch.openreg.reset_device()
    return {"error": error, "sums": sums, "after": time.monotonic() - begin}


def ordered_by_the_environment(rank: int, size: int) -> tuple[list[float], tuple[str, str]]:
    """The result with the first device of the process, and the error with the other one, which the setting names."""
    with torch.openreg.device(0):
        tensor = x()
        distributed.all_reduce(tensor)
        result = tensor.tolist()
    limit_calls(1)
    with torch.openreg.device(1):
        error = told(lambda: (distributed.all_reduce(x()), torch.openreg.synchronize()))
        torch.openreg.reset_device()
    return result, error
