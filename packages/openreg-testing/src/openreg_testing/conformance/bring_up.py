# SPDX-License-Identifier: BSD-3-Clause
"""Prepares a process to examine a device: settings, the modules that bring it up, and that it is there."""

from __future__ import annotations

import importlib
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .manifest import Manifest


class NoDeviceError(Exception):
    """The device is not there; the text says what is."""


@dataclass(frozen=True)
class Setup:
    """The device under examination. Run in a worker, it prepares it."""

    device: str
    imports: tuple[str, ...] = ()
    manifest: Manifest = field(default_factory=Manifest)

    def run(self) -> dict[str, Any]:
        """What the process found: versions and the number of devices. Raises NoDeviceError."""
        warnings.simplefilter("ignore")
        if self.manifest.path:
            sys.path.insert(0, str(Path(self.manifest.path).resolve().parent))
        import torch

        for name in self.imports:
            importlib.import_module(name)
        torch.set_num_threads(1)
        torch.set_warn_always(True)  # else a warning that PyTorch gives once is given on one of the devices only
        count = 1 if self.device == "cpu" else _count(self.device, self.imports)
        from .operators import subject

        subject.examine_device(self.device, self.manifest)
        return {"torch": torch.__version__, "devices": count}


def _count(device: str, imports: tuple[str, ...]) -> int:
    """The number of devices. Raises NoDeviceError where there are none."""
    import torch

    found = torch._C._get_privateuse1_backend_name()
    how = f"after importing {', '.join(imports)}" if imports else "after `import torch`"
    accelerator = torch.accelerator.current_accelerator()
    present = accelerator.type if accelerator is not None else ""
    if device not in (found, present):
        state = "no PrivateUse1 backend is loaded" if found == "privateuseone" else f"the loaded backend is {found!r}"
        raise NoDeviceError(
            f"there is no device {device!r}: {how}, {state}. Give --device the backend's name and --import the module "
            "that brings it up"
        )
    module: Any = getattr(torch, device, None)
    count = int(module.device_count()) if hasattr(module, "device_count") else torch.accelerator.device_count()
    if not count:
        raise NoDeviceError(f"the backend {device!r} is loaded and reports no device: device_count() is 0")
    return count
