# SPDX-License-Identifier: BSD-3-Clause
"""``torch.openreg.profiler``: ranges and marks of a program, and names of streams, for whoever profiles it.

Ranges are those of :class:`torch.profiler.record_function`: they are in a profile of the host, and on the tracks of the
streams whose work was launched in them. Without a profile they cost about a microsecond.
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
    """Begins a range on the calling thread, and returns how many were open before."""
    if not isinstance(name, str):
        raise TypeError(f"torch.openreg.profiler.push: the name is a str, but got {type(name).__name__}")
    _ranges.open.append(torch.ops.profiler._record_function_enter_new(name, None))
    return len(_ranges.open) - 1


def pop() -> int:
    """Ends the range that the calling thread began last, and returns how many are still open.

    Raises RuntimeError where none is open.
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
    """A range around a block, which an exception ends, too."""
    push(name)
    try:
        yield
    finally:
        pop()


def mark(name: str) -> None:
    """A range that ends at once."""
    push(name)
    pop()


def name_stream(stream: torch.Stream, name: str) -> None:
    """From now on traces show a stream of the device under this name, an empty one being none.

    Raises TypeError for what is no stream, ValueError for one of another device, and for a name with quotation marks,
    backslashes or control characters, which Kineto writes into its file as they are.
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
