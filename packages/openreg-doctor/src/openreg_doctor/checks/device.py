# SPDX-License-Identifier: BSD-3-Clause
"""The devices: how many, and what they are."""

from __future__ import annotations

from collections.abc import Iterator

from ..examination import Examination
from ..finding import Finding

TITLE = "Devices"
POSITION = 70


def check(examination: Examination) -> Iterator[Finding]:
    """Number and properties, as the device's module gives them."""
    step = examination.probe("properties")
    if step is None:
        return
    if not step.done:
        yield Finding(
            "device.count",
            "problem",
            f"the devices cannot be described: {step.text}",
            "programs cannot choose a device",
            "see the cause",
        )
        return
    found = step.value
    if found["available"] is False or found["count"] == 0:
        yield Finding(
            "device.count",
            "problem",
            f"is_available() is {found['available']}, device_count() is {found['count']}",
            "programs go on without the device",
            "see the settings and the cause above",
        )
    elif found["count"] > 0:
        yield Finding("device.count", "ok", f"{found['count']} available")
    for index, properties in enumerate(found["devices"]):
        text = ", ".join(f"{key} {value}" for key, value in properties.items())
        yield Finding(f"device.{index}", "ok", f"{examination.order.device}:{index}: {text}")
