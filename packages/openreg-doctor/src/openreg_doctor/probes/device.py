# SPDX-License-Identifier: BSD-3-Clause
"""The device of the backend that a child process examines."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from .request import CannotCheck


def has_kernel(operator: str, key: str = "PrivateUse1") -> bool:
    """Returns True if a kernel is registered for the operator and exactly this dispatch key."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator, key)


@dataclass(frozen=True)
class ProbedDevice:
    """The device type of the PrivateUse1 backend in this process, which exercises use."""

    name: str
    module: ModuleType | None  # torch.<name>; None if it does not exist

    @staticmethod
    def find(name: str) -> ProbedDevice | None:
        """Returns the device type of this name; None if the dispatch key PrivateUse1 has another name."""
        if torch._C._get_privateuse1_backend_name() != name:
            return None
        return ProbedDevice(name, getattr(torch, name, None))

    @property
    def first(self) -> torch.device:
        """Returns the device with index 0."""
        return torch.device(self.name, 0)

    def initialize(self) -> bool:
        """Initializes the device as PyTorch does before the first operation, by _lazy_init() or init() of its module.

        Raises CannotCheck if the module has neither.
        """
        start = getattr(self.module, "_lazy_init", None) or getattr(self.module, "init", None)
        if start is None:
            raise CannotCheck("the device's module has neither _lazy_init nor init")
        start()
        return True

    def tensor(self, count: int = 2) -> torch.Tensor:
        """Returns a float32 tensor on the device with index 0. Raises CannotCheck if operators for that are missing."""
        if not (has_kernel("aten::empty.memory_format") and has_kernel("aten::_copy_from")):
            raise CannotCheck("needs operators that make and fill tensors")
        return torch.arange(1, count + 1, dtype=torch.float32).to(self.first)

    def storage(self, size: int = 8) -> torch.UntypedStorage:
        """Returns memory of the device with index 0. ``size`` is in bytes."""
        return torch.UntypedStorage(size, device=self.first)  # type: ignore[no-untyped-call]

    def describe(self) -> dict[str, Any]:
        """Returns ``available``, ``count`` and ``devices``, the properties of each, from the device's module.

        Without functions for that, ``available`` is None, ``count`` is -1, and ``devices`` is empty.
        """
        module: Any = self.module
        count = int(module.device_count()) if hasattr(module, "device_count") else -1
        result: dict[str, Any] = {
            "available": bool(module.is_available()) if hasattr(module, "is_available") else None,
            "count": count,
            "devices": [],
        }
        if hasattr(module, "get_device_properties"):
            for index in range(count):
                properties = module.get_device_properties(index)
                names = getattr(properties, "_fields", None) or [
                    name for name in dir(properties) if not name.startswith("_")
                ]
                values = {name: getattr(properties, name) for name in names}
                result["devices"].append({k: v for k, v in values.items() if isinstance(v, int | float | str)})
        return result
