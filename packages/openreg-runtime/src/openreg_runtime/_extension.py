# SPDX-License-Identifier: BSD-3-Clause
"""How the other packages add their names to ``torch.openreg``, and what is said where they are absent."""

from __future__ import annotations

import sys
from typing import Any

from openreg_runtime import _providers, openreg
from openreg_runtime._plugins import require_matching_build

# Names that have a stand-in here, because PyTorch looks for them with hasattr() and then hides our message.
_STAND_INS = {"get_amp_supported_dtype"}


def missing_name(name: str) -> AttributeError:
    """The error for a name that ``torch.openreg`` does not have (now)."""
    if (provider := _providers.of_name(name)) is not None:
        return AttributeError(_providers.missing(f"torch.openreg.{name}", provider))
    if (found := _providers.of_installed(name)) is not None:
        distribution, module = found
        return AttributeError(
            f"torch.openreg.{name} comes with the package {distribution}, which is installed and not imported. "
            f"Import it with: import {module}"
        )
    return AttributeError(f"module 'torch.openreg' has no attribute {name!r}")


def extend(name: str, value: Any) -> None:
    """Adds ``value`` to ``torch.openreg`` under ``name``: the one way in which another package extends the module.

    Raises ValueError if the name is taken, so that two packages cannot replace each other's functions unnoticed, and
    ImportError if the package that calls it was compiled for another runtime or torch. The package declares the name in
    its ``pyproject.toml``, in the group of entry points ``openreg.names``: ``name = "module:attribute"``.
    """
    require_matching_build(sys._getframe(1).f_globals.get("__name__", "__main__"))
    if name in vars(openreg) and name not in _STAND_INS:
        raise ValueError(f"torch.openreg.{name} already exists; a package may only add names to torch.openreg")
    _STAND_INS.discard(name)
    setattr(openreg, name, value)
