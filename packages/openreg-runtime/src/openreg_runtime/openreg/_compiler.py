# SPDX-License-Identifier: BSD-3-Clause
"""Registers the device with PyTorch's compiler when the compiler is imported, and not before.

PyTorch has no list to which a backend could add itself without importing the compiler, which takes longer than the rest
of torch together. So a finder waits on ``sys.meta_path`` for each of its modules, and leaves when that was imported.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from openreg_runtime import openreg
from openreg_runtime._plugins import is_installed


class _AfterImport(MetaPathFinder):
    """Lets the other finders find one module, and has a function called when it was executed."""

    def __init__(self, name: str, function: Callable[[], None]) -> None:
        self._name = name
        self._function = function

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_tell(module: ModuleType) -> None:
                execute(module)
                self._function()

            spec.loader.exec_module = execute_and_tell  # type: ignore[method-assign]
        return spec


def _after_import(name: str, function: Callable[[], None]) -> None:
    """Calls ``function`` now if the module is imported already, else right after it was."""
    if name in sys.modules:
        function()
    else:
        sys.meta_path.insert(0, _AfterImport(name, function))


def _register_device_interface() -> None:
    from openreg_runtime.openreg import _device_interface

    _device_interface.register()


def _register_random_states() -> None:
    """Lets compiled graphs with checkpoints replay random numbers (see ``_get_generator``)."""
    from torch._functorch._aot_autograd.utils import register_graphsafe_rng_device_type

    register_graphsafe_rng_device_type("openreg")


def _refuse_inductor() -> None:
    """Has Inductor say which package generates code, where that is not installed."""
    if not is_installed("openreg_compile"):
        from openreg_runtime.openreg import _inductor

        _inductor.refuse()


def register_with_compiler() -> None:
    """Arranges the registrations; none imports anything now."""
    # They give the same answer as long as the process lives, so compiled code may contain it.
    for function in (openreg.is_available, openreg.device_count):
        function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    _after_import("torch._dynamo", _register_device_interface)
    _after_import("torch._functorch._aot_autograd.utils", _register_random_states)
    _after_import("torch._inductor.codegen.common", _refuse_inductor)
