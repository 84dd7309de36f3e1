# SPDX-License-Identifier: BSD-3-Clause
"""Finds a missing wait between two streams, and says where to write it."""

import torch

import openreg_ops  # noqa: F401
import openreg_sanitizer


def scale(fixed):
    """Doubles ones on a side stream; without the fix the default stream reads the result too early."""
    side = torch.openreg.Stream()
    x = torch.ones(1024, device="openreg")
    side.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(side):
        x.mul_(2)
    if fixed:
        torch.openreg.current_stream().wait_stream(side)
    return x.sum()


with torch.openreg.sanitizer("collect") as wrong:
    scale(fixed=False)
torch.openreg.synchronize()
with torch.openreg.sanitizer("collect") as right:
    scale(fixed=True)

for finding in wrong.findings:
    print(f"{finding.kind}: {finding.missing}, {finding.where}")
if [finding.kind for finding in wrong.findings] != ["race"] or right.findings:
    raise SystemExit("WRONG: the missing wait was not found, or the correct program was blamed")

assert torch.openreg.sanitizer is openreg_sanitizer.sanitizer
