# SPDX-License-Identifier: BSD-3-Clause
"""Contains the function that ``torch.load`` calls for the device of a saved location (``torch/serialization.py``)."""

from __future__ import annotations

from openreg_runtime.openreg._device import DeviceLike, unchecked_device_index


def _get_device_index(device: DeviceLike, optional: bool = False) -> int:
    """Returns the device index of a location, or of the current device if the location has no index.

    Does not check the range, because PyTorch does that and names ``map_location`` in its error.
    """
    return unchecked_device_index(device, optional)
