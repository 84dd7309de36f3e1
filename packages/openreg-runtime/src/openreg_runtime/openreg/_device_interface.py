# SPDX-License-Identifier: BSD-3-Clause
"""The device as PyTorch's compiler sees it (source: ``torch/_dynamo/device_interface.py``).

Importing this module imports the compiler; ``_compiler.py`` does so once the program has.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

from openreg_runtime import openreg
from openreg_runtime.openreg._device import DeviceLike, DeviceProperties, exchange_device, maybe_exchange_device


class OpenregInterface(DeviceInterface):
    """The functions of ``torch.openreg`` under the names that the compiler uses; kernels of Triton do not run here."""

    device = openreg.device
    Event = openreg.Event
    Stream = openreg.Stream

    current_device = staticmethod(openreg.current_device)
    set_device = staticmethod(openreg.set_device)
    exchange_device = staticmethod(exchange_device)
    maybe_exchange_device = staticmethod(maybe_exchange_device)
    device_count = staticmethod(openreg.device_count)
    is_available = staticmethod(openreg.is_available)
    stream = staticmethod(openreg.stream)
    current_stream = staticmethod(openreg.current_stream)
    set_stream = staticmethod(openreg.set_stream)
    synchronize = staticmethod(openreg.synchronize)
    memory_allocated = staticmethod(openreg.memory_allocated)

    class Worker:
        """What a process that compiles may ask; it may be a forked one, so nothing here initializes the device."""

        set_device = staticmethod(openreg.set_device)
        current_device = staticmethod(openreg.current_device)

        @staticmethod
        def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
            """Name, memory and size of a device."""
            return openreg.get_device_properties(device)

    @staticmethod
    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        openreg.set_stream(openreg.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        """The driver's handle of a device's current stream."""
        return openreg.current_stream(device_idx).native_handle

    @staticmethod
    def get_compute_capability(device: DeviceLike = None) -> tuple[int, int]:
        """Version of the driver's interface."""
        properties = openreg.get_device_properties(device)
        return properties.major, properties.minor

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:  # noqa: ARG004
        """Whether kernels take bfloat16."""
        return openreg.is_bf16_supported()

    @classmethod
    def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:  # noqa: ARG003
        """Whether kernels take a dtype."""
        return dtype in openreg.get_device_capability()["supported_dtypes"]

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:  # noqa: ARG004
        """Never: the device runs no Triton kernels."""
        return False


def register() -> None:
    """Makes the device known to the compiler, with and without an index.

    ``stream()`` is not declared fit for graphs (``torch.compiler.allow_in_graph``): backends that interpret the graph
    would then drop the stream, whereas a break of the graph keeps it.
    """
    register_interface_for_device("openreg", OpenregInterface)
    for index in range(openreg.device_count()):
        register_interface_for_device(f"openreg:{index}", OpenregInterface)
