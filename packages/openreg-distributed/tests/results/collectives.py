# SPDX-License-Identifier: BSD-3-Clause
"""Functions for the ranks of test_collectives.py, which compare results with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from reference import reduced
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from values import as_read, exact, laid_out, read, shape_of

ReduceOp = distributed.ReduceOp


def same(tensor: torch.Tensor, expected: Any, dtype: str, **what: Any) -> None:
    """Every bit of the values, or nearly for an average that is not exact."""
    expected = as_read(np.asarray(expected), dtype)
    found = read(tensor)
    assert found.shape == expected.shape, (found.shape, expected.shape, what)
    if what.get("operation") == "AVG":
        tolerance = {"float16": 1e-3, "bfloat16": 8e-3, "float8_e4m3fn": 7e-2, "float8_e5m2": 0.13, "complex32": 2e-3}
        np.testing.assert_allclose(found, expected, rtol=tolerance.get(dtype, 1e-6), err_msg=str(what))
    else:
        np.testing.assert_array_equal(found, expected, err_msg=f"{dtype} {what}")


def operations_of(dtype: str) -> list[str]:
    """What can be reduced in a dtype."""
    if dtype == "bool":
        return ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
    if dtype.startswith("complex"):
        return ["SUM", "AVG"]
    if "int" in dtype:
        return ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
    return ["SUM", "AVG", "PRODUCT", "MIN", "MAX"]


def all_reduce(rank: int, size: int, dtype: str, layout: str) -> None:
    for operation in operations_of(dtype):
        values = [exact(shape_of(layout), dtype, other, operation) for other in range(size)]
        tensor = laid_out(values[rank], dtype, layout)
        distributed.all_reduce(tensor, getattr(ReduceOp, operation))
        same(tensor, reduced(values, operation), dtype, operation=operation, layout=layout)


def reduce(rank: int, size: int, dtype: str, layout: str) -> None:
    for operation in operations_of(dtype):
        root = 1 % size
        values = [exact(shape_of(layout), dtype, other, operation) for other in range(size)]
        tensor = laid_out(values[rank], dtype, layout)
        distributed.reduce(tensor, root, getattr(ReduceOp, operation))
        expected = reduced(values, operation) if rank == root else values[rank]  # others keep what they gave
        same(tensor, expected, dtype, operation=operation, layout=layout)


def average_of_integers(rank: int, size: int, dtype: str) -> None:
    info = np.iinfo(dtype)
    largest = info.max // size  # the sum is at most the greatest number
    values = [np.asarray([max(-7, info.min), 5, other, largest, largest - other], dtype=dtype) for other in range(size)]
    tensor = torch.from_numpy(values[rank]).to("openreg")
    distributed.all_reduce(tensor, ReduceOp.AVG)
    same(tensor, reduced(values, "AVG"), dtype)


def premultiplied(rank: int, size: int, dtype: str) -> None:
    values = [exact((4, 6), dtype, other) for other in range(size)]
    for factor in (0.5, torch.tensor(0.5, device="openreg")):
        tensor = laid_out(values[rank], dtype, "contiguous")
        distributed.all_reduce(tensor, distributed._make_nccl_premul_sum(factor))
        same(tensor, 0.5 * reduced(values, "SUM"), dtype)


def reduce_scatter(rank: int, size: int, dtype: str, layout: str) -> None:
    for operation in operations_of(dtype):
        # inputs[giver][taker]
        shape = shape_of(layout)
        inputs = [[exact(shape, dtype, giver, f"{operation}{taker}") for taker in range(size)] for giver in range(size)]
        expected = reduced([one[rank] for one in inputs], operation)
        output = laid_out(np.zeros_like(inputs[0][0]), dtype, layout)
        chunks = [laid_out(chunk, dtype, layout) for chunk in inputs[rank]]
        distributed.reduce_scatter(output, chunks, getattr(ReduceOp, operation))
        same(output, expected, dtype, operation=operation, layout=layout)
        if layout in ("contiguous", "transposed", "empty"):
            whole = laid_out(np.concatenate(inputs[rank]), dtype, layout)
            output = laid_out(np.zeros_like(inputs[0][0]), dtype, layout)
            distributed.reduce_scatter_tensor(output, whole, getattr(ReduceOp, operation))
            same(output, expected, dtype, operation=operation, layout=layout)


def uneven_reduce_scatter(rank: int, size: int) -> None:
    inputs = [[exact((taker + 1, 2), "float32", giver, str(taker)) for taker in range(size)] for giver in range(size)]
    output = torch.empty(rank + 1, 2, device="openreg")
    distributed.reduce_scatter(output, [laid_out(chunk, "float32", "contiguous") for chunk in inputs[rank]])
    same(output, reduced([one[rank] for one in inputs], "SUM"), "float32")


def movers(rank: int, size: int, dtype: str, layout: str) -> None:
    """Broadcast, the gathers, scatter, all-to-all, send and receive."""
    shape = shape_of(layout)
    values = [exact(shape, dtype, other) for other in range(size)]
    root = size - 1

    def empty(like: np.ndarray = values[0]) -> torch.Tensor:
        return laid_out(np.zeros_like(like), dtype, layout)

    def check_all(tensors: list[torch.Tensor], expected: list[np.ndarray]) -> None:
        for tensor, one in zip(tensors, expected, strict=True):
            same(tensor, one, dtype, layout=layout)

    mine = laid_out(values[rank], dtype, layout)
    tensor = mine.clone() if layout == "contiguous" else laid_out(values[rank], dtype, layout)
    distributed.broadcast(tensor, root)
    same(tensor, values[root], dtype, layout=layout)

    outputs = [empty() for _ in range(size)]
    distributed.all_gather(outputs, mine)
    check_all(outputs, values)

    outputs = [empty() for _ in range(size)] if rank == root else None
    distributed.gather(mine, outputs, root)
    if rank == root:
        check_all(outputs, values)

    output = empty()
    distributed.scatter(output, [laid_out(one, dtype, layout) for one in values] if rank == root else None, root)
    same(output, values[rank], dtype, layout=layout)

    grid = [[exact(shape, dtype, giver, f"to {taker}") for taker in range(size)] for giver in range(size)]
    outputs = [empty() for _ in range(size)]
    distributed.all_to_all(outputs, [laid_out(one, dtype, layout) for one in grid[rank]])
    check_all(outputs, [grid[giver][rank] for giver in range(size)])

    if layout in ("contiguous", "transposed", "empty"):
        output = empty(np.concatenate(values))
        distributed.all_gather_into_tensor(output, mine)
        same(output, np.concatenate(values), dtype, layout=layout)
        output = empty(np.concatenate(values))
        distributed.all_to_all_single(output, laid_out(np.concatenate(grid[rank]), dtype, layout))
        same(output, np.concatenate([grid[giver][rank] for giver in range(size)]), dtype, layout=layout)

    if size > 1:
        following, before = (rank + 1) % size, (rank - 1) % size
        output = empty()
        works = [distributed.isend(mine, following), distributed.irecv(output, before)]
        for work in works:
            work.wait()
        same(output, values[before], dtype, layout=layout)


def uneven_movers(rank: int, size: int) -> None:
    rows = [exact((other + 1, 3), "float32", other) for other in range(size)]
    outputs = [torch.empty(other + 1, 3, device="openreg") for other in range(size)]
    distributed.all_gather(outputs, laid_out(rows[rank], "float32", "contiguous"))
    for tensor, expected in zip(outputs, rows, strict=True):
        same(tensor, expected, "float32")

    # The input has gaps, and another shape than the output that takes it.
    outputs = [torch.empty(3 * (other + 1), device="openreg") for other in range(size)]
    distributed.all_gather(outputs, laid_out(rows[rank], "float32", "strided"))
    for tensor, expected in zip(outputs, rows, strict=True):
        same(tensor, expected.reshape(-1), "float32")

    # Rank g sends (g + t) % size rows to rank t, none to some.
    counts = [[(giver + taker) % size for taker in range(size)] for giver in range(size)]
    parts = [[exact((count, 3), "float32", giver, f"to {taker}") for taker, count in enumerate(counts[giver])]
             for giver in range(size)]  # fmt: skip
    received = [counts[giver][rank] for giver in range(size)]
    output = torch.empty(sum(received), 3, device="openreg")
    whole = laid_out(np.concatenate(parts[rank]), "float32", "contiguous")
    distributed.all_to_all_single(output, whole, received, counts[rank])
    same(output, np.concatenate([parts[giver][rank] for giver in range(size)]), "float32")

    outputs = [torch.empty(count, 3, device="openreg") for count in received]
    distributed.all_to_all(outputs, [laid_out(part, "float32", "contiguous") for part in parts[rank]])
    for giver in range(size):
        same(outputs[giver], parts[giver][rank], "float32")


def coalesced(rank: int, size: int) -> None:
    shapes = [(3,), (2, 4), (0,), (5, 1)]
    values = [[exact(shape, "float32", other) for shape in shapes] for other in range(size)]
    tensors = [laid_out(one, "float32", "contiguous") for one in values[rank]]
    distributed.all_reduce_coalesced(tensors)
    for i, tensor in enumerate(tensors):
        same(tensor, reduced([one[i] for one in values], "SUM"), "float32")

    tensors = [laid_out(one, "float32", "contiguous") for one in values[rank]]
    with distributed._coalescing_manager(device=torch.device("openreg"), async_ops=True) as manager:
        for tensor in tensors:
            distributed.all_reduce(tensor)
    manager.wait()
    for i, tensor in enumerate(tensors):
        same(tensor, reduced([one[i] for one in values], "SUM"), "float32")

    outputs = [torch.empty(shape[0] * size, *shape[1:], device="openreg") for shape in shapes]
    with distributed._coalescing_manager(device=torch.device("openreg")):
        for i, output in enumerate(outputs):
            distributed.all_gather_into_tensor(output, laid_out(values[rank][i], "float32", "contiguous"))
    for i, output in enumerate(outputs):
        same(output, np.concatenate([one[i] for one in values]), "float32")

    parts = [torch.empty(3, device="openreg") for _ in range(2)]
    wholes = [exact((3 * size,), "float32", rank, str(i)) for i in range(2)]
    with distributed._coalescing_manager(device=torch.device("openreg")):
        for part, whole in zip(parts, wholes, strict=True):
            distributed.reduce_scatter_tensor(part, laid_out(whole, "float32", "contiguous"))
    for i, part in enumerate(parts):
        everybody = [exact((3 * size,), "float32", other, str(i))[3 * rank : 3 * rank + 3] for other in range(size)]
        same(part, reduced(everybody, "SUM"), "float32")


def batch_of_messages(rank: int, size: int) -> None:
    """All ranks to all others at once, in an order that differs between them."""
    others = [(rank + i) % size for i in range(1, size)]
    received = {other: torch.empty(6, device="openreg") for other in others}
    calls = [
        distributed.P2POp(
            distributed.isend, laid_out(exact((6,), "float32", rank, f"to {other}"), "float32", ""), other
        )
        for other in others
    ]
    calls += [distributed.P2POp(distributed.irecv, received[other], other) for other in others]
    for work in distributed.batch_isend_irecv(calls[:: 1 if rank % 2 else -1]):
        work.wait()
    for other in others:
        same(received[other], exact((6,), "float32", other, f"to {rank}"), "float32")


def any_source(rank: int, size: int) -> None:
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            tensor = torch.empty(3, device="openreg")
            source = distributed.recv(tensor)
            same(tensor, exact((3,), "float32", source), "float32")
            seen.add(source)
        assert seen == set(range(1, size))
    else:
        distributed.send(laid_out(exact((3,), "float32", rank), "float32", ""), 0)


def tags_in_another_order(rank: int, size: int) -> None:
    if rank == 0:
        works = [distributed.isend(torch.full((3,), float(tag), device="openreg"), 1, tag=tag) for tag in (5, 6)]
        for work in works:
            work.wait()
    elif rank == 1:
        for tag in (6, 5):
            tensor = torch.empty(3, device="openreg")
            distributed.recv(tensor, 0, tag=tag)
            assert tensor.tolist() == [tag] * 3
    distributed.barrier()


def objects(rank: int, size: int) -> None:
    everything: list[Any] = [None] * size
    distributed.all_gather_object(everything, {"rank": rank, "text": "x" * rank * 100})
    assert everything == [{"rank": other, "text": "x" * other * 100} for other in range(size)]
    shared = [("from", rank), [rank]]
    distributed.broadcast_object_list(shared, 1 % size)
    assert shared == [("from", 1 % size), [1 % size]]
    output: list[Any] = [None]
    distributed.scatter_object_list(output, [f"for {other}" for other in range(size)] if rank == 0 else None, 0)
    assert output == [f"for {rank}"]
    gathered: list[Any] | None = [None] * size if rank == 0 else None
    distributed.gather_object(rank * 10, gathered, 0)
    assert gathered == ([10 * other for other in range(size)] if rank == 0 else None)


def sub_groups(rank: int, size: int) -> None:
    even, odd = (distributed.new_group(list(range(first, size, 2))) for first in (0, 1))
    mine, members = (even, range(0, size, 2)) if rank % 2 == 0 else (odd, range(1, size, 2))
    tensor = torch.full((3,), float(rank), device="openreg")
    distributed.all_reduce(tensor, group=mine)
    assert tensor.tolist() == [sum(members)] * 3
    distributed.broadcast(tensor, members[0], group=mine)
    distributed.barrier(mine)
    for group in (even, odd):
        if group is not distributed.GroupMember.NON_GROUP_MEMBER:
            distributed.destroy_process_group(group)


def split(rank: int, size: int) -> None:
    halves = [list(range(size // 2)), list(range(size // 2, size))]
    group = distributed.split_group(split_ranks=halves)
    members = next(half for half in halves if rank in half)
    tensor = torch.full((3,), float(rank), device="openreg")
    distributed.all_reduce(tensor, group=group)
    assert tensor.tolist() == [sum(members)] * 3
    assert distributed.get_world_size(group) == len(members)
    distributed.destroy_process_group(group)


def mesh(rank: int, size: int) -> None:
    grid = init_device_mesh("openreg", (2, size // 2), mesh_dim_names=("rows", "columns"))
    tensor = torch.full((3,), float(rank), device="openreg")
    distributed.all_reduce(tensor, group=grid["columns"].get_group())
    row = rank // (size // 2)
    assert tensor.tolist() == [sum(range(row * size // 2, (row + 1) * size // 2))] * 3


def mixed_backends(rank: int, size: int) -> None:
    for device in ("cpu", "openreg"):
        tensor = torch.full((3,), rank + 1.0, device=device)
        distributed.all_reduce(tensor)
        assert tensor.tolist() == [sum(range(1, size + 1))] * 3


def names(rank: int, size: int) -> tuple[str, bool]:
    backend = distributed.group.WORLD._get_backend(torch.device("openreg"))
    return distributed.get_backend(), backend.name()
