# SPDX-License-Identifier: BSD-3-Clause
"""The device openreg for Lightning, which knows other devices by name only."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch.accelerators import Accelerator


class OpenregAccelerator(Accelerator):
    """Tells Lightning what it asks of a device."""

    def setup_device(self, device: torch.device) -> None:
        """Makes the device the current one."""
        torch.accelerator.set_device_index(device)

    def get_device_stats(self, device: torch.device) -> dict[str, Any]:
        """Returns the statistics of the device's allocator, for Lightning's DeviceStatsMonitor."""
        return torch.accelerator.memory_stats(device)

    def teardown(self) -> None:
        """Gives unused memory back to the driver."""
        torch.accelerator.empty_cache()

    @staticmethod
    def parse_devices(devices: int) -> list[torch.device]:
        """Returns the first devices, so many as Lightning's argument `devices` says."""
        return [torch.device("openreg", index) for index in range(devices)]

    @staticmethod
    def get_parallel_devices(devices: list[torch.device]) -> list[torch.device]:
        """Returns the devices that parse_devices() returned."""
        return devices

    @staticmethod
    def auto_device_count() -> int:
        """Returns the number of devices for `devices="auto"`."""
        return torch.accelerator.device_count()

    @staticmethod
    def is_available() -> bool:
        """Returns True if the process has a device."""
        return torch.accelerator.is_available()

    @staticmethod
    def name() -> str:
        """Returns the name of the device."""
        return "openreg"
