# SPDX-License-Identifier: BSD-3-Clause
"""What is traced: program.py LIBRARY OBSERVED runs `x + y` under callgrind, with observers or without (1 or 0)."""

import ctypes
import sys

import torch

import openreg_ops  # noqa: F401


def main() -> None:
    """Runs it once as a program does after its first steps: the block that the result needs is in the cache."""
    library, observed = sys.argv[1:]
    trace = ctypes.PyDLL(library)  # keeps the GIL, so that nothing of Python's runs between the calls
    x, y = torch.ones(1000, device="openreg"), torch.ones(1000, device="openreg")
    for _ in range(3):
        z = x + y
        del z
        torch.accelerator.synchronize()
    trace.begin(int(observed))
    z = x + y
    trace.returned()
    torch.accelerator.synchronize()
    trace.end()
    assert z.sum().item() == 2000


if __name__ == "__main__":
    main()
