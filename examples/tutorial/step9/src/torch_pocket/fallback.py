# SPDX-License-Identifier: BSD-3-Clause
"""Shows which operators run on the CPU because the device has no kernel for them, and refuses them on request."""

from typing import NamedTuple

from torch_pocket import _C


class CpuCalls(NamedTuple):
    """The calls of one operator that ran on the CPU."""

    calls: int


def fallback_stats() -> dict[str, CpuCalls]:
    """Returns how often each operator ran on the CPU, by a name such as "aten::hypot.out"."""
    return {name: CpuCalls(calls) for name, calls in _C.fallback_counts().items()}


def reset_fallback_stats() -> None:
    """Sets all counts to zero."""
    _C.reset_fallback_counts()


def refuse_fallbacks(refused: bool = True) -> None:
    """Makes every operator without a kernel raise NotImplementedError; with False they run on the CPU again."""
    _C.refuse_fallbacks(refused)
