# SPDX-License-Identifier: BSD-3-Clause
"""How generated Python speaks of devices and streams (source: ``DeviceOpOverrides`` of Inductor)."""

from __future__ import annotations

from torch._inductor.codegen.common import DeviceOpOverrides


class DeviceOps(DeviceOpOverrides):
    """Lines of Python; those of C++ stay unwritten, because the C++ wrapper is refused (``refusal.py``)."""

    def import_get_raw_stream_as(self, name: str) -> str:
        """Defines a function from a device's number to the handle of its current stream."""
        return f"def {name}(index):\n    return torch.openreg.current_stream(index).native_handle"

    def set_device(self, device_idx: int) -> str:
        """Makes a device the current one."""
        return f"torch.openreg.set_device({device_idx})"

    def synchronize(self) -> str:
        """Waits for the current device."""
        return "torch.openreg.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        """A context in which a device is the current one."""
        return f"torch.openreg.device({device_idx})"
