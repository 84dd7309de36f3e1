# SPDX-License-Identifier: BSD-3-Clause
"""Fuses operators and generates the C++ kernels, with Inductor's ``CppScheduling``.

The kernels are those that Inductor generates for the CPU. The device runs them asynchronously, instead of the calling
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.codegen.cpp import CppScheduling, ParallelDepth
from torch._inductor.utils import Placeholder, get_fused_kernel_name
from torch._inductor.virtualized import V

from openreg_compile.parallel_checks import CheckedKernelGroup, CheckedKernelProxy


def _as_cpp() -> AbstractContextManager[Any]:
    """Patches Inductor's settings while it generates kernels for openreg devices. Other devices do not see them.

    For a device that has no setting for the language of its kernels, Inductor uses ``cuda_backend``. A kernel uses the
    threads that the device's engine has when it runs. Whether a loop is worth several threads depends on the number in
    this process.
    """
    settings: AbstractContextManager[Any] = config.patch(
        {
            "cuda_backend": "cpp",
            "cpp.dynamic_threads": True,
            "cpp.threads": max(2, torch.get_num_threads()),  # with 1, serial loops would have no omp single
        }
    )
    return settings


class _KernelProxy(CheckedKernelProxy):
    """A nest of loops that runs a loop on one thread if it has too little work for several.

    With a dynamic number of threads, Inductor makes every loop parallel, and OpenMP wakes all threads for the smallest.
    """

    def decide_parallel_depth(self, max_parallel_depth: ParallelDepth, threads: int) -> ParallelDepth:
        """Returns how many outer loops are divided among threads, or none, as for a fixed number of threads."""
        with config.patch("cpp.dynamic_threads", False):
            depth: ParallelDepth = super().decide_parallel_depth(max_parallel_depth, threads)
        return depth


class Scheduling(CppScheduling):
    """The scheduling of the nodes on one device of a graph."""

    kernel_proxy_cls = _KernelProxy

    def __init__(self, scheduler: Any) -> None:
        super().__init__(scheduler)
        if scheduler is not None:
            _disable_gpu_fusions(scheduler)

    def reset_kernel_group(self) -> None:
        """Begins a kernel."""
        self.kernel_group = CheckedKernelGroup()

    def codegen_node(self, node: Any) -> None:
        """Adds the loops of a node to the current kernel."""
        with _as_cpp():
            super().codegen_node(node)

    def flush(self) -> None:
        """Ends the current kernel: generates its definition and its launch."""
        nodes = self.kernel_group.scheduled_nodes
        if not nodes:
            super().flush()
            return
        # The graph's current node may already be on another device.
        with _as_cpp(), V.graph.set_current_device(nodes[0].get_device()):
            super().flush()

    def define_kernel(self, src_code: str, nodes: Sequence[Any], kernel_args: Any = None) -> str:
        """Adds the definition of a kernel to the wrapper, unless it has an equal one, and returns the kernel's name."""
        wrapper = V.graph.wrapper_code
        arguments = self.kernel_group.args if kernel_args is None else kernel_args
        _, call_arguments, types = arguments.cpp_argdefs()
        kinds = "".join(_kind(name, type_) for name, type_ in zip(call_arguments, types, strict=True))
        shown = f"cpp_{get_fused_kernel_name(nodes, config.cpp.descriptive_names or 'original_aten')}"
        key = f"{kinds} {src_code}"
        if (known := wrapper.src_to_kernel.get(key)) is not None:
            return str(known)
        name = f"{shown}_{wrapper.next_kernel_suffix()}"
        wrapper.src_to_kernel[key] = name
        source = src_code.replace(str(Placeholder.KERNEL_NAME), "kernel").replace("#pragma CMT", "//")
        source = source.replace(str(Placeholder.DESCRIPTIVE_NAME), shown)
        wrapper.define_kernel(
            name, f"compile_kernel(async_compile, {shown!r}, {kinds!r}, r'''{source.strip()}\n''')", gpu=False
        )
        return name


def _kind(name: str, type_: str) -> str:
    """Returns the kind of a kernel argument: d (device tensor), h (host tensor, copied by the launch) or n (number)."""
    if "*" not in type_:
        return "n"
    buffer = V.graph.try_get_buffer(name)
    return "h" if buffer is not None and buffer.get_device() == torch.device("cpu") else "d"


# The methods of Inductor's scheduler that change the loops of two nodes to fuse them, except on the CPU. The value is
# the result of a method that changes nothing.
_GPU_FUSIONS = {
    "_try_reindex_pointwise_for_reduction": False,
    "shared_data_after_inverting_indexing": -1,
    "shared_data_after_reordering_loop": -1,
}


def _disable_gpu_fusions(scheduler: Any) -> None:
    """Disables fusions that are meant for GPUs on this graph's openreg nodes, because their C++ loops would be wrong.

    Inductor tries these fusions on every device except the CPU, and has no setting for a single device.
    """
    for name, nothing in _GPU_FUSIONS.items():
        setattr(scheduler, name, _without_openreg(getattr(scheduler, name), nothing))


def _without_openreg(original: Callable[[Any, Any], Any], nothing: int) -> Callable[[Any, Any], Any]:
    """Returns a method that returns `nothing` if a node is on an openreg device, and else calls `original`."""

    def attempt(node1: Any, node2: Any) -> Any:
        is_openreg = any(node.get_device().type == "openreg" for node in (node1, node2))
        return nothing if is_openreg else original(node1, node2)

    return attempt
