# SPDX-License-Identifier: BSD-3-Clause
"""Makes the options of a process group copyable, as ``torch.distributed.split_group`` requires.

PyTorch copies the options of the accelerator's backend and passes the copy to every backend of the group, also to Gloo
for the CPU. So they are Gloo's options, in a class that can be copied.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed
from torch.distributed import ProcessGroupGloo

_Options: Any = ProcessGroupGloo._Options  # type: ignore[attr-defined]  # stubs give it another name


class Options(_Options):  # type: ignore[misc]  # PyTorch's annotations lack the class
    """Gloo's options with ``copy.deepcopy()``."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Options:
        """Returns a copy that uses the same network interfaces."""
        return options_of(self)


def options_of(options: Any) -> Options:
    """Returns a copy of Gloo's options."""
    copy = Options()
    copy._timeout = options._timeout
    copy._devices = options._devices
    copy._threads = options._threads
    copy.global_ranks_in_group = options.global_ranks_in_group
    copy.group_name = options.group_name
    return copy


def options_to_split(options: Any) -> Options:
    """Returns a copy of the transport's options for ``split_group``.

    Also sets the global ranks of the default group's Gloo backend for the CPU, because PyTorch splits that next.
    Without them Gloo reads past the end of an empty list, except in the first group of a process.
    """
    world = distributed.group.WORLD
    if world is not None:
        try:
            for_cpu: Any = world._get_backend(torch.device("cpu"))
        except RuntimeError:
            for_cpu = None  # The group has no backend for the CPU.
        if isinstance(for_cpu, ProcessGroupGloo):
            set_global_ranks(for_cpu, [])
    return options_of(options)


def set_global_ranks(transport: Any, ranks: list[int]) -> None:
    """Sets the global ranks of a Gloo group that has none. An empty list stands for all ranks, the default group."""
    if not transport.options.global_ranks_in_group:
        transport.options.global_ranks_in_group = ranks or list(range(transport.size()))
