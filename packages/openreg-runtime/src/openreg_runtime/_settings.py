# SPDX-License-Identifier: BSD-3-Clause
"""Warns of environment variables that look like settings of the device and change nothing.

A setting such as ``OPENREG_SANITIZER=1`` asks for a check. If its name has a typo, or the package that reads it is not
installed, the program runs unchecked, and looks as if it had passed.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from difflib import get_close_matches

from openreg_runtime import _providers
from openreg_runtime._plugins import is_importable

PREFIX = "OPENREG_"

# The similarity, as difflib measures it, from which a name is taken for a typo. Names are compared without the prefix.
_TYPO = 0.8


def warn_of_settings_without_effect() -> None:
    """Warns of each variable ``OPENREG_...`` that no installed package reads, with the reason and the remedy."""
    for text in _without_effect():
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _without_effect() -> Iterator[str]:
    owners = _providers.settings()
    for name in sorted(variable for variable in os.environ if variable.startswith(PREFIX)):
        owner = owners.get(name)
        if owner is None:
            known = {setting.removeprefix(PREFIX): setting for setting in owners}
            close = get_close_matches(name.removeprefix(PREFIX), known, 1, _TYPO)
            if close and not _is_declared(name):
                yield (
                    f"{name} has no effect: openreg has no such environment variable. "
                    f"Write {known[close[0]]}, or unset {name}"
                )
        elif not is_importable(owner.replace("-", "_")):
            yield (
                f"{name} has no effect: it is a setting of {owner}, which is not installed. "
                f"Install it with: pip install {owner}, or unset {name}"
            )


def _is_declared(name: str) -> bool:
    """Returns True if an installed package, of any project, declares the setting to the doctor."""
    try:
        from openreg_doctor import backend  # here, because it reads the declarations of all packages
    except ImportError:  # pip was told to install no dependencies
        return False
    backends, _ = backend.declared()
    return any(setting.name == name for item in backends for setting in item.settings)
