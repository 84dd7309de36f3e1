# SPDX-License-Identifier: BSD-3-Clause
"""Adds names of other packages to ``torch.openreg``."""

from __future__ import annotations

import sys
from typing import Any

from openreg_runtime import openreg
from openreg_runtime._plugins import require_matching_build

# Names of other packages for which the runtime has a substitute that reports the missing package. PyTorch tests for
# these names with hasattr(), so the error of missing_name() in _providers.py would be lost. extend() replaces a
# substitute once.
_STAND_INS = {"get_amp_supported_dtype"}


def extend(name: str, value: Any) -> None:
    """Adds ``value`` to ``torch.openreg`` under ``name``. Other packages extend the module only by this function.

    The package declares the name in its ``pyproject.toml``, by the entry point ``name = "module:attribute"`` of the
    group ``openreg.names``. Raises ValueError if the name exists, because two packages must not replace each other's
    functions. Raises ImportError if the calling package was compiled for another runtime or torch.
    """
    require_matching_build(sys._getframe(1).f_globals.get("__name__", "__main__"))
    if name in vars(openreg) and name not in _STAND_INS:
        raise ValueError(f"torch.openreg.{name} already exists; a package may only add names to torch.openreg")
    _STAND_INS.discard(name)
    setattr(openreg, name, value)
