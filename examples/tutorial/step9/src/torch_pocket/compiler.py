# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile: Inductor's C++ kernels, launched on the device. Importing this module imports Inductor."""

import ctypes
import functools
from types import SimpleNamespace

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device
from torch._inductor import config
from torch._inductor.codecache import LambdaFuture
from torch._inductor.codegen.common import DeviceOpOverrides, register_device_op_overrides
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen as Wrapper
from torch._inductor.codegen.wrapper import SubgraphPythonWrapperCodegen
from torch._inductor.utils import Placeholder
from torch._inductor.virtualized import V

from torch_pocket import _C, pocket


class PocketInterface(DeviceInterface):
    """The device as Dynamo and Inductor see it."""

    device = pocket.device
    Event = torch.Event
    Stream = torch.Stream
    is_available = staticmethod(pocket.is_available)
    device_count = staticmethod(pocket.device_count)
    set_device = staticmethod(pocket.set_device)
    current_device = staticmethod(pocket.current_device)
    current_stream = staticmethod(pocket.current_stream)
    synchronize = staticmethod(pocket.synchronize)

    @staticmethod
    def get_compute_capability(device=None):
        """Give a version of the device's abilities; it has one."""
        return 1

    class Worker:
        """What Inductor asks, in processes that compile, too."""

        current_device = staticmethod(pocket.current_device)

        @staticmethod
        def get_device_properties(device=None):
            """Say how many threads a kernel has."""
            return SimpleNamespace(multi_processor_count=1)


class PocketOps(DeviceOpOverrides):
    """How generated Python speaks of the device."""

    def set_device(self, device_idx):
        """Make a device the current one."""
        return f"torch.pocket.set_device({device_idx})"

    def device_guard(self, device_idx):
        """Make a device the current one for a while."""
        return f"torch.pocket.device({device_idx})"

    def synchronize(self):
        """Wait for the current device."""
        return "torch.pocket.synchronize()"


def as_cpp():
    """Tell Inductor our language, which for a device it does not know is "cuda_backend", and that a queue is a thread.

    For a while: the same process may compile for other devices.
    """
    return config.patch({"cuda_backend": "cpp", "cpp.threads": 1})


class Scheduling(CppScheduling):
    """What becomes a kernel, and its source."""

    def __init__(self, scheduler):
        super().__init__(scheduler)
        if scheduler is not None:
            # A fusion that Inductor leaves out for the CPU, by name: the C++ loops would come out wrong.
            reindex = scheduler._try_reindex_pointwise_for_reduction
            scheduler._try_reindex_pointwise_for_reduction = lambda first, second: (
                first.get_device().type != "pocket" and reindex(first, second)
            )

    def codegen_node(self, node):
        """Add a node to the kernel at hand."""
        with as_cpp():
            super().codegen_node(node)

    def flush(self):
        """End the kernel at hand: define_kernel(), and a line that calls it."""
        nodes = self.kernel_group.scheduled_nodes
        device = nodes[0].get_device() if nodes else None
        with as_cpp(), V.graph.set_current_device(device):  # the graph may have come to another device's nodes
            super().flush()

    def define_kernel(self, src_code, nodes, kernel_args=None):
        """Write a kernel's source into the generated Python; return its name."""
        wrapper = V.graph.wrapper_code
        _, names, types = (kernel_args or self.kernel_group.args).cpp_argdefs()
        source = src_code.replace("#pragma CMT", "//") + unpacking(names, types)
        for placeholder in (Placeholder.KERNEL_NAME, Placeholder.DESCRIPTIVE_NAME):
            source = source.replace(str(placeholder), "body")
        if source not in wrapper.src_to_kernel:
            name = wrapper.src_to_kernel[source] = f"kernel_{wrapper.next_kernel_suffix()}"
            wrapper.define_kernel(name, f"compile_kernel(async_compile, r'''{source}''')", gpu=False)
        return wrapper.src_to_kernel[source]


def unpacking(names, types):
    """Write a function that takes the block of arguments which launch_compiled() fills, and calls the kernel."""
    arguments = []
    for number, (name, type_) in enumerate(zip(names, types, strict=True)):
        slot = f"(block + {16 * number})"
        buffer = V.graph.try_get_buffer(name)
        if buffer is not None and buffer.get_device().type == "cpu":
            arguments.append(f"({type_}){slot}")  # a tensor on the host: its element is in the block
        else:
            arguments.append(f"*({'const double' if type_ == 'const float' else type_}*){slot}")
    return f'\nextern "C" void kernel(const char* block) {{ body({", ".join(arguments)}); }}\n'


def compile_kernel(async_compile, source):
    """Compile a kernel, for generated Python; what comes back launches it, or is a future of that."""

    def launcher(function):
        return functools.partial(_C.launch_compiled, ctypes.cast(function, ctypes.c_void_p).value)

    compiled = async_compile.cpp(source)
    return LambdaFuture(lambda: launcher(compiled.result())) if hasattr(compiled, "result") else launcher(compiled)


class OnDevice(Wrapper):
    """The Python that allocates tensors and calls kernels."""

    # Or Inductor would find what an earlier version of this file wrote. Compiled C++ is kept all the same.
    supports_caching = False

    def write_header(self):
        """Write the imports."""
        super().write_header()
        self.imports.writeline("from torch_pocket.compiler import compile_kernel")

    def make_allocation(self, name, device, *rest, **settings):
        """Write a line that allocates, with the number of the device, which Inductor leaves out."""
        line = super().make_allocation(name, device, *rest, **settings)
        return line.replace("device='pocket'", f"device='{device}'")

    def _generate_kernel_call_helper(self, kernel_name, call_args, *, device=None, **rest):
        device = device or V.graph.get_current_device_or_throw()
        if device.type != "pocket":
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, **rest)
            return
        self.writeline(self.wrap_kernel_call(kernel_name, [str(device.index or 0), f"[{', '.join(call_args)}]"]))


class OfSubgraph(OnDevice, SubgraphPythonWrapperCodegen):
    """Of a part of a graph, such as a branch of torch.cond."""


class PythonWrapperCodegen(OnDevice):
    """Of a whole graph."""

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        """Make one, as Inductor does."""
        if is_subgraph:
            return OfSubgraph(subgraph_name, parent_wrapper, partition_signatures)
        return PythonWrapperCodegen()


class CppWrapperCodegen:
    """In place of what writes C++ instead of Python: PyTorch has no C functions for our device that it could call."""

    supports_caching = False

    @staticmethod
    def create(*_):
        """Refuse."""
        raise NotImplementedError("torch.compile writes Python for pocket: leave cpp_wrapper and fx_wrapper off")


WrapperFxCodegen = CppWrapperCodegen

register_device_op_overrides("pocket", PocketOps())
for name in ("pocket", *(f"pocket:{index}" for index in range(pocket.device_count()))):
    register_interface_for_device(name, PocketInterface)
