# SPDX-License-Identifier: BSD-3-Clause
"""The operator of openreg-profiler against the CPU, and how many kernels it launches."""

import torch

import openreg_profiler

x = torch.tensor([1.0, 2.0, 3.0], device="openreg")
print(torch.openreg.profiler_scale(x, 2.5).cpu())

if torch.openreg.profiler_scale(x, 2.5).cpu().tolist() != [2.5, 5.0, 7.5]:
    raise SystemExit("WRONG: the result is not that of the CPU")

with openreg_profiler.LaunchCounter() as counter:
    torch.openreg.profiler_scale(x, 2.5)
print(counter.launched, "launched,", counter.completed, "completed")
if (counter.launched, counter.completed) != (1, 1):
    raise SystemExit("WRONG: the observer was not told of one launch")

assert torch.openreg.profiler_scale is openreg_profiler.profiler_scale
