# SPDX-License-Identifier: BSD-3-Clause
"""Planted bugs of kernels that get addresses: beyond the end, after the release, and without an order."""

import raw_kernels
import torch
from planted import bug

SIZE = 1024


def ones(size=SIZE):
    return torch.ones(size, device="openreg")


def current():
    return torch.openreg.current_stream()


@bug("out-of-bounds", report="pytorch/pytorch#58385")
def a_kernel_writes_one_element_too_many(fixed):
    x = ones()
    raw_kernels.fill(x, x.nbytes if fixed else x.nbytes + 4)  # second
    return x


@bug("out-of-bounds", report="pytorch/pytorch#58385")
def a_kernel_writes_a_byte_behind_a_small_tensor(fixed):
    x = ones(3)
    raw_kernels.fill(x, x.nbytes if fixed else x.nbytes + 1)  # second
    return x


@bug("out-of-bounds")
def a_kernel_in_a_graph_writes_beyond_its_output(fixed):
    graph = torch.openreg.Graph()
    with torch.openreg.graph(graph):
        x = ones()
        raw_kernels.fill(x, x.nbytes if fixed else x.nbytes + 8)  # second
    graph.replay()
    return x


@bug("use-after-free", report="pytorch/pytorch#58385")
def a_kernel_uses_an_address_whose_tensor_is_gone(fixed):
    x = ones()
    address, size = x.data_ptr(), x.nbytes
    if not fixed:
        del x
    raw_kernels.read(address, size)  # second
    torch.openreg.synchronize()


@bug("race", "wait_stream(side)")
def a_kernel_with_addresses_does_not_wait(fixed):
    side = torch.openreg.Stream()
    x = ones()
    side.wait_stream(current())
    with torch.openreg.stream(side):
        raw_kernels.fill(x, x.nbytes)  # first
    if fixed:
        current().wait_stream(side)
    y = x + 1  # second
    torch.openreg.synchronize()
    return y
