# SPDX-License-Identifier: BSD-3-Clause
"""Brings up the openreg device during ``import torch``.

PyTorch calls :func:`autoload`, the entry point of the group ``torch.backends``, as one of the last
steps of its own import (``torch/__init__.py``), unless ``TORCH_DEVICE_BACKEND_AUTOLOAD=0``. An
exception ends that import; PyTorch shows it together with the switch.
"""

from __future__ import annotations

import importlib.util
import warnings

from openreg_autoload._plugins import RUNTIME, import_plugins, import_runtime, is_being_imported

__all__ = ["autoload"]

_INSTALL_HINT = (
    "openreg-autoload is installed, but openreg-runtime is not, so torch has no device 'openreg'. "
    "Install it with: pip install openreg-runtime (or everything: pip install openreg-meta); "
    "or remove this message with: pip uninstall openreg-autoload"
)


def autoload() -> None:
    """Imports openreg_runtime, then every module announced in the group ``openreg.plugins``.

    Raises ImportError that names the plug-in that failed and its root cause; the plug-in's own exception is
    chained. A plug-in compiled for another ABI or torch is refused before it is imported. Without
    openreg-runtime it warns and does nothing.
    """
    if importlib.util.find_spec(RUNTIME) is None:
        warnings.warn(_INSTALL_HINT, RuntimeWarning, stacklevel=2)
        return
    runtime = import_runtime()
    if is_being_imported(RUNTIME):
        # The program imported an openreg package before torch, so the runtime itself has just begun
        # to import torch. The other packages need a runtime that is complete.
        runtime._after_startup.append(_import_remaining_plugins)
    else:
        import_plugins()


def _import_remaining_plugins() -> None:
    """Runs as the last step of the runtime's start-up, which no broken plug-in may spoil."""
    try:
        import_plugins()
    except ImportError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)
