# SPDX-License-Identifier: BSD-3-Clause
"""The device types that PyTorch itself has. None of them is a backend behind PrivateUse1."""

from __future__ import annotations

PYTORCH_DEVICES = (
    "cpu",
    "cuda",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "meta",
    "hpu",
    "mtia",
    "xpu",
    "ipu",
)
