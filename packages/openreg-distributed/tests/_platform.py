# SPDX-License-Identifier: BSD-3-Clause
"""Differences between operating systems, for all tests of this package."""

import ctypes
import multiprocessing
import os
import sys

# Importing torch takes seconds: processes are forked from one that has done that, and used no device.
HAS_FORK = sys.platform != "win32"
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
# Options of torchrun for ranks that begin as copies of the launcher, instead of importing torch themselves.
FORKED_RANKS = ("--run-path", "--start-method", "fork") if sys.platform == "linux" else ()

# The forkserver imports these once for the processes of several tests.
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


def in_later_children(function):
    """Calls it in every later child of this process, where there are forks."""
    if HAS_FORK:
        os.register_at_fork(after_in_child=function)


def enter_network_namespace(name):
    """Lets this process see the network of that namespace alone, on Linux (Python has os.setns from 3.12 on)."""
    libc = ctypes.CDLL(None, use_errno=True)
    opened = os.open(f"/run/netns/{name}", os.O_RDONLY)
    if libc.setns(opened, 0) != 0:
        raise OSError(ctypes.get_errno(), f"the network namespace {name} cannot be entered")
    os.close(opened)
