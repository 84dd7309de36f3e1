# SPDX-License-Identifier: BSD-3-Clause
"""Registers the process group ``occl``, the backend of ``torch.distributed`` for openreg devices."""

from __future__ import annotations

import os
from typing import Any

from torch import distributed
from torch.distributed.distributed_c10d import PrefixStore

from openreg_distributed._C import ProcessGroupOccl
from openreg_distributed.options import set_global_ranks
from openreg_distributed.rendezvous import agree

NAME = "occl"


def create(group_options: Any, _options: Any) -> ProcessGroupOccl:
    """Returns the process group of one rank (source: ``torch.distributed.Backend.register_backend``, extended form).

    ``group_options`` has the store, the rank, the number of ranks, the timeout, and the global ranks of the group,
    which are empty for the default group. Blocks until all ranks have called this, for at most the timeout. The ranks
    agree on a token, a unique name of the group, whose keys in the store begin with it (rendezvous.py). Raises
    ``torch.distributed.DistBackendError`` with the rank, the number of other ranks and the cause.
    """
    rank, size = group_options.group_rank, group_options.group_size
    try:
        token = agree(PrefixStore(NAME, group_options.store), rank, size, group_options.timeout)
        store: Any = PrefixStore(token, group_options.store)
        transport: Any = distributed.ProcessGroupGloo(store, rank, size, group_options.timeout)
    except (RuntimeError, ValueError) as error:
        raise distributed.DistBackendError(
            f"occl: rank {rank} could not connect with the other {size - 1} ranks within {group_options.timeout}: "
            f"{str(error).partition(chr(10))[0]}; start all ranks within the timeout, with the same world size, and "
            "see that each can be reached by the name of its machine, or the interface that GLOO_SOCKET_IFNAME names"
        ) from error
    set_global_ranks(transport, group_options.global_ranks_in_group)
    # With a seed the transport works on copies of the operands, so that the values that a program with a missing wait
    # sees do not depend on the speed of the network.
    return ProcessGroupOccl(transport, group_options.timeout, bool(os.environ.get("OPENREG_SCHEDULE_SEED")), token)


# The devices are a list, because PyTorch iterates over a string letter by letter.
distributed.Backend.register_backend(NAME, create, extended_api=True, devices=["openreg"])
