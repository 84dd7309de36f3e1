# SPDX-License-Identifier: BSD-3-Clause
"""Planted bugs with the lifetime and the content of device memory."""

import torch
from planted import bug

SIZE = 4096


def ones():
    return torch.ones(SIZE, device="openreg")


def current():
    return torch.openreg.current_stream()


@bug("reuse", "x.record_stream(side)", report="pytorch/pytorch#179863")
def a_tensor_is_freed_while_a_side_stream_reads_it(fixed):
    side = torch.openreg.Stream()
    x = ones()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        y = x * 2  # first
    if fixed:
        x.record_stream(side)
    del x
    z = torch.zeros(SIZE, device="openreg")  # second
    torch.openreg.synchronize()
    return y, z


@bug("reuse", "x.record_stream(side)", report="meta-pytorch/torchrec#4231")
def a_storage_is_resized_while_a_side_stream_copies_it(fixed):
    side = torch.openreg.Stream()
    host = torch.empty(SIZE).pin_memory()
    x = ones()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        host.copy_(x, non_blocking=True)  # first
    if fixed:
        x.record_stream(side)
    x.untyped_storage().resize_(0)
    z = torch.zeros(SIZE, device="openreg")  # second
    torch.openreg.synchronize()
    return z


@bug("reuse", "batch.record_stream(torch.openreg.default_stream())")
def a_batch_of_the_loader_stream_is_dropped_too_early(fixed):
    loader = torch.openreg.Stream()
    with torch.openreg.stream(loader):
        batch = torch.ones(SIZE, device="openreg")
    current().wait_stream(loader)
    y = batch * 2  # first
    if fixed:
        batch.record_stream(current())
    del batch
    with torch.openreg.stream(loader):
        z = torch.zeros(SIZE, device="openreg")  # second
    torch.openreg.synchronize()
    return y, z


@bug("reuse", "x.record_stream(side)", report="sirius-db/sirius#1566")
def the_source_of_a_copy_on_a_side_stream_is_freed(fixed):
    side = torch.openreg.Stream()
    destination = torch.zeros(SIZE, device="openreg")
    x = ones()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        destination.copy_(x)  # first
    if fixed:
        x.record_stream(side)
    del x
    z = torch.full((SIZE,), 7.0, device="openreg")  # second
    torch.openreg.synchronize()
    return destination, z


@bug("reuse", "side.wait_stream(torch.openreg.default_stream())")
def memory_is_new_on_one_stream_and_used_on_another(fixed):
    side = torch.openreg.Stream()
    x = ones()
    x.mul_(2)  # first
    del x
    y = torch.empty(SIZE, device="openreg")
    if fixed:
        side.wait_stream(current())
    with torch.openreg.stream(side):
        y.fill_(1)  # second
    torch.openreg.synchronize()
    return y


@bug("uninitialized", report="pytorch/pytorch#193317")
def new_memory_is_read(fixed):
    x = torch.zeros(SIZE, device="openreg") if fixed else torch.empty(SIZE, device="openreg")
    return x + 1  # second


@bug("uninitialized", report="pytorch/pytorch#193317")
def memory_is_written_in_part_and_read_as_a_whole(fixed):
    x = torch.empty(64, 64, device="openreg")
    x[0:32].fill_(1)
    if fixed:
        x[32:].fill_(1)
    return x.sum()  # second


@bug("uninitialized", report="pytorch/pytorch#193317")
def one_column_is_never_written(fixed):
    x = torch.empty(64, 8, device="openreg")
    for column in range(8 if fixed else 7):
        x[:, column].fill_(column)
    return x * 2  # second


@bug("uninitialized", report="pytorch/pytorch#193317")
def new_memory_is_copied_to_the_host(fixed):
    x = torch.empty(SIZE, device="openreg")
    if fixed:
        x.zero_()
    return x.cpu()  # second


@bug("uninitialized", report="pytorch/pytorch#193317")
def a_sum_is_accumulated_in_new_memory(fixed):
    total = torch.empty(SIZE, device="openreg")
    if fixed:
        total.zero_()
    total.add_(ones())  # second
    return total
