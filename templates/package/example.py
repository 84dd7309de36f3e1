# SPDX-License-Identifier: BSD-3-Clause
"""The operator of openreg-example against the CPU, and how many kernels it launches."""

import torch

import openreg_example

x = torch.tensor([1.0, 2.0, 3.0], device="openreg")
print(torch.openreg.example_scale(x, 2.5).cpu())

if torch.openreg.example_scale(x, 2.5).cpu().tolist() != [2.5, 5.0, 7.5]:
    raise SystemExit("WRONG: the result is not that of the CPU")

with openreg_example.LaunchCounter() as counter:
    torch.openreg.example_scale(x, 2.5)
print(counter.launched, "launched,", counter.completed, "completed")
if (counter.launched, counter.completed) != (1, 1):
    raise SystemExit("WRONG: the observer did not get exactly one launch")

assert torch.openreg.example_scale is openreg_example.example_scale
