# SPDX-License-Identifier: BSD-3-Clause
"""What ``torch.distributed`` is told: the name of the process group, its device, and how to make one."""

from __future__ import annotations

import os
from typing import Any

from torch import distributed
from torch.distributed.distributed_c10d import PrefixStore

from openreg_distributed._C import ProcessGroupOccl
from openreg_distributed.options import tell_ranks
from openreg_distributed.rendezvous import agree

NAME = "occl"


def create(asked: Any, _options: Any) -> ProcessGroupOccl:
    """The process group of one rank (source: ``torch.distributed.Backend.register_backend``, the extended form).

    ``asked`` has the store, the rank, the number of ranks, the timeout and the global ranks of the group, none for the
    default group. Blocks until all ranks have come, at most for the timeout. Raises
    ``torch.distributed.DistBackendError`` that names the rank, the number of ranks and the cause.
    """
    rank, size = asked.group_rank, asked.group_size
    try:
        token = agree(PrefixStore(NAME, asked.store), rank, size, asked.timeout)
        store: Any = PrefixStore(token, asked.store)
        transport: Any = distributed.ProcessGroupGloo(store, rank, size, asked.timeout)
    except (RuntimeError, ValueError) as error:
        raise distributed.DistBackendError(
            f"occl: rank {rank} could not connect with the other {size - 1} ranks within {asked.timeout}: "
            f"{str(error).partition(chr(10))[0]}; start all ranks within the timeout, with the same world size, and "
            "see that each can be reached by the name of its machine, or the interface that GLOO_SOCKET_IFNAME names"
        ) from error
    tell_ranks(transport, asked.global_ranks_in_group)
    # What follows from the seed must not depend on how fast messages are.
    return ProcessGroupOccl(transport, asked.timeout, bool(os.environ.get("OPENREG_SCHEDULE_SEED")), token)


# A string of devices would be taken letter by letter.
distributed.Backend.register_backend(NAME, create, extended_api=True, devices=["openreg"])
