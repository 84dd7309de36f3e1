# SPDX-License-Identifier: BSD-3-Clause
"""A PyTorch backend: the device pocket, whose memory is memory of the host."""

import atexit
import time


def _autoload() -> None:
    """Does nothing. PyTorch calls it at the end of `import torch`, and imports this package to find it.

    It stands before the import of torch, because a program may import this package first.
    """


import torch  # noqa: E402

torch.utils.rename_privateuse1_backend("pocket")  # first: later lines may use the name

from torch_pocket import _C, group, operators, pocket  # noqa: E402, F401 - importing them registers

torch._register_device_module("pocket", pocket)
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)

# A backward pass returns a moment before PyTorch's thread for the device is done, and Python must not end before that.
# PyTorch does not tell when that is. So Python waits for a fixed time, which is enough unless the machine is very busy.
atexit.register(time.sleep, 0.05)
