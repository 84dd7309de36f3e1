# SPDX-License-Identifier: BSD-3-Clause
"""Registers the openreg device during ``import torch``.

PyTorch calls :func:`autoload`, an entry point of the group ``torch.backends``, in one of the last steps of its import
(``torch/__init__.py``), unless ``TORCH_DEVICE_BACKEND_AUTOLOAD=0``. An exception ends the import. PyTorch's message
then names that variable.

PyTorch calls the entry points of all packages, and a process has room for one backend for PrivateUse1: a second one
ends the import. That backend also becomes the current accelerator. So a simulated device stays out of a process with
another backend, unless ``OPENREG_AUTOLOAD=1`` asks for it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from importlib.metadata import EntryPoint, entry_points

__all__ = ["autoload"]

_RUNTIME = "openreg_runtime"
_SETTING = "OPENREG_AUTOLOAD"
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
    If openreg-runtime is not installed, only warns. Does so, too, if torch also loads another backend and no setting
    asks for openreg.
    """
    if not _is_wanted():
        return
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


def _is_wanted() -> bool:
    """Returns True if the setting asks for the device, or if there is no setting and torch loads no other backend.

    Warns if another backend is the reason. Raises ImportError for a value of the setting that is not accepted.
    """
    value = os.environ.get(_SETTING, "")
    if value not in ("", "0", "1"):
        raise ImportError(
            f"environment variable {_SETTING}={value!r} is not accepted: it has to be 1 (load the device openreg with "
            "torch) or 0 (do not); correct it or unset it, and start the process again"
        )
    if value:
        return value == "1"
    others = [point for point in entry_points(group="torch.backends") if not point.module.startswith("openreg_")]
    if others:
        warnings.warn(
            "openreg-autoload did not load the device openreg, because torch also loads "
            f"{', '.join(map(_described, others))}, and a process has room for one PrivateUse1 backend. To use "
            f"openreg, set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import torch_openreg; or set {_SETTING}=1 if the other "
            f"one is no PrivateUse1 backend. To use the other one without this message, set {_SETTING}=0",
            RuntimeWarning,
            stacklevel=3,
        )
    return not others


def _described(point: EntryPoint) -> str:
    """Returns the name of an entry point and the package that announces it."""
    return f"{point.name} (of {point.dist.name})" if point.dist is not None else point.name
