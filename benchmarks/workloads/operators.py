# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of single operators: small parallel kernels, and three sizes of each kind, up to 2048 x 2048 elements."""

from collections.abc import Callable

import torch
from torch.nn import functional

from workloads.workload import Call, Workload

SIZES = {"small": 64, "medium": 512, "large": 2048}


def on_matrix(operator: Callable[[torch.Tensor], object], size: int):
    """Returns the preparation of a workload that calls `operator` with a square matrix."""

    def prepare(device: torch.device) -> Call:
        x = torch.rand(size, size, device=device)
        return lambda: operator(x)

    return prepare


def add(count: int):
    """Returns the preparation of a workload that adds two vectors of float32 into a new one."""

    def prepare(device: torch.device) -> Call:
        a, b = torch.rand(count, device=device), torch.rand(count, device=device)
        return lambda: a + b

    return prepare


def layer_norm(size: int):
    """Returns the preparation of a layer norm of the rows of a square matrix, with weight and bias."""

    def prepare(device: torch.device) -> Call:
        x = torch.rand(size, size, device=device)
        weight, bias = torch.rand(size, device=device), torch.rand(size, device=device)
        return lambda: functional.layer_norm(x, (size,), weight, bias)

    return prepare


def matmul(size: int):
    """Returns the preparation of the product of two square matrices."""

    def prepare(device: torch.device) -> Call:
        a, b = torch.rand(size, size, device=device), torch.rand(size, size, device=device)
        return lambda: a @ b

    return prepare


def convolution(batch: int, channels: int, width: int):
    """Returns the preparation of a convolution, 3 x 3 with padding, that keeps channels and size."""

    def prepare(device: torch.device) -> Call:
        x = torch.rand(batch, channels, width, width, device=device)
        weight, bias = torch.rand(channels, channels, 3, 3, device=device), torch.rand(channels, device=device)
        return lambda: functional.conv2d(x, weight, bias, padding=1)

    return prepare


def item_after_kernel(device: torch.device) -> Call:
    """Prepares a launch of a kernel on one element, whose result the host reads."""
    x = torch.zeros((), device=device)
    return lambda: x.add_(1).item()


def parallel_work_on_the_host(_device: torch.device) -> None:
    """Runs an operator of the CPU that uses all cores, on the main thread."""
    x = torch.rand(1 << 20)
    for _ in range(10):
        x + x


def work_on_another_device(device: torch.device) -> None:
    """Runs a parallel kernel on the second device."""
    x = torch.rand(1 << 20, device=torch.device(device.type, 1))
    for _ in range(10):
        x + x
    torch.accelerator.synchronize(1)


def parallel(name: str, **options) -> Workload:
    """Returns a workload of a small parallel kernel in blocks so short that what a disturbance costs shows in them.

    The one without a disturbance has the same blocks, because the others are compared with it.
    """
    return Workload(name, add(1 << 17), calls=20, **options)


def sized(operation: str, make: Callable[[int], Callable[[torch.device], Call]], **sizes: int) -> list[Workload]:
    """Returns a workload for each size, by default small, medium and large."""
    return [Workload(f"{operation}, {label}", make(size)) for label, size in (sizes or SIZES).items()]


WORKLOADS = [
    parallel("add 128 K elements"),
    parallel("add 128 K elements after CPU work", disturb=parallel_work_on_the_host),
    parallel("add 128 K elements after a second device", disturb=work_on_another_device, on_cpu=False),
    Workload("item() after a kernel", item_after_kernel),
    *sized("add", lambda size: add(size * size)),
    *sized("gelu", lambda size: on_matrix(functional.gelu, size)),
    *sized("sum of all", lambda size: on_matrix(torch.sum, size)),
    *sized("sum of rows", lambda size: on_matrix(lambda x: x.sum(-1), size)),
    *sized("softmax", lambda size: on_matrix(lambda x: x.softmax(-1), size)),
    *sized("layer norm", layer_norm),
    *sized("matmul", matmul, small=64, medium=256, large=1024),
    Workload("convolution, small", convolution(4, 8, 8)),
    Workload("convolution, medium", convolution(16, 32, 16)),
    Workload("convolution, large", convolution(16, 64, 56)),
]
