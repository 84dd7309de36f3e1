# SPDX-License-Identifier: BSD-3-Clause
"""Makes ``torch.profiler`` warn of a profile without the device's tasks, if no installed package records them.

The warning comes only if the profile includes the device, and if a device has executed a kernel or a copy.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from pathlib import Path

import torch

from openreg_runtime import _C, _providers

_PROVIDER = _providers.of_feature("profiler")
_MESSAGE = (
    "torch.profiler does not record what openreg devices do: their kernels and copies are recorded by the package "
    f"{_PROVIDER}, which is not installed. Install it with: pip install {_PROVIDER}; or leave out "
    "ProfilerActivity.PrivateUse1: with activities=[ProfilerActivity.CPU] the operators are recorded as the host calls "
    "them"
)
_TORCH = str(Path(torch.__file__).parent) + os.sep  # torchvision is not torch


@functools.cache
def warn_that_nothing_is_recorded() -> None:
    """Warns once per process, on the line of the program that started the profile.

    If the device was first used during the profile, the line is that which ended it.
    """
    level, frame = 2, sys._getframe().f_back
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        level, frame = level + 1, frame.f_back
    warnings.warn(_MESSAGE, UserWarning, stacklevel=level)


def register_with_profiler() -> None:
    """Registers a profiler that only warns.

    Does nothing if an installed package provides a profiler, because PyTorch accepts one profiler for the device.
    """
    if not _providers.is_provided("profiler"):
        _C._register_silent_profiler()
