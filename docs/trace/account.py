# SPDX-License-Identifier: BSD-3-Clause
"""What is counted: account.py LIBRARY DEVICE OPERATORS runs `x + y` of four elements so many times under callgrind."""

import ctypes
import sys

import torch

import openreg_ops  # noqa: F401

WARM_UP = 200


def main() -> None:
    """Runs them without waiting in between, as a program does whose results no line reads yet."""
    library, device, operators = sys.argv[1:]
    torch.set_num_threads(1)  # what OpenMP's threads execute depends on the load of the machine
    trace = ctypes.PyDLL(library)  # keeps the GIL, so that nothing of Python's runs between the calls
    x, y = torch.ones(4, device=device), torch.ones(4, device=device)
    for _ in range(WARM_UP):
        x + y
    torch.accelerator.synchronize()
    trace.begin(0)
    for _ in range(int(operators)):
        x + y
    trace.returned()
    torch.accelerator.synchronize()
    trace.end()


if __name__ == "__main__":
    main()
