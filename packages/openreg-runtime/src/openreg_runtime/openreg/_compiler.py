# SPDX-License-Identifier: BSD-3-Clause
"""Registers the device with PyTorch's compiler when a program imports the compiler.

A backend can only register itself with functions of the compiler, whose import takes longer than the rest of torch.
"""

from __future__ import annotations

from types import ModuleType

from openreg_runtime import _providers, openreg
from openreg_runtime._after_import import after_import


def _register_device_interface(_registry: ModuleType) -> None:
    """Registers the device at the end of the import of the registry, before Inductor reads it.

    Inductor reads the registry once, while ``torch._inductor.utils`` is imported, and ``torch._dynamo`` may import that
    before its own import ends. A device that registers later is never among Inductor's ``GPU_TYPES``.
    """
    from openreg_runtime.openreg import _device_interface

    _device_interface.register()


def _register_random_states(utils: ModuleType) -> None:
    """Makes compiled graphs with checkpoints repeat random numbers, by ``torch.openreg._get_generator``."""
    utils.register_graphsafe_rng_device_type("openreg")


def _refuse_inductor(_registry: ModuleType) -> None:
    """Makes Inductor raise an error that names the package that generates code, if that is not installed."""
    if not _providers.is_provided("compile"):
        from openreg_runtime.openreg import _inductor

        _inductor.refuse()


def register_with_compiler() -> None:
    """Schedules the registrations for the import of the compiler. Imports nothing."""
    # Their results never change in a process, so compiled code may contain them.
    for function in (openreg.is_available, openreg.device_count):
        function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    after_import("torch._dynamo.device_interface", _register_device_interface)
    after_import("torch._functorch._aot_autograd.utils", _register_random_states)
    after_import("torch._inductor.codegen.common", _refuse_inductor)
