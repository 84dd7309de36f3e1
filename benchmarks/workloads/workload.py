# SPDX-License-Identifier: BSD-3-Clause
"""What a workload is."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

Call = Callable[[], object]


@dataclass(frozen=True)
class Workload:
    """A function that is called over and over on a device, and timed.

    `prepare` takes the device and gives the function. With `until_return` the time is that of the call alone,
    otherwise that of the work: the device is synchronized before and after a block of calls. `disturb` runs on the
    host before each block and is not timed. Without `on_cpu` the CPU has nothing like it.
    """

    name: str
    prepare: Callable[[torch.device], Call]
    until_return: bool = False
    disturb: Callable[[torch.device], object] | None = None
    on_cpu: bool = True
