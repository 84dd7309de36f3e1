# SPDX-License-Identifier: BSD-3-Clause
"""Captures tasks into device graphs, which can be replayed any number of times, as ``torch.cuda.graphs`` does."""

from __future__ import annotations

import gc
from types import TracebackType
from typing import ClassVar, Literal

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._stream import Stream, StreamContext

PoolId = tuple[int, int]  # c10::MempoolId_t
CaptureErrorMode = Literal["default", "global", "thread_local", "relaxed"]


class Graph(torch.accelerator.Graph):
    """A graph of a device's tasks, with a private memory pool (source: ``torch.accelerator.Graph``).

    ``replay()`` enqueues the tasks on the current stream; random kernels draw new numbers in each replay. Operations
    that need a result on the host cannot be captured and raise ``RuntimeError``: ``.item()``, printing a tensor, and
    operators that fall back to the CPU.
    """


class graph:
    """A context that captures tasks into ``openreg_graph`` (source: ``torch.cuda.graph``).

    ``pool`` is the id of a memory pool to share: that of another graph (``Graph.pool()``) or of
    :func:`graph_pool_handle`. ``stream`` is the stream to capture on; by default, all contexts of a device use one
    stream, which this class creates. ``capture_error_mode`` says which threads' blocking calls on the device raise an
    error during the capture: those of all threads (``"global"``), of the thread that captures (``"thread_local"``, and
    by default) or of none (``"relaxed"``). If ``pool`` or ``capture_error_mode`` is ``None``, that of the graph is
    used. An exception inside the context ends the capture. The graph then contains the tasks recorded before the
    exception, or none if the capture was invalidated. With ``torch.compiler.config.force_cudagraph_gc``, garbage is
    collected before the capture.
    """

    _side_streams: ClassVar[dict[int, Stream]] = {}

    def __init__(
        self,
        openreg_graph: torch.accelerator.Graph,
        pool: PoolId | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: CaptureErrorMode | None = None,
    ) -> None:
        self._graph = openreg_graph
        self._pool = pool
        self._mode = capture_error_mode
        self._stream_context = StreamContext(self._side_stream() if stream is None else stream)

    @classmethod
    def _side_stream(cls) -> Stream:
        """Returns the stream on which contexts of the current device capture by default."""
        device = _C._get_device()
        if device not in cls._side_streams:
            cls._side_streams[device] = Stream(device)
        return cls._side_streams[device]

    def __enter__(self) -> None:
        torch.accelerator.synchronize()
        if torch.compiler.config.force_cudagraph_gc:
            gc.collect()
        torch.accelerator.empty_cache()
        torch.accelerator.empty_host_cache()
        if self._pool is not None:
            self._graph.graph_pool = self._pool
        if self._mode is not None:
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
                raise  # if the block has raised, its exception explains why the capture is invalid
        finally:
            self._stream_context.__exit__(kind, error, trace)


def graph_pool_handle() -> PoolId:
    """Returns the id of a new memory pool, which several graphs may share.

    Their captures and replays must not overlap, because they use the same memory.
    """
    return _C._make_pool_id(False)


def is_current_stream_capturing() -> bool:
    """Returns True if this thread's current stream is capturing. False before the device is initialized."""
    return _C._is_current_stream_capturing()
