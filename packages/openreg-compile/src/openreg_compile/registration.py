# SPDX-License-Identifier: BSD-3-Clause
"""What Inductor has to know of a device (source: ``torch/_inductor/codegen/common.py``).

Importing this module registers; the package imports it once Inductor's registry has been imported. The code generators
derive from modules that may be half imported then, so they are imported when a graph first needs one.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass
from torch.fx import GraphModule

import openreg_runtime
from openreg_compile.unsupported import CppWrapper, FxWrapper

_NO_COMPILER = (
    "torch.compile generates C++ for openreg devices, and no C++ compiler works here. Install one, such as g++ "
    "(Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++) or clang++, or name one with the environment "
    'variable CXX; or compile without generated code: torch.compile(..., backend="aot_eager")'
)


class DeviceOps(DeviceOpOverrides):
    """How generated Python speaks of devices; of C++ nothing, because the C++ wrapper is refused."""

    def import_get_raw_stream_as(self, name: str) -> str:
        """Defines a function from a device's number to the handle of its current stream."""
        return f"def {name}(index):\n    return torch.openreg.current_stream(index).native_handle"

    def set_device(self, device_idx: int) -> str:
        """Makes a device the current one."""
        return f"torch.openreg.set_device({device_idx})"

    def synchronize(self) -> str:
        """Waits for the current device."""
        return "torch.openreg.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        """A context in which a device is the current one."""
        return f"torch.openreg.device({device_idx})"


class _Scheduling:
    """Makes a ``Scheduling``. A class, because Inductor checks whether it is derived from Triton's."""

    def __new__(cls, scheduler: Any) -> Any:
        from openreg_compile.scheduling import Scheduling

        return Scheduling(scheduler)


class _Wrapper:
    """Makes a ``Wrapper``."""

    supports_caching = True  # what generated code depends on shows in it, or in the name of the pass below

    @staticmethod
    def create(*arguments: Any) -> Any:
        """How Inductor makes a generator of wrappers."""
        from openreg_compile.wrapper import Wrapper

        return Wrapper.create(*arguments)


class _PreCodegenPass(CustomGraphModulePass):
    """Runs on each graph with a tensor of the device, before code is generated for it.

    Its name is part of the keys of Inductor's caches, so that code of another version of this package is not found.
    """

    def __call__(self, gm: GraphModule) -> None:
        from torch._inductor.cpp_builder import get_cpp_compiler
        from torch._inductor.exc import InvalidCxxCompiler

        from openreg_compile.lowering import lower_as_for_cpu
        from openreg_compile.rewriting import rewrite

        try:
            get_cpp_compiler()
        except InvalidCxxCompiler as error:
            raise RuntimeError(_NO_COMPILER) from error
        rewrite(gm)
        lower_as_for_cpu(gm)

    def uuid(self) -> str:
        """What the code depends on and Inductor does not know: the packages, and whether there is one thread."""
        return versions() + (", one thread" if torch.get_num_threads() == 1 else "")


@functools.cache
def versions() -> str:
    """The packages of the device with their versions: generated code depends on kernel.h, and on operators' strides."""
    return ", ".join(f"{plugin.distribution} {plugin.version}" for plugin in openreg_runtime.installed_plugins())


register_device_op_overrides("openreg", DeviceOps())
# PyTorch's annotations ask for classes that are derived from its own; it calls no more than is here.
_scheduling: Any = _Scheduling
_wrapper: Any = _Wrapper
_cpp_wrapper: Any = CppWrapper
_fx_wrapper: Any = FxWrapper
register_backend_for_device("openreg", _scheduling, _wrapper, _cpp_wrapper, _fx_wrapper, _PreCodegenPass())
