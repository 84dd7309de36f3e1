# SPDX-License-Identifier: BSD-3-Clause
"""Checks the number of devices and their properties."""

from __future__ import annotations

from collections.abc import Iterator

from ..examination import Examination
from ..finding import Finding

TITLE = "Devices"
POSITION = 70


def check(examination: Examination) -> Iterator[Finding]:
    """Yields findings about the number and properties of devices, as the module torch.<device> returns them."""
    step = examination.probe("properties")
    if step is None:
        return
    if not step.done:
        yield Finding(
            "device.count",
            "problem",
            f"the number and properties of devices cannot be read: {step.text}",
            "programs cannot choose a device",
            "resolve the error shown",
        )
        return
    found = step.value
    if found["available"] is False or found["count"] == 0:
        yield Finding(
            "device.count",
            "problem",
            f"is_available() is {found['available']}, device_count() is {found['count']}",
            "programs run without the device",
            "correct the settings and resolve the errors listed above",
        )
    elif found["count"] > 0:
        yield Finding("device.count", "ok", f"{found['count']} available")
    for index, properties in enumerate(found["devices"]):
        text = ", ".join(f"{key} {value}" for key, value in properties.items())
        yield Finding(f"device.{index}", "ok", f"{examination.order.device}:{index}: {text}")
