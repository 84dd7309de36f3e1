# SPDX-License-Identifier: BSD-3-Clause
"""Generates the wrapper: the Python code that allocates tensors and launches kernels.

The generators are subclasses of Inductor's ``PythonWrapperCodegen``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor import config
from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.utils import IndentedBuffer
from torch._inductor.virtualized import V


class _DeviceWrapperMixin(PythonWrapperCodegen):
    """The differences of generated Python code for openreg devices: allocations and kernel launches."""

    def make_allocation(
        self,
        name: str,
        device: torch.device,
        dtype: torch.dtype,
        shape: Any,
        stride: Any,
        allocation_shape: Any = None,
        is_pinned: bool = False,
    ) -> str:
        """Returns a line that allocates a tensor on a device with its index, which Inductor's line omits."""
        if device.type != "openreg":
            return str(super().make_allocation(name, device, dtype, shape, stride, allocation_shape, is_pinned))
        sizes, strides = self.codegen_python_shape_tuple(shape), self.codegen_python_shape_tuple(stride)
        allocated = sizes if allocation_shape is None else self.codegen_python_shape_tuple(allocation_shape)
        line = f"{name} = empty_strided({allocated}, {strides}, device='{device}', dtype={dtype})"
        return line if allocated == sizes else f"{line}.as_strided({sizes}, {strides})"

    def _generate_kernel_call_helper(
        self, kernel_name: str, call_args: Any, *, device: torch.device | None = None, triton: bool = True, **rest: Any
    ) -> None:
        device = device or V.graph.get_current_device_or_throw()
        if device.type != "openreg":
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, triton=triton, **rest)
            return
        self.writeline(self.wrap_kernel_call(kernel_name, [*call_args, str(device.index or 0)]))


class Wrapper(_DeviceWrapperMixin):
    """The wrapper generator of a whole graph."""

    @staticmethod
    def create(
        is_subgraph: bool, subgraph_name: str | None, parent_wrapper: Any, partition_signatures: Any = None
    ) -> PythonWrapperCodegen:
        """Returns the generator for a graph, or for a subgraph such as a branch of ``torch.cond``."""
        if is_subgraph:
            assert subgraph_name is not None
            return _SubgraphWrapper(subgraph_name, parent_wrapper, partition_signatures)
        return Wrapper()

    def write_header(self) -> None:
        """Adds the import of ``compile_kernel`` to Inductor's header."""
        super().write_header()
        self.imports.writeline("from openreg_compile.kernels import compile_kernel")

    def generate_after_suffix(self, result: IndentedBuffer) -> None:
        """Generates the code after the function: with ``mode="reduce-overhead"`` a call of ``graphify()`` on it."""
        super().generate_after_suffix(result)
        # No graph if a tensor is on the host: the launch copies its value, so replays would use that of the capture.
        if config.triton.cudagraphs and set(V.graph.device_types) == {"openreg"} and len(V.graph.device_idxs) == 1:
            names = V.graph.graph_input_names
            mutated = [number for number, name in enumerate(names) if name in V.graph.mutated_inputs]
            result.writeline("from openreg_compile.graphs import graphify")
            result.writeline(f"call = graphify(call, {next(iter(V.graph.device_idxs))}, {mutated})")


class _SubgraphWrapper(_DeviceWrapperMixin, SubgraphPythonWrapperCodegen):
    """The wrapper generator of a subgraph, which becomes a function in the same module."""
