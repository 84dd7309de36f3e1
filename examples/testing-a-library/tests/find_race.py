# SPDX-License-Identifier: BSD-3-Clause
"""Ends with 1 if a program that forgot to wait gives a wrong result. With some seed it does: the tests can fail."""

import sys

import torch

data = torch.ones(1000).pin_memory()
copies = torch.Stream("openreg")
with copies:
    moved = data.to("openreg", non_blocking=True)
doubled = moved * 2  # on another stream, which does not wait for the copy
sys.exit(0 if doubled.sum().item() == 2000 else 1)
