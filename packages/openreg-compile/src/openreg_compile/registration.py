# SPDX-License-Identifier: BSD-3-Clause
"""Registers the device with Inductor, the compiler behind ``torch.compile`` (``torch/_inductor/codegen/common.py``).

The import of this module is the registration. The package imports it after Inductor's registry. At that time, modules
of the code generators' base classes may be partially imported. So the code generators are imported when a graph first
needs one.
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
    """Generates the Python code for devices in generated modules. There is no C++ code, as there is no C++ wrapper."""

    def import_get_raw_stream_as(self, name: str) -> str:
        """Returns code that defines a function from a device index to the handle of that device's current stream."""
        return f"def {name}(index):\n    return torch.openreg.current_stream(index).native_handle"

    def set_device(self, device_idx: int) -> str:
        """Returns code that makes a device the current one."""
        return f"torch.openreg.set_device({device_idx})"

    def synchronize(self) -> str:
        """Returns code that synchronizes the current device."""
        return "torch.openreg.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        """Returns code for a context manager in which a device is the current one."""
        return f"torch.openreg.device({device_idx})"


class _Scheduling:
    """A factory of ``Scheduling`` that imports it on use. It is a class because Inductor calls ``issubclass`` on it."""

    def __new__(cls, scheduler: Any) -> Any:
        from openreg_compile.scheduling import Scheduling

        return Scheduling(scheduler)


class _Wrapper:
    """A factory of ``Wrapper`` that imports it on use."""

    supports_caching = True  # generated code depends only on its own text and on the uuid of the pass below

    @staticmethod
    def create(*arguments: Any) -> Any:
        """Returns a wrapper generator. Inductor calls it for each graph."""
        from openreg_compile.wrapper import Wrapper

        return Wrapper.create(*arguments)


class _PreCodegenPass(CustomGraphModulePass):
    """A pass over each graph with a tensor of the device, before its code is generated.

    ``uuid()`` is part of the keys of Inductor's caches, so that code of another version of this package is not reused.
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
        """Returns the versions of packages and a note for one thread, because code depends on both."""
        return versions() + (", one thread" if torch.get_num_threads() == 1 else "")


@functools.cache
def versions() -> str:
    """Returns the names and versions of the device's packages. Code depends on kernel.h and on operators' strides."""
    return ", ".join(f"{plugin.distribution} {plugin.version}" for plugin in openreg_runtime.installed_plugins())


register_device_op_overrides("openreg", DeviceOps())
# Any: PyTorch annotates subclasses of its own classes, but uses only what these classes define.
_scheduling: Any = _Scheduling
_wrapper: Any = _Wrapper
_cpp_wrapper: Any = CppWrapper
_fx_wrapper: Any = FxWrapper
register_backend_for_device("openreg", _scheduling, _wrapper, _cpp_wrapper, _fx_wrapper, _PreCodegenPass())
