# SPDX-License-Identifier: BSD-3-Clause
"""Implements the interface by which PyTorch's compiler uses the device (``torch/_dynamo/device_interface.py``).

The import of this module imports the compiler, so ``_compiler.py`` imports it only after the program has imported
the compiler.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

from openreg_runtime import openreg
from openreg_runtime._plugins import installed_plugins
from openreg_runtime.openreg._device import DeviceLike, DeviceProperties, exchange_device, maybe_exchange_device


class OpenregInterface(DeviceInterface):
    """The functions of ``torch.openreg`` under the names that the compiler uses."""

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
        """The functions for worker processes of the compiler, which may be forked.

        No function of this class initializes the device, because a forked process could then not use it.
        """

        set_device = staticmethod(openreg.set_device)
        current_device = staticmethod(openreg.current_device)

        @staticmethod
        def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
            """Returns the name, memory and other properties of a device."""
            return openreg.get_device_properties(device)

    @staticmethod
    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        openreg.set_stream(openreg.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        """Returns the driver's handle of a device's current stream."""
        return openreg.current_stream(device_idx).native_handle

    @staticmethod
    def get_compute_capability(device: DeviceLike = None) -> tuple[int, int]:
        """Returns the major and minor version of the driver's interface."""
        properties = openreg.get_device_properties(device)
        return properties.major, properties.minor

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:  # noqa: ARG004
        """Returns True if kernels support bfloat16."""
        return openreg.is_bf16_supported()

    @classmethod
    def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:  # noqa: ARG003
        """Returns True if kernels support a dtype."""
        return dtype in openreg.get_device_capability()["supported_dtypes"]

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:  # noqa: ARG004
        """Returns False, because the device cannot run Triton kernels."""
        return False

    @staticmethod
    def is_gpu() -> bool:
        """Returns False, because kernels for the device are loops in C++, which Inductor generates as for the CPU.

        For a device that returns True, Inductor fuses for threads of a GPU and generates Triton. torch 2.15 and later
        ask. The methods that they ask beside it stay those of the base class: ``exposes_streams()`` finds ``Stream``,
        ``get_multi_processor_count()`` finds the field of the properties, and ``get_cpp_device_options()`` has nothing
        to add, because it is for the C++ wrapper, which a backend outside of PyTorch's repository cannot have.
        """
        return False

    @classmethod
    def get_cache_system_info(cls) -> dict[str, object]:
        """Returns the versions of the device's packages, which become part of the keys of Inductor's caches.

        torch 2.15 and later ask once per process. They do not initialize the device.
        """
        return {plugin.distribution: plugin.version for plugin in installed_plugins()}


def register() -> None:
    """Registers the device with the compiler, with and without an index.

    ``stream()`` is not passed to ``torch.compiler.allow_in_graph``, because a compiler backend that interprets the
    FX graph would then ignore the stream. As it is, ``stream()`` causes a graph break, and the code after it runs on
    the stream.
    """
    register_interface_for_device("openreg", OpenregInterface)
    for index in range(openreg.device_count()):
        register_interface_for_device(f"openreg:{index}", OpenregInterface)
