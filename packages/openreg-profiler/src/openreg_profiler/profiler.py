# SPDX-License-Identifier: BSD-3-Clause
"""Provides ``torch.openreg.profiler``: ranges, marks and names of streams, which profiles show.

Ranges are those of :class:`torch.profiler.record_function`. A profile shows a range on the thread of the host, and
on the track of each stream to which a task was launched during the range. Without a profile a range costs about a
microsecond.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from openreg_profiler import _C

__all__ = ["mark", "name_stream", "pop", "push", "range"]


class _Ranges(threading.local):
    """The open ranges of each thread."""

    def __init__(self) -> None:
        self.open: list[Any] = []


_ranges = _Ranges()


def push(name: str) -> int:
    """Begins a range on the calling thread, and returns the number of ranges that were open before."""
    if not isinstance(name, str):
        raise TypeError(f"torch.openreg.profiler.push: the name is a str, but got {type(name).__name__}")
    _ranges.open.append(torch.ops.profiler._record_function_enter_new(name, None))
    return len(_ranges.open) - 1


def pop() -> int:
    """Ends the innermost range of the calling thread, and returns the number of ranges that are still open.

    Raises RuntimeError if none is open.
    """
    if not _ranges.open:
        raise RuntimeError(
            "torch.openreg.profiler.pop: this thread has no open range; call push() first, on the same thread, or use "
            "torch.openreg.profiler.range()"
        )
    torch.ops.profiler._record_function_exit._RecordFunction(_ranges.open.pop())
    return len(_ranges.open)


@contextmanager
def range(name: str) -> Iterator[None]:  # noqa: A001  (as that of torch.cuda.nvtx)
    """Encloses a block in a range, which ends with the block, also if the block raises."""
    push(name)
    try:
        yield
    finally:
        pop()


def mark(name: str) -> None:
    """Adds a range that ends at once, which marks a moment."""
    push(name)
    pop()


def name_stream(stream: torch.Stream, name: str) -> None:
    """Sets the name of a stream in traces; an empty name restores the generated one.

    Raises TypeError if ``stream`` is no stream, and ValueError for a stream of another device type. Also raises
    ValueError for a name with quotation marks, backslashes or characters that are not printable, because Kineto does
    not escape them.
    """
    if not isinstance(stream, torch.Stream):
        raise TypeError(
            f"torch.openreg.profiler.name_stream: expected a stream of openreg, but got {type(stream).__name__}"
        )
    if stream.device.type != "openreg":
        raise ValueError(
            f"torch.openreg.profiler.name_stream: expected a stream of openreg, but got one of {stream.device}"
        )
    if not name.isprintable() or '"' in name or "\\" in name:
        raise ValueError(
            f"torch.openreg.profiler.name_stream: {name!r} has quotation marks, backslashes or control characters; "
            "choose a name without them"
        )
    handle: Any = stream  # PyTorch's stubs lack the attribute
    _C.name_stream(handle.native_handle, name)
