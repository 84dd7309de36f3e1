# SPDX-License-Identifier: BSD-3-Clause
"""Functions of openreg.h for ctypes that raise an error."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_float, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from .device_header import (
    HEADER,
    PROTOTYPES,
    CaptureMode,
    CaptureStatus,
    DeviceProp,
    DeviceStats,
    EngineStats,
    Error,
    EventFlags,
    HostFunction,
    IpcMemHandle,
    Kernel,
    KernelFunction,
    Kind,
    MemoryType,
    PointerAttributes,
    ReleaseFunction,
    StreamStats,
)

__all__ = [
    "HEADER",
    "PROTOTYPES",
    "Api",
    "CaptureMode",
    "CaptureStatus",
    "DeviceProp",
    "DeviceStats",
    "DriverError",
    "EngineStats",
    "Error",
    "EventFlags",
    "HostFunction",
    "IpcMemHandle",
    "Kernel",
    "KernelFunction",
    "Kind",
    "MemoryType",
    "PointerAttributes",
    "ReleaseFunction",
    "StreamStats",
]


class DriverError(RuntimeError):
    """A C function that did not return orSuccess."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{Error(code).name}: {message}")
        self.code = Error(code)
        self.message = message


class Api:
    """One loaded copy of the device: `c` has the plain functions, the methods raise DriverError."""

    def __init__(self, library: str | Path) -> None:
        self.c = ctypes.CDLL(str(library))
        for name, (result, arguments) in PROTOTYPES.items():
            function = getattr(self.c, name)
            function.restype = result
            function.argtypes = list(arguments)
        self.allocated: set[int] = set()  # what malloc() gave and free() did not take back
        self._callbacks: list[Any] = []  # ctypes callbacks must outlive the work that calls them

    # Errors

    def message(self) -> str:
        return self.c.orGetLastErrorMessage().decode()

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.c, name)(*arguments)
        if code != Error.orSuccess:
            raise DriverError(code, self.message())

    def _out(self, kind: Any, name: str, *arguments: Any) -> Any:
        value = kind()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    # Devices

    def device_count(self) -> int:
        return self._out(c_int, "orGetDeviceCount")

    def device(self) -> int:
        return self._out(c_int, "orGetDevice")

    def set_device(self, device: int) -> None:
        self.call("orSetDevice", device)

    def synchronize(self) -> None:
        self.call("orDeviceSynchronize")

    def reset(self) -> None:
        self.call("orDeviceReset")

    def stats(self, device: int = 0) -> DeviceStats:
        stats = DeviceStats()
        self.call("orDeviceGetStats", ctypes.byref(stats), device)
        return stats

    def utilization(self, device: int = 0) -> int:
        return self._out(c_int, "orDeviceGetUtilization", device)

    def engine_stats(self) -> dict[str, EngineStats]:
        result = {}
        for engine in range(self._out(c_int, "orGetEngineCount")):
            stats = EngineStats()
            self.call("orEngineGetStats", ctypes.byref(stats), engine)
            result[stats.name.decode()] = stats
        return result

    def set_faults(self, specification: str | None) -> None:
        self.call("orSetFaults", None if specification is None else specification.encode())

    def register_fault_kind(self, name: str) -> int:
        kind = ctypes.c_int()
        self.call("orRegisterFaultKind", ctypes.byref(kind), name.encode())
        return kind.value

    def count_for_fault(self, kind: int, device: int = 0) -> bool:
        must_fail = ctypes.c_int()
        self.call("orCountForFault", kind, device, ctypes.byref(must_fail))
        return must_fail.value == 1

    def properties(self, device: int = 0) -> DeviceProp:
        properties = DeviceProp()
        self.call("orGetDeviceProperties", ctypes.byref(properties), device)
        return properties

    # Memory

    def malloc(self, size: int) -> int:
        address = self._out(c_void_p, "orMalloc", size) or 0
        self.allocated.add(address)
        return address

    def free(self, address: int) -> None:
        self.call("orFree", address)
        self.allocated.discard(address)

    def malloc_host(self, size: int) -> int:
        return self._out(c_void_p, "orMallocHost", size) or 0

    def free_host(self, address: int) -> None:
        self.call("orFreeHost", address)

    def memory_info(self) -> tuple[int, int]:
        free, total = c_size_t(), c_size_t()
        self.call("orMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def attributes(self, address: int | None) -> tuple[MemoryType, int]:
        result = PointerAttributes()
        self.call("orPointerGetAttributes", ctypes.byref(result), address)
        assert result.pointer == (address or None)
        return MemoryType(result.type), result.device

    def address_range(self, address: int) -> tuple[int, int]:
        base, size = c_void_p(), c_size_t()
        self.call("orMemGetAddressRange", ctypes.byref(base), ctypes.byref(size), address)
        return base.value or 0, size.value

    def kernel_view(self, address: int) -> int:
        return address + self._out(ctypes.c_ssize_t, "orGetKernelViewOffset")

    def upload(self, address: int, data: bytes) -> None:
        self.call("orMemcpy", address, data, len(data), Kind.orMemcpyHostToDevice)

    def download(self, address: int, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        self.call("orMemcpy", buffer, address, size, Kind.orMemcpyDeviceToHost)
        return buffer.raw

    def copy_async(self, destination: Any, source: Any, size: int, stream: int | None, kind: int = 4) -> None:
        self.call("orMemcpyAsync", destination, source, size, kind, stream)

    def export(self, address: int) -> bytes:
        handle = IpcMemHandle()
        self.call("orIpcGetMemHandle", ctypes.byref(handle), address)
        return bytes(handle)

    def open(self, handle: bytes) -> int:
        return self._out(c_void_p, "orIpcOpenMemHandle", IpcMemHandle.from_buffer_copy(handle), 0) or 0

    def close(self, address: int) -> None:
        self.call("orIpcCloseMemHandle", address)

    # Streams and events

    def stream(self, priority: int = 0) -> int:
        return self._out(c_void_p, "orStreamCreateWithPriority", 0, priority)

    def default_stream(self, device: int = 0) -> int:
        return self._out(c_void_p, "orDeviceGetDefaultStream", device)

    def stream_device(self, stream: int | None) -> int:
        value = c_int()
        self.call("orStreamGetDevice", stream, ctypes.byref(value))
        return value.value

    def stream_priority(self, stream: int | None) -> int:
        value = c_int()
        self.call("orStreamGetPriority", stream, ctypes.byref(value))
        return value.value

    def stream_stats(self, stream: int | None) -> StreamStats:
        stats = StreamStats()
        self.call("orStreamGetStats", stream, ctypes.byref(stats))
        return stats

    def destroy_stream(self, stream: int) -> None:
        self.call("orStreamDestroy", stream)

    def synchronize_stream(self, stream: int | None) -> None:
        self.call("orStreamSynchronize", stream)

    def stream_ready(self, stream: int | None) -> bool:
        return self._ready(self.c.orStreamQuery(stream))

    def delay(self, stream: int | None, seconds: float) -> None:
        self.call("orStreamDelay", stream, int(seconds * 1e9))

    def wait_event(self, stream: int | None, event: int) -> None:
        self.call("orStreamWaitEvent", stream, event, 0)

    def event(self, timed: bool = False) -> int:
        return self._out(c_void_p, "orEventCreateWithFlags", int(timed))

    def destroy_event(self, event: int) -> None:
        self.call("orEventDestroy", event)

    def record(self, event: int, stream: int | None) -> None:
        self.call("orEventRecord", event, stream)

    def event_ready(self, event: int) -> bool:
        return self._ready(self.c.orEventQuery(event))

    def synchronize_event(self, event: int) -> None:
        self.call("orEventSynchronize", event)

    def elapsed(self, start: int, end: int) -> float:
        return self._out(c_float, "orEventElapsedTime", start, end)

    def _ready(self, code: int) -> bool:
        if code == Error.orErrorNotReady:
            return False
        if code != Error.orSuccess:
            raise DriverError(code, self.message())
        return True

    # Semaphores

    def semaphore(self, value: int = 0) -> int:
        return self._out(c_void_p, "orSemaphoreCreate", value)

    def destroy_semaphore(self, semaphore: int) -> None:
        self.call("orSemaphoreDestroy", semaphore)

    def signal(self, semaphore: int, value: int) -> None:
        self.call("orSemaphoreSignal", semaphore, value)

    def fail_semaphore(self, semaphore: int, status: int = Error.orErrorUnknown, message: bytes | None = None) -> None:
        self.call("orSemaphoreFail", semaphore, status, message)

    def semaphore_value(self, semaphore: int) -> int:
        value = c_uint64()
        self.call("orSemaphoreGetValue", semaphore, ctypes.byref(value))
        return value.value

    def wait_semaphore(self, stream: int | None, semaphore: int, value: int) -> None:
        self.call("orStreamWaitSemaphore", stream, semaphore, value)

    def set_progress(self, progress: int) -> None:
        self.call("orThreadSetProgress", progress)

    # Work

    def kernel(
        self,
        function: Callable[[], object] | int,
        *,
        name: bytes = b"test kernel",
        state: int = 0,
        release: Callable[[int | None], None] | None = None,
    ) -> Kernel:
        """An orKernel. `function` returns the reason if it fails, or is a native address."""

        def run(_state: int | None, message: int, size: int) -> int:
            reason = function()  # type: ignore[operator]
            if not isinstance(reason, str):
                return Error.orSuccess
            text = reason.encode()[: size - 1] + b"\0"
            ctypes.memmove(message, text, len(text))
            return Error.orErrorUnknown

        address = function if isinstance(function, int) else self.address(KernelFunction(run))
        released = 0 if release is None else self.address(ReleaseFunction(release))
        return Kernel(name, address, state, released)

    def address(self, callback: Any) -> int:
        """The address of a ctypes callback, which from now on lives as long as this object."""
        self._callbacks.append(callback)
        return ctypes.cast(callback, c_void_p).value or 0

    def launch(self, stream: int | None, function: Callable[[], object] | int, **more: Any) -> None:
        self.call("orLaunchKernel", stream, ctypes.byref(self.kernel(function, **more)))

    def launch_host(self, stream: int | None, function: Callable[[], object]) -> None:
        callback = HostFunction(lambda _data: function() and None)
        self.call("orLaunchHostFunc", stream, self.address(callback), None)

    # Graphs

    def begin_capture(self, stream: int | None, mode: int = CaptureMode.orStreamCaptureModeGlobal) -> None:
        self.call("orStreamBeginCapture", stream, mode)

    def end_capture(self, stream: int | None) -> int:
        graph = c_void_p()
        self.call("orStreamEndCapture", stream, ctypes.byref(graph))
        return graph.value or 0

    def capture_status(self, stream: int | None) -> CaptureStatus:
        value = c_int()
        self.call("orStreamIsCapturing", stream, ctypes.byref(value))
        return CaptureStatus(value.value)

    def capture_id(self, stream: int | None) -> int:
        status, number = c_int(), c_uint64()
        self.call("orStreamGetCaptureInfo", stream, ctypes.byref(status), ctypes.byref(number))
        return number.value

    def launch_graph(self, graph: int, stream: int | None) -> None:
        self.call("orGraphLaunch", graph, stream)

    def destroy_graph(self, graph: int) -> None:
        self.call("orGraphDestroy", graph)

    def node_count(self, graph: int) -> int:
        value = c_size_t()
        self.call("orGraphGetNodeCount", graph, ctypes.byref(value))
        return value.value

    def print_graph(self, graph: int, path: str | Path) -> None:
        self.call("orGraphDebugDotPrint", graph, str(path).encode())
