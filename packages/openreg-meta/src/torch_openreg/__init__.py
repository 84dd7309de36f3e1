# SPDX-License-Identifier: BSD-3-Clause
"""Imports the openreg backend under the name of PyTorch's example backend, for code that imports that name.

``import torch_openreg`` registers the device, its operators and its autocast rules, also without openreg-autoload.
``torch_openreg.openreg`` is ``torch.openreg``.
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import version

__all__ = ["__version__", "openreg"]


def _import(name: str) -> None:
    """Imports a package. Raises ImportError with the remedy if it is not installed."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        package = name.replace("_", "-")
        raise ImportError(
            f"torch_openreg consists of several packages, and {package} is not installed. "
            f"Install it with: pip install {package}",
            name=name,
        ) from error


# True unless Python runs this package as `python -m torch_openreg`. It imports the package before it runs __main__.py,
# and the doctor must also run if the imports below fail. openreg_runtime._command_line has the same test, but cannot be
# called without importing the runtime.
if not (sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].removeprefix("-m") == __name__):
    __version__ = version("openreg-meta")

    for _name in ("openreg_runtime", "openreg_ops", "openreg_amp"):
        _import(_name)

    # The submodule openreg.py replaces itself in sys.modules by torch.openreg.
    from torch_openreg import openreg
