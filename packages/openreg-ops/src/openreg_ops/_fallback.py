# SPDX-License-Identifier: BSD-3-Clause
"""Counts and controls fallbacks: operators that run on the CPU because the device has no kernel for them."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import NamedTuple

from openreg_ops import _minimal


class FallbackCount(NamedTuple):
    """The calls of one operator that ran on the CPU."""

    calls: int
    bytes: int  # of results copied to the device
    seconds: float  # time of the host, including waits for the device


def fallback_stats() -> dict[str, FallbackCount]:
    """Returns the counts of each operator that fell back, by name (``aten::op.overload``).

    Counts begin when the process begins, or at :func:`reset_fallback_stats`.
    """
    return {name: FallbackCount(*count) for name, count in _minimal._fallback_counts().items()}


def reset_fallback_stats() -> None:
    """Sets all counts to zero. Every operator can then cause its warning again."""
    _minimal._reset_fallback_counts()


class fallback_mode(ContextDecorator):
    """A context or decorator that sets the mode of fallbacks: ``"allow"``, ``"warn"`` or ``"error"``.

    The mode applies to all threads of the process, because backward passes run on threads of PyTorch. Contexts can be
    nested. Outside of a context the mode is ``OPENREG_FALLBACK``, by default ``allow``. Raises ValueError for another
    mode.
    """

    def __init__(self, mode: str) -> None:
        self._mode = _minimal._parse_fallback_mode(mode)
        self._previous: list[int] = []

    def __enter__(self) -> None:
        self._previous.append(_minimal._exchange_fallback_mode(self._mode))

    def __exit__(self, *args: object) -> None:
        _minimal._exchange_fallback_mode(self._previous.pop())
