# SPDX-License-Identifier: BSD-3-Clause
"""Exports tensors of the device to other libraries of the process by DLPack, without a copy.

PyTorch's converters support the device, as ``kDLExtDev``. The two methods that each consumer calls first do not
(``torch/_tensor.py``). ``Tensor.__dlpack_device__`` compares the device type with ``privateuseone``, its name before
the renaming. ``Tensor.__dlpack__`` makes the consumer's stream wait only for CUDA.
"""

from __future__ import annotations

import enum
import functools
from typing import Any

import torch
from torch.utils.dlpack import DLDeviceType

from openreg_runtime import _C
from openreg_runtime.openreg._stream import Stream, current_stream

# Values of the argument `stream` of __dlpack__ other than the native handle of a stream.
_NO_SYNCHRONIZATION = -1
_DEFAULT_STREAM = (None, 0)


def patch_tensor() -> None:
    """Replaces the two methods by wrappers, which call PyTorch's methods for tensors of other devices."""
    torch.Tensor.__dlpack_device__ = _wrap_device(torch.Tensor.__dlpack_device__)  # type: ignore[method-assign]
    torch.Tensor.__dlpack__ = _wrap_export(torch.Tensor.__dlpack__)  # type: ignore[method-assign]


def _wrap_device(original: Any) -> Any:
    @functools.wraps(original)
    def dlpack_device(self: torch.Tensor) -> tuple[enum.IntEnum, int]:
        if self.device.type != "openreg":
            device: tuple[enum.IntEnum, int] = original(self)
            return device
        return DLDeviceType.kDLExtDev, self.device.index

    return dlpack_device


def _wrap_export(original: Any) -> Any:
    @functools.wraps(original)
    def dlpack(self: torch.Tensor, *, stream: int | None = _NO_SYNCHRONIZATION, **options: Any) -> Any:
        capsule = original(self, stream=stream, **options)  # raises, before a stream waits, if export is impossible
        if self.device.type == "openreg" and stream != _NO_SYNCHRONIZATION:
            _make_stream_wait(stream, self.device.index)
        return capsule

    return dlpack


def _make_stream_wait(consumer: int | None, device: int) -> None:
    """Makes the consumer's stream wait for the tasks that are in the device's current stream now."""
    producer = current_stream(device)
    handle = _C._default_stream_id(device) if consumer in _DEFAULT_STREAM else consumer
    stream = Stream(stream_id=handle, device_index=device, device_type=producer.device_type)
    if stream != producer:
        stream.wait_stream(producer)
