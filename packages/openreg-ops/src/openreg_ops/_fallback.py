# SPDX-License-Identifier: BSD-3-Clause
"""Seeing and controlling which operators run on the CPU because the device has no kernel for them."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import NamedTuple

from openreg_ops import _minimal


class FallbackCount(NamedTuple):
    """What one operator's fallbacks came to."""

    calls: int
    bytes: int  # of results copied to the device
    seconds: float  # of the host, waiting included


def fallback_stats() -> dict[str, FallbackCount]:
    """Operators that fell back since the start or :func:`reset_fallback_stats`, by name (``aten::op.overload``)."""
    return {name: FallbackCount(*count) for name, count in _minimal._fallback_counts().items()}


def reset_fallback_stats() -> None:
    """Forgets all counts, and which operators were warned about."""
    _minimal._reset_fallback_counts()


class fallback_mode(ContextDecorator):
    """Context, or decorator, in which fallbacks are ``"allow"``-ed, ``"warn"``-ed about, or an ``"error"``.

    It holds for all threads of the process, because backward passes run on threads of PyTorch's own. Contexts nest.
    Outside of any, ``OPENREG_FALLBACK`` decides (default ``allow``). Raises ValueError for another word.
    """

    def __init__(self, mode: str) -> None:
        self._mode = _minimal._parse_fallback_mode(mode)
        self._previous: list[int] = []

    def __enter__(self) -> None:
        self._previous.append(_minimal._exchange_fallback_mode(self._mode))

    def __exit__(self, *args: object) -> None:
        _minimal._exchange_fallback_mode(self._previous.pop())
