# SPDX-License-Identifier: BSD-3-Clause
"""``torch.compile`` on openreg devices: Inductor's generated C++ kernels, launched on the device's streams.

Importing this package only arranges the registration, which happens when the compiler is first imported.
"""

from __future__ import annotations

from types import ModuleType

# The runtime first: it checks torch, and knows the device.
import openreg_runtime

openreg_runtime.require_matching_build(__name__)

import openreg_ops  # noqa: E402, F401  (generated code allocates, copies and multiplies)


def _register(_compiler: ModuleType) -> None:
    from openreg_compile import registration

    registration.register()


# All modules that a code generator is derived from are imported by then, and no graph has been compiled.
openreg_runtime.after_import("torch._inductor.compile_fx", _register)
