# SPDX-License-Identifier: BSD-3-Clause
"""Functions that ``torch.load`` calls for the device of a saved location (source: ``torch/serialization.py``)."""

from __future__ import annotations

from openreg_runtime.openreg._device import DeviceLike, unchecked_device_index


def _get_device_index(device: DeviceLike, optional: bool = False) -> int:
    """Index of a location; without a number, the current device.

    PyTorch itself checks the range, and then names ``map_location``.
    """
    if device is None and not optional:
        raise ValueError("expected a device of type 'openreg', got None")
    return unchecked_device_index(device)
