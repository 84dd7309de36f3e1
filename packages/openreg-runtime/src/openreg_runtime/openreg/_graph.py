# SPDX-License-Identifier: BSD-3-Clause
"""Device graphs: work that is recorded once and launched as often as wanted, under the names of ``torch.cuda``."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar, Literal

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._stream import Stream, StreamContext

Pool = tuple[int, int]
CaptureErrorMode = Literal["default", "global", "thread_local", "relaxed"]


class Graph(torch.accelerator.Graph):
    """A recording of a device's work, with a memory pool of its own (source: ``torch.accelerator.Graph``).

    ``replay()`` runs it on the current stream; random kernels draw new numbers each time. What needs a result on the
    host (``.item()``, printing, operators that fall back to the CPU) cannot be recorded and raises ``RuntimeError``.
    """


class graph:
    """Context that captures into ``openreg_graph`` on a side stream (source: ``torch.cuda.graph``).

    ``pool`` names the memory pool of another graph (``Graph.pool()``) or of :func:`graph_pool_handle`, to share it.
    ``stream`` captures instead of a side stream that all contexts share. An exception inside ends the capture; the
    graph then holds what was recorded before it, or nothing if the capture was invalidated.
    """

    _side_streams: ClassVar[dict[int, Stream]] = {}

    def __init__(
        self,
        openreg_graph: torch.accelerator.Graph,
        pool: Pool | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: CaptureErrorMode = "default",
    ) -> None:
        self._graph = openreg_graph
        self._pool = pool
        self._mode = capture_error_mode
        self._stream_context = StreamContext(self._side_stream() if stream is None else stream)

    @classmethod
    def _side_stream(cls) -> Stream:
        """The stream on which contexts of the current device capture."""
        device = _C._get_device()
        if device not in cls._side_streams:
            cls._side_streams[device] = Stream(device)
        return cls._side_streams[device]

    def __enter__(self) -> None:
        torch.accelerator.synchronize()
        torch.accelerator.empty_cache()
        torch.accelerator.empty_host_cache()
        self._graph.graph_pool = self._pool
        self._graph.capture_error_mode = self._mode
        self._stream_context.__enter__()
        try:
            self._graph.capture_begin()
        except BaseException:
            self._stream_context.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._graph.capture_end()
        except RuntimeError:
            if error is None:
                raise  # otherwise the exception inside says why the capture is invalidated
        finally:
            self._stream_context.__exit__(kind, error, trace)


def graph_pool_handle() -> Pool:
    """A name for a memory pool that graphs may share, one capture and replay after the other."""
    return _C._make_pool_id(False)


def is_current_stream_capturing() -> bool:
    """Whether this thread's current stream records work for a graph; False before the device is initialized."""
    return _C._is_current_stream_capturing()
