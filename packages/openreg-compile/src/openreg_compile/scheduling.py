# SPDX-License-Identifier: BSD-3-Clause
"""Which operators become one kernel, and the kernels' C++ (source: ``CppScheduling`` of Inductor).

The kernels are those that Inductor generates for the CPU. They differ in their caller: the device runs them, after the
launch has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.codegen.cpp import CppKernelProxy, CppScheduling, ParallelDepth
from torch._inductor.utils import Placeholder, get_fused_kernel_name
from torch._inductor.virtualized import V

from openreg_compile.parallel_checks import keep_failures


def _as_cpp() -> AbstractContextManager[Any]:
    """Settings of Inductor while it writes our kernels, which other devices in the same process do not see.

    For a device that it does not know it takes ``cuda_backend`` for the language. The number of threads is that of the
    device's engine when the kernel runs; how much work is worth several is judged for those of this process.
    """
    settings: AbstractContextManager[Any] = config.patch(
        {
            "cuda_backend": "cpp",
            "cpp.dynamic_threads": True,
            "cpp.threads": max(2, torch.get_num_threads()),  # for one it would leave out what keeps threads apart
        }
    )
    return settings


class _Kernel(CppKernelProxy):
    """Loops on one thread where there is too little work for several, although their number is not known yet.

    Inductor leaves that to OpenMP, which wakes all of its threads for the smallest loop.
    """

    def decide_parallel_depth(self, max_parallel_depth: ParallelDepth, threads: int) -> ParallelDepth:
        """How many of the outer loops are divided among threads; none is the answer as well."""
        with config.patch("cpp.dynamic_threads", False):
            depth: ParallelDepth = super().decide_parallel_depth(max_parallel_depth, threads)
        return depth


class Scheduling(CppScheduling):
    """One for each device of a graph."""

    kernel_proxy_cls = _Kernel

    def __init__(self, scheduler: Any) -> None:
        super().__init__(scheduler)
        if scheduler is not None:
            _keep_loops(scheduler)

    def codegen_node(self, node: Any) -> None:
        """Adds a node's loops to the kernel at hand."""
        with _as_cpp():
            super().codegen_node(node)

    def codegen_template(self, *args: Any, **kwargs: Any) -> Any:
        """Writes a kernel from a template."""
        with _as_cpp():
            return super().codegen_template(*args, **kwargs)

    def flush(self) -> None:
        """Ends the kernel at hand: defines it, and writes its launch."""
        nodes = self.kernel_group.scheduled_nodes
        if not nodes:
            super().flush()
            return
        # By now the graph may have come to a node of another device.
        with _as_cpp(), V.graph.set_current_device(nodes[0].get_device()):
            super().flush()

    def define_kernel(self, src_code: str, nodes: Sequence[Any], kernel_args: Any = None) -> str:
        """Writes a kernel into the wrapper, unless it stands there; returns its name."""
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
        source = keep_failures(source.replace(str(Placeholder.DESCRIPTIVE_NAME), shown))
        wrapper.define_kernel(
            name, f"compile_kernel(async_compile, {shown!r}, {kinds!r}, r'''{source.strip()}\n''')", gpu=False
        )
        return name


def _kind(name: str, type_: str) -> str:
    """What the launch does with an argument: d, of the device; h, a tensor on the host, copied; n, a number."""
    if "*" not in type_:
        return "n"
    buffer = V.graph.try_get_buffer(name)
    return "h" if buffer is not None and buffer.get_device() == torch.device("cpu") else "d"


# What Inductor tries with the loops of two nodes on other devices than the CPU, and what means that it did nothing.
_NOT_FOR_CPU = {
    "_try_reindex_pointwise_for_reduction": False,
    "shared_data_after_inverting_indexing": -1,
    "shared_data_after_reordering_loop": -1,
}


def _keep_loops(scheduler: Any) -> None:
    """Keeps fusions from this graph's nodes that their authors try on GPUs only: loops in C++ would come out wrong.

    Inductor tries them for nodes of every device except the CPU; there is no setting for one device.
    """
    for name, nothing in _NOT_FOR_CPU.items():
        setattr(scheduler, name, _unless_ours(getattr(scheduler, name), nothing))


def _unless_ours(original: Callable[[Any, Any], Any], nothing: int) -> Callable[[Any, Any], Any]:
    def attempt(node1: Any, node2: Any) -> Any:
        ours = any(node.get_device().type == "openreg" for node in (node1, node2))
        return nothing if ours else original(node1, node2)

    return attempt
