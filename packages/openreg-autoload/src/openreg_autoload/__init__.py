# SPDX-License-Identifier: BSD-3-Clause
"""Brings up the openreg device during ``import torch``.

PyTorch calls :func:`autoload`, the entry point of the group ``torch.backends``, as one of the last
steps of its own import (``torch/__init__.py``), unless ``TORCH_DEVICE_BACKEND_AUTOLOAD=0``. An
exception ends that import; PyTorch shows it together with the switch.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings

__all__ = ["autoload"]

_RUNTIME = "openreg_runtime"
_INSTALL_HINT = (
    "openreg-autoload is installed, but openreg-runtime is not, so torch has no device 'openreg'. "
    "Install it with: pip install openreg-runtime (or everything: pip install openreg-meta); "
    "or remove this message with: pip uninstall openreg-autoload"
)
_REINSTALL = (
    ". Reinstall it: pip install --force-reinstall --no-deps openreg-runtime; or go on without the device: "
    "pip uninstall openreg-autoload"
)


def autoload() -> None:
    """Imports openreg_runtime, and has it import the packages that announce themselves (``load_plugins()``).

    Raises ImportError that names the package that failed and its root cause; its own exception is chained. Without
    openreg-runtime it warns and does nothing.
    """
    if importlib.util.find_spec(_RUNTIME) is None:
        warnings.warn(_INSTALL_HINT, RuntimeWarning, stacklevel=2)
        return
    try:
        __import__(_RUNTIME)
    except (Exception, SystemExit) as error:
        # The runtime says what to do where it refuses; the import system fills in `name`.
        advice = "" if isinstance(error, ImportError) and error.name is None else _REINSTALL
        raise ImportError(f"openreg-runtime failed to load: {type(error).__name__}: {error}{advice}") from error
    sys.modules[_RUNTIME].load_plugins()
