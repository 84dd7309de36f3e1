# SPDX-License-Identifier: BSD-3-Clause
"""Provides ``torch.compile`` on openreg devices: Inductor generates C++ kernels, which run on the device's streams.

Importing this package does not import the compiler. The registration follows when Inductor is first imported.
"""

from __future__ import annotations

from types import ModuleType

# The runtime precedes the other packages, because it checks the torch version and registers the device.
import openreg_runtime

openreg_runtime.require_matching_build(__name__)

import openreg_ops  # noqa: E402, F401  (generated code calls its operators, such as allocations, copies and matrix products)
from openreg_compile.toolchain import quote_paths  # noqa: E402


def _inductor_backend_init() -> None:
    """Registers the device with Inductor. torch 2.15 and later call it from the device module before they compile."""
    from openreg_compile import registration as registration


def _register(_registry: ModuleType) -> None:
    _inductor_backend_init()


openreg_runtime.extend("_inductor_backend_init", _inductor_backend_init)
# Older releases of torch do not call the function above, and some programs read Inductor's registry without compiling.
openreg_runtime.after_import("torch._inductor.codegen.common", _register)
openreg_runtime.after_import("torch._inductor.cpp_builder", quote_paths)
