# SPDX-License-Identifier: BSD-3-Clause
"""The complete openreg backend under the name that code written for PyTorch's example imports.

``import torch_openreg`` brings up the device and its operators, whether or not they load by
themselves; ``torch_openreg.openreg`` is ``torch.openreg``.
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import version

__all__ = ["__version__", "openreg"]


def _import(name: str) -> None:
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


# As in openreg_runtime._command_line, which cannot be called without importing the runtime: Python imports this package
# before it runs torch_openreg.__main__, and the doctor has to run where the imports below fail.
if not (sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].removeprefix("-m") == __name__):
    __version__ = version("openreg-meta")

    for _name in ("openreg_runtime", "openreg_ops", "openreg_amp"):
        _import(_name)

    from torch_openreg import openreg  # is torch.openreg, which the runtime has made
