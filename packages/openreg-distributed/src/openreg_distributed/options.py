# SPDX-License-Identifier: BSD-3-Clause
"""The options of a process group, in the form in which ``torch.distributed.split_group`` needs them.

PyTorch copies the options of the accelerator's backend and hands the copy to every backend of the group, Gloo's for the
CPU among them. So they are Gloo's, which it cannot copy by itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed
from torch.distributed import ProcessGroupGloo

_Options: Any = ProcessGroupGloo._Options  # type: ignore[attr-defined]  # stubs give it another name


class Options(_Options):  # type: ignore[misc]  # which PyTorch's annotations do not know
    """Gloo's options, which can be copied."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Options:
        """A copy that uses the same network interfaces."""
        return options_of(self)


def options_of(options: Any) -> Options:
    """A copy of any of Gloo's options."""
    copy = Options()
    copy._timeout = options._timeout
    copy._devices = options._devices
    copy._threads = options._threads
    copy.global_ranks_in_group = options.global_ranks_in_group
    copy.group_name = options.group_name
    return copy


def options_to_split(options: Any) -> Options:
    """What ``split_group`` is given by the process group: a copy of its transport's options.

    Gloo knows the ranks of the default group only in the first group of the process; in others it reads past the end of
    an empty list when it is split. The default group's Gloo for the CPU, which is split next, is told here.
    """
    world = distributed.group.WORLD
    if world is not None:
        try:
            for_cpu: Any = world._get_backend(torch.device("cpu"))
        except RuntimeError:
            for_cpu = None  # the group serves the device alone
        if isinstance(for_cpu, ProcessGroupGloo):
            tell_ranks(for_cpu, [])
    return options_of(options)


def tell_ranks(transport: Any, ranks: list[int]) -> None:
    """Tells Gloo the global ranks of its group; none stands for the default group, which has all of them."""
    if not transport.options.global_ranks_in_group:
        transport.options.global_ranks_in_group = ranks or list(range(transport.size()))
