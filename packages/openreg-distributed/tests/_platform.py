# SPDX-License-Identifier: BSD-3-Clause
"""What differs between operating systems, for all tests of this package."""

import multiprocessing
import sys

# Importing torch takes seconds: processes are forked from one that has done that, and used no device.
HAS_FORK = sys.platform != "win32"
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"

# What several tests let their processes import.
_IMPORTED_ONCE = [
    "torch.distributed",
    "torch.distributed.checkpoint",
    "torch.distributed.fsdp",
    "torch.distributed.optim",
    "torch.distributed.pipelining",
    "torch.distributed.tensor.parallel",
    "torch.testing._internal.common_distributed",
    "torch.testing._internal.distributed._tensor.common_dtensor",
    "openreg_distributed",
    "pytest",
]


def process_context():
    """What starts the processes of tests."""
    context = multiprocessing.get_context(START_METHOD)
    if START_METHOD == "forkserver":
        context.set_forkserver_preload(_IMPORTED_ONCE)
    return context
