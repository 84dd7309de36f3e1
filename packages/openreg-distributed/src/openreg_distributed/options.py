# SPDX-License-Identifier: BSD-3-Clause
"""The options of a process group, in the form in which ``torch.distributed.split_group`` needs them.

PyTorch copies the options of the accelerator's backend and hands the copy to every backend of the group, Gloo's for the
CPU among them. So they are Gloo's, which it cannot copy by itself.
"""

from __future__ import annotations

from typing import Any

from torch.distributed import ProcessGroupGloo

_Options: Any = ProcessGroupGloo._Options  # type: ignore[attr-defined]  # stubs give it another name


class Options(_Options):
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
