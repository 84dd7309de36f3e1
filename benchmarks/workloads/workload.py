# SPDX-License-Identifier: BSD-3-Clause
"""Defines the class of all workloads."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

Call = Callable[[], object]


@dataclass(frozen=True)
class Workload:
    """A function that is called repeatedly on a device, and timed.

    `prepare` takes the device and returns the function. With `until_return`, the time is that of the call alone.
    Otherwise it includes the tasks, because the device is synchronized before and after a block of calls. `disturb` is
    called before each block, and is not timed. `calls` is the length of a block; 0 if it follows from the time of a
    call. `on_cpu` is False if the CPU has no equivalent.
    """

    name: str
    prepare: Callable[[torch.device], Call]
    until_return: bool = False
    disturb: Callable[[torch.device], object] | None = None
    calls: int = 0
    on_cpu: bool = True
