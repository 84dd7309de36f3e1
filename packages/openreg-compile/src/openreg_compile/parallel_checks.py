# SPDX-License-Identifier: BSD-3-Clause
"""Makes kernels throw the exception of a failed check in a loop after the loops.

Inductor writes checks of indices into the loops of its kernels, as ``TORCH_CHECK(condition, ...)``. An exception that
leaves the body of an OpenMP loop terminates the process. So the body of each loop catches exceptions, and the kernel
stores the first one and throws it at its end. The classes of this module replace all generators that write checks,
except those of templates, which Inductor has only for the CPU.
"""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.common import BracesBuffer
from torch._inductor.codegen.cpp import CppKernelProxy, KernelGroup
from torch._inductor.utils import IndentedBuffer


class CheckedKernelProxy(CppKernelProxy):
    """The generator of one nest of loops, in which a failed check throws nothing out of a loop."""

    def gen_body(self, code: Any = None) -> None:
        """Writes the body of the innermost loop."""
        body = BracesBuffer()
        super().gen_body(body)
        code.splice(_keep_failures(body))

    def aggregate_reduction_buffers(self, *args: Any) -> None:
        """Completes the code around the loop of a reduction. The suffix belongs to the body of an outer loop, too."""
        super().aggregate_reduction_buffers(*args)
        self.reduction_suffix = _keep_failures(self.reduction_suffix)


class CheckedKernelGroup(KernelGroup):
    """The generator of one kernel, which throws the first exception of its loops as its last statement."""

    def codegen_group(self, name: str | None = None) -> str:
        """Returns the source of the kernel."""
        self.stack.close()  # ends the last parallel region
        if "openreg_failure" not in self.loops_code.getvalue():
            source: str = super().codegen_group(name)
            return source
        loops = BracesBuffer()
        loops.writeline("openreg::compile::FirstException openreg_failure;")
        loops.splice(self.loops_code)
        self.loops_code = loops
        source = super().codegen_group(name)
        return f"{source.rstrip().removesuffix('}')}    openreg_failure.rethrow();\n}}\n"


def _keep_failures(body: IndentedBuffer) -> IndentedBuffer:
    """Returns code that stores the exceptions of ``body`` if it has checks, else ``body``."""
    if "TORCH_CHECK(" not in body.getvalue():
        return body
    caught = BracesBuffer()
    caught.writeline("try")
    with caught.indent():
        caught.splice(body)
    caught.writeline("catch (...) { openreg_failure.keep(); }")
    return caught
