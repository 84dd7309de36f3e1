# SPDX-License-Identifier: BSD-3-Clause
"""The names of a project, the checks of what a user typed for them, and the substitution in texts and paths.

The tutorial's device is called pocket. Its name stands in every name that a backend needs, in six spellings.
"""

from __future__ import annotations

import keyword
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from ..device_types import PYTORCH_DEVICES

# The order matters where one spelling begins with another.
_SPELLINGS = re.compile("torch-pocket|torch_pocket|pocket|Pocket|POCKET|pccl")

# Words of C++, and names that gcc defines.
_WORDS_OF_CPP = """
    alignas alignof and_eq asm atomic auto bitand bitor bool case catch char class compl concept const consteval
    constexpr constinit decltype default delete do double enum explicit export extern false float friend goto inline
    int linux long mutable namespace new noexcept nullptr operator private protected public register requires short
    signed sizeof static struct switch template this throw true typedef typeid typename union unix unsigned using
    virtual void volatile wchar_t xor xor_eq
"""
# Names of modules that a package must not replace, and a word in the names of the doctor's own project.
_TAKEN_MODULES = {*sys.stdlib_module_names, "torch"}
_OWN_WORD = "openreg"

# Prints where PyTorch uses a name: as an attribute of one of these, which a backend's name becomes, too.
_ASK_TORCH = """
import sys
import torch
name = sys.argv[1]
owners = (torch, torch.Tensor, torch.nn.Module, torch.UntypedStorage, torch.nn.utils.rnn.PackedSequence)
forms = (name, "is_" + name)
found = [f"{owner.__name__}.{form}" for owner in owners for form in forms if hasattr(owner, form)]
print(*found[:1])
"""


class ProjectError(Exception):
    """An error for a project that cannot be written or updated. Its text says why, and what to do."""


@dataclass(frozen=True)
class Names:
    """The names of one backend."""

    package: str  # the distribution, such as "torch-aurora"
    device: str  # such as "aurora"

    @property
    def module(self) -> str:
        """The import package."""
        return re.sub(r"[-.]+", "_", self.package).lower()

    def substituted(self, text: str) -> str:
        """Returns a text or path of the tutorial with these names for the tutorial's."""
        spellings = {
            "torch-pocket": self.package,
            "torch_pocket": self.module,
            "pocket": self.device,
            "Pocket": "".join(part.capitalize() for part in self.device.split("_")),
            "POCKET": self.device.upper(),
            "pccl": f"{self.device}_ccl",  # the process group; the letters before "ccl" could be those of another
        }
        return _SPELLINGS.sub(lambda match: spellings[match.group()], text)


def check_package(package: str) -> None:
    """Raises ProjectError unless a package may have this name."""
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", package):
        raise ProjectError(
            f"{package!r} is not the name of a distribution: write letters, digits, and between them -, _ or ., such "
            "as torch-aurora"
        )
    module = Names(package, "").module
    if not module.isidentifier() or keyword.iskeyword(module):
        raise ProjectError(
            f"{package!r} has no module to import: {module!r} is no name in Python; begin with a letter, such as "
            "torch-aurora"
        )
    if module in _TAKEN_MODULES or _OWN_WORD in module.split("_"):
        raise ProjectError(
            f"{package!r} would replace the module {module!r}; choose another name, such as torch-aurora"
        )


def check_device(device: str, code: Iterable[str]) -> None:
    """Raises ProjectError unless a device may have this name, in a project with this code."""
    if device in (*PYTORCH_DEVICES, "privateuseone"):
        raise ProjectError(f"{device!r} is a device of PyTorch itself; choose another name")
    if not re.fullmatch(r"[a-z]+(_[a-z]+)*", device):
        raise ProjectError(
            f"{device!r} is not the name of a device: PyTorch takes small letters, and _ between them, such as aurora"
        )
    if keyword.iskeyword(device) or keyword.issoftkeyword(device) or device in _WORDS_OF_CPP.split():
        raise ProjectError(f"{device!r} is a word of Python or C++; choose another name")
    words = set().union(*(re.findall(r"[A-Za-z_]\w*", text) for text in code))
    if device in words:
        raise ProjectError(f"{device!r} is a word of the project's own code; choose another name")


def check_with_torch(device: str) -> str:
    """Raises ProjectError if the installed torch uses the name already. Returns what could not be checked, or ""."""
    unknown = f"whether PyTorch uses the name {device!r} already was not checked"
    if find_spec("torch") is None:
        return f"torch is not installed: {unknown}"
    command = [sys.executable, "-c", _ASK_TORCH, device]
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}  # an installed backend adds names of its own
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"torch cannot be imported: {unknown}"
    if user := done.stdout.strip():
        raise ProjectError(f"{device!r} is a name of PyTorch already: {user}; choose another name")
    return ""
