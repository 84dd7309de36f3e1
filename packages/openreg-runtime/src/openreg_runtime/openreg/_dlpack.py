# SPDX-License-Identifier: BSD-3-Clause
"""DLPack: tensors of the device handed to other libraries of the same process, without a copy.

PyTorch's converters know the device (as ``kDLExtDev``), but the two methods that every consumer calls first do not:
``Tensor.__dlpack_device__`` compares with the name that the device had before it was renamed, and ``Tensor.__dlpack__``
orders streams for CUDA only (source: ``torch/_tensor.py``).
"""

from __future__ import annotations

import enum
import functools
from typing import Any

import torch
from torch.utils.dlpack import DLDeviceType

from openreg_runtime import _C
from openreg_runtime.openreg._stream import Stream, current_stream

# What the argument `stream` of __dlpack__ means besides the native handle of a stream.
_NO_SYNCHRONIZATION = -1
_DEFAULT_STREAM = (None, 0)


def patch_tensor() -> None:
    """Wraps the two methods; tensors of other devices reach PyTorch's own as before."""
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
        capsule = original(self, stream=stream, **options)  # refuses what cannot be exported, before anything waits
        if self.device.type == "openreg" and stream != _NO_SYNCHRONIZATION:
            _let_wait(stream, self.device.index)
        return capsule

    return dlpack


def _let_wait(consumer: int | None, device: int) -> None:
    """Orders the consumer's stream after what the current stream of the device holds now."""
    producer = current_stream(device)
    handle = _C._default_stream_id(device) if consumer in _DEFAULT_STREAM else consumer
    stream = Stream(stream_id=handle, device_index=device, device_type=producer.device_type)
    if stream != producer:
        stream.wait_stream(producer)
