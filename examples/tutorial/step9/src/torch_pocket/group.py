# SPDX-License-Identifier: BSD-3-Clause
"""Registers the process group with torch.distributed: its name, its device, and a function that makes one."""

from torch.distributed import Backend, PrefixStore, ProcessGroupGloo

from torch_pocket import _C


def create(asked, options) -> _C.Group:
    """Returns the group of one process. Waits for all other processes, at most for the timeout."""
    store = PrefixStore("pccl", asked.store)
    return _C.Group(ProcessGroupGloo(store, asked.group_rank, asked.group_size, asked.timeout))


# A list, because PyTorch would take a string letter by letter.
Backend.register_backend("pccl", create, extended_api=True, devices=["pocket"])
