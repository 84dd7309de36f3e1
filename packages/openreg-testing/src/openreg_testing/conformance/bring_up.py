# SPDX-License-Identifier: BSD-3-Clause
"""Prepares a worker process to test a device: imports the backend, and checks that the device exists."""

from __future__ import annotations

import importlib
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .manifest import Manifest


class NoDeviceError(Exception):
    """An error for a device that does not exist; the message names the loaded backend."""


@dataclass(frozen=True)
class Setup:
    """A picklable object whose `run()` prepares a worker process for the device under test."""

    device: str
    imports: tuple[str, ...] = ()  # the modules that register the backend
    manifest: Manifest = field(default_factory=Manifest)  # the file of the backend's expected failures

    def run(self) -> dict[str, Any]:
        """Returns the version and the commit of torch. Raises NoDeviceError if there is no device."""
        warnings.simplefilter("ignore")
        if self.manifest.path:  # the manifest may name Python modules beside it
            sys.path.insert(0, str(Path(self.manifest.path).resolve().parent))
        import torch

        for name in self.imports:
            importlib.import_module(name)
        torch.set_num_threads(1)
        torch.set_warn_always(
            True
        )  # otherwise a once-only warning would appear on the CPU or on the device, not on both
        if self.device != "cpu":
            _require(self.device, self.imports)
        from .operators import device_under_test

        device_under_test.set_device(self.device, self.manifest)
        return {"torch": torch.__version__, "commit": torch.version.git_version or ""}


def _require(device: str, imports: tuple[str, ...]) -> None:
    """Raises NoDeviceError if there is no device."""
    import torch

    backend = torch._C._get_privateuse1_backend_name()
    after = f"after importing {', '.join(imports)}" if imports else "after `import torch`"
    accelerator = torch.accelerator.current_accelerator()
    current = accelerator.type if accelerator is not None else ""
    if device not in (backend, current):
        unnamed = backend == "privateuseone"
        state = "no PrivateUse1 backend is loaded" if unnamed else f"the loaded backend is {backend!r}"
        raise NoDeviceError(
            f"there is no device {device!r}: {after}, {state}; pass the name of the backend as --device and the module "
            "that registers it as --import"
        )
    module: Any = getattr(torch, device, None)
    count = int(module.device_count()) if hasattr(module, "device_count") else torch.accelerator.device_count()
    if not count:
        raise NoDeviceError(
            f"the backend {device!r} is loaded, but its device_count() returns 0; check the driver and the settings "
            "that hide devices"
        )
