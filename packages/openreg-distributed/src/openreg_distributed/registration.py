# SPDX-License-Identifier: BSD-3-Clause
"""What ``torch.distributed`` is told: the name of the process group, its device, and how to make one."""

from __future__ import annotations

from datetime import timedelta

from torch import distributed

from openreg_distributed._C import ProcessGroupOccl

NAME = "occl"


def create(store: distributed.Store, rank: int, size: int, timeout: timedelta) -> ProcessGroupOccl:
    """The process group of one rank (source: ``torch.distributed.Backend.register_backend``).

    Blocks until all ranks have come, at most for the timeout. Raises ``torch.distributed.DistBackendError`` that names
    the rank, the number of ranks and the cause.
    """
    try:
        transport = distributed.ProcessGroupGloo(distributed.PrefixStore("occl", store), rank, size, timeout)
    except (RuntimeError, ValueError) as error:
        raise distributed.DistBackendError(
            f"occl: rank {rank} could not connect with the other {size - 1} ranks: {str(error).partition(chr(10))[0]}; "
            "start all ranks within the timeout, with the same world size, and let the network interface that "
            "GLOO_SOCKET_IFNAME names, or the machine's name, be reachable from each"
        ) from error
    return ProcessGroupOccl(transport, timeout)


distributed.Backend.register_backend(NAME, create, devices=["openreg"])  # a string would be taken letter by letter
