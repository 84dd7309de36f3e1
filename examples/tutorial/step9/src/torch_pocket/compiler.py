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
    """The device as Dynamo and Inductor know it."""

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
        """Returns the version of the device's abilities; there is only one."""
        return 1

    class Worker:
        """The functions that Inductor also calls in processes that compile."""

        current_device = staticmethod(pocket.current_device)

        @staticmethod
        def get_device_properties(device=None):
            """Returns the number of threads of a kernel."""
            return SimpleNamespace(multi_processor_count=1)


class PocketOps(DeviceOpOverrides):
    """The lines of generated Python that are about the device."""

    def set_device(self, device_idx):
        """Returns a line that makes a device current."""
        return f"torch.pocket.set_device({device_idx})"

    def device_guard(self, device_idx):
        """Returns a context in which a device is current."""
        return f"torch.pocket.device({device_idx})"

    def synchronize(self):
        """Returns a line that waits for the current device."""
        return "torch.pocket.synchronize()"


def as_cpp():
    """Returns a context with our language, and one thread per kernel, as a queue is one thread.

    Inductor takes the language of a device that it does not know from "cuda_backend". It is a context, because the same
    process may compile for other devices.
    """
    return config.patch({"cuda_backend": "cpp", "cpp.threads": 1})


class Scheduling(CppScheduling):
    """Decides what becomes one kernel, and writes its source."""

    def __init__(self, scheduler):
        super().__init__(scheduler)
        if scheduler is not None:
            # A fusion that Inductor leaves out for the CPU, by name: the C++ loops would come out wrong.
            reindex = scheduler._try_reindex_pointwise_for_reduction
            scheduler._try_reindex_pointwise_for_reduction = lambda first, second: (
                first.get_device().type != "pocket" and reindex(first, second)
            )

    def codegen_node(self, node):
        """Adds a node to the current kernel."""
        with as_cpp():
            super().codegen_node(node)

    def flush(self):
        """Ends the current kernel: calls define_kernel(), and writes a line that calls the kernel."""
        nodes = self.kernel_group.scheduled_nodes
        device = nodes[0].get_device() if nodes else None
        with as_cpp(), V.graph.set_current_device(device):  # the current device may be another one by now
            super().flush()

    def define_kernel(self, src_code, nodes, kernel_args=None):
        """Writes a kernel's source into the generated Python, and returns its name."""
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
    """Returns the source of a function that takes the block which launch_compiled() fills, and calls the kernel."""
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
    """Compiles a kernel, for generated Python. Returns a function that launches it, or a future of that function."""

    def launcher(function):
        return functools.partial(_C.launch_compiled, ctypes.cast(function, ctypes.c_void_p).value)

    compiled = async_compile.cpp(source)
    return LambdaFuture(lambda: launcher(compiled.result())) if hasattr(compiled, "result") else launcher(compiled)


class OnDevice(Wrapper):
    """Writes the Python that allocates tensors and calls kernels."""

    # With a cache, Inductor would find what an earlier version of this file wrote. Compiled C++ is cached all the same.
    supports_caching = False

    def write_header(self):
        """Writes the imports."""
        super().write_header()
        self.imports.writeline("from torch_pocket.compiler import compile_kernel")

    def make_allocation(self, name, device, *rest, **settings):
        """Returns a line that allocates, with the index of the device, which Inductor leaves out."""
        line = super().make_allocation(name, device, *rest, **settings)
        return line.replace("device='pocket'", f"device='{device}'")

    def _generate_kernel_call_helper(self, kernel_name, call_args, *, device=None, **rest):
        device = device or V.graph.get_current_device_or_throw()
        if device.type != "pocket":
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, **rest)
            return
        self.writeline(self.wrap_kernel_call(kernel_name, [str(device.index or 0), f"[{', '.join(call_args)}]"]))


class OfSubgraph(OnDevice, SubgraphPythonWrapperCodegen):
    """The wrapper of a part of a graph, such as a branch of torch.cond."""


class PythonWrapperCodegen(OnDevice):
    """The wrapper of a whole graph."""

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        """Returns a wrapper, as Inductor does."""
        if is_subgraph:
            return OfSubgraph(subgraph_name, parent_wrapper, partition_signatures)
        return PythonWrapperCodegen()


class CppWrapperCodegen:
    """Rejects the modes that write C++ instead of Python. PyTorch has no C functions for our device to call from it."""

    supports_caching = False

    @staticmethod
    def create(*_):
        """Raises an error."""
        raise NotImplementedError("torch.compile writes Python for pocket: leave cpp_wrapper and fx_wrapper off")


WrapperFxCodegen = CppWrapperCodegen

register_device_op_overrides("pocket", PocketOps())
for name in ("pocket", *(f"pocket:{index}" for index in range(pocket.device_count()))):
    register_interface_for_device(name, PocketInterface)
