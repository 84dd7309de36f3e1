# SPDX-License-Identifier: BSD-3-Clause
"""Registers the openreg device during ``import torch``.

PyTorch calls :func:`autoload`, an entry point of the group ``torch.backends``, in one of the last steps of its import
(``torch/__init__.py``), unless ``TORCH_DEVICE_BACKEND_AUTOLOAD=0``. An exception ends the import. PyTorch's message
then names that variable.
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
    """Imports openreg_runtime, and imports the installed plug-ins by its ``load_plugins()``.

    Raises ImportError with the name of the package that failed and the root cause; the package's exception is chained.
    If openreg-runtime is not installed, only warns.
    """
    if importlib.util.find_spec(_RUNTIME) is None:
        warnings.warn(_INSTALL_HINT, RuntimeWarning, stacklevel=2)
        return
    try:
        __import__(_RUNTIME)
    except (Exception, SystemExit) as error:
        # Python sets `name`. An ImportError without it comes from the runtime, whose message contains the remedy.
        advice = "" if isinstance(error, ImportError) and error.name is None else _REINSTALL
        raise ImportError(f"openreg-runtime failed to load: {type(error).__name__}: {error}{advice}") from error
    sys.modules[_RUNTIME].load_plugins()
