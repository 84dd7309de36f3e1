# SPDX-License-Identifier: BSD-3-Clause
"""What Inductor has to know of a device (source: ``torch/_inductor/codegen/common.py``).

Importing this module imports the compiler; the package does so when somebody else has.
"""

from __future__ import annotations

from torch._inductor.codegen.common import register_backend_for_device, register_device_op_overrides
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.custom_graph_pass import CustomGraphModulePass
from torch._inductor.exc import InvalidCxxCompiler
from torch.fx import GraphModule

from openreg_compile.device_ops import DeviceOps
from openreg_compile.kernels import versions
from openreg_compile.refusal import CppWrapper, FxWrapper
from openreg_compile.scheduling import Scheduling
from openreg_compile.wrapper import Wrapper

_NO_COMPILER = (
    "torch.compile generates C++ for openreg devices, and no C++ compiler works here. Install one, such as g++ "
    "(Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++) or clang++, or name one with the environment "
    'variable CXX; or compile without generated code: torch.compile(..., backend="aot_eager")'
)


class _BeforeCode(CustomGraphModulePass):
    """Runs on each graph with a tensor of the device, before code is generated for it; changes nothing.

    Its name is part of the keys of Inductor's caches, so that code of another version of this package is not found.
    """

    def __call__(self, gm: GraphModule) -> None:  # noqa: ARG002
        try:
            get_cpp_compiler()
        except InvalidCxxCompiler as error:
            raise RuntimeError(_NO_COMPILER) from error

    def uuid(self) -> str:
        """The packages that the code depends on, with their versions."""
        return versions()


def register() -> None:
    """Makes the code generators and what they write of the device known to Inductor."""
    register_device_op_overrides("openreg", DeviceOps())
    register_backend_for_device("openreg", Scheduling, Wrapper, CppWrapper, FxWrapper, _BeforeCode())
