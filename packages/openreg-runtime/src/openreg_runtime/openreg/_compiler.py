# SPDX-License-Identifier: BSD-3-Clause
"""Registers the device with PyTorch's compiler when the compiler is imported, and not before.

PyTorch has no list to which a backend could add itself without importing the compiler, which takes longer than the rest
of torch together.
"""

from __future__ import annotations

from types import ModuleType

from openreg_runtime import _providers, openreg
from openreg_runtime._after_import import after_import


def _register_device_interface(_dynamo: ModuleType) -> None:
    from openreg_runtime.openreg import _device_interface

    _device_interface.register()


def _register_random_states(utils: ModuleType) -> None:
    """Lets compiled graphs with checkpoints replay random numbers (see ``_get_generator``)."""
    utils.register_graphsafe_rng_device_type("openreg")


def _refuse_inductor(_registry: ModuleType) -> None:
    """Has Inductor say which package generates code, where that is not installed."""
    if not _providers.is_brought("compile"):
        from openreg_runtime.openreg import _inductor

        _inductor.refuse()


def register_with_compiler() -> None:
    """Arranges the registrations; none imports anything now."""
    # They give the same answer as long as the process lives, so compiled code may contain it.
    for function in (openreg.is_available, openreg.device_count):
        function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    after_import("torch._dynamo", _register_device_interface)
    after_import("torch._functorch._aot_autograd.utils", _register_random_states)
    after_import("torch._inductor.codegen.common", _refuse_inductor)
