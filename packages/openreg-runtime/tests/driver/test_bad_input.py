# SPDX-License-Identifier: BSD-3-Clause
"""Every function refuses null, foreign, destroyed, misaligned and too large arguments."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from .conftest import MIB, RunScript
from .device_api import HEADER, PROTOTYPES, Api, Error, IpcMemHandle, Kernel
from .device_header import Subscriber
from .observer import Observer

VALUE = Error.orErrorInvalidValue
DEVICE = Error.orErrorInvalidDevice
HANDLE = Error.orErrorInvalidResourceHandle
POINTER = Error.orErrorInvalidDevicePointer
MEMORY = Error.orErrorMemoryAllocation
STATE = Error.orErrorIllegalState
DIRECTION = Error.orErrorInvalidMemcpyDirection
HUGE = (1 << 64) - 1


@dataclass(frozen=True)
class Name:
    """An argument that exists only while the test runs."""

    key: str


OUT = Name("out")  # room for any result
STREAM, EVENT = Name("stream"), Name("event")
TIMED = Name("timed")  # an event with timing, recorded and done
DEV, PIN, HOST = Name("device"), Name("pinned"), Name("host")  # 4096 bytes each
INSIDE, PIN_INSIDE = Name("inside device"), Name("inside pinned")
FREED, PIN_FREED = Name("freed device"), Name("freed pinned")
KERNEL = Name("kernel")
GRAPH = Name("graph")
FAULT_KIND = Name("fault kind")
EMPTY_HANDLE = IpcMemHandle()
OWN_HANDLE, DAMAGED_HANDLE = Name("own memory handle"), Name("damaged memory handle")

BAD_DEVICES = (-1, 2, 64, 2**31 - 1, -(2**31))
# Null is the default stream, so it is not here.
BAD_STREAMS = (
    Name("destroyed stream"),
    EVENT,
    Name("misaligned stream"),
    HOST,
    DEV,
    1,
    HUGE,
    1 << 32,
)
BAD_EVENTS = (None, Name("destroyed event"), STREAM, Name("misaligned event"), HOST, 1, HUGE)
BAD_SEMAPHORES = (None, Name("destroyed semaphore"), STREAM, EVENT, GRAPH, HOST, 1, HUGE, 1 << 32)
BAD_GRAPHS = (None, Name("destroyed graph"), STREAM, EVENT, HOST, 1, HUGE)
NOT_ALLOCATED = (HOST, PIN, FREED, 1, HUGE, Name("kernel view"))

Case = tuple[tuple[Any, ...], Error]


def each(bad: tuple[Any, ...], code: Error, before: tuple = (), after: tuple = ()) -> list[Case]:
    """The same call with each of the bad values in one place."""
    return [((*before, value, *after), code) for value in bad]


BAD_KERNELS: tuple[Any, ...] = (
    None,
    Name("kernel without function"),
    Name("kernel without name"),
)

# Per function: calls, and how each is refused. An empty list: the function has nothing to refuse.
CASES: dict[str, list[Case]] = {
    "orGetErrorName": [],
    "orGetErrorString": [],
    "orGetLastError": [],
    "orPeekAtLastError": [],
    "orGetLastErrorMessage": [],
    "orDriverIsUsable": [],
    "orDeviceSynchronize": [],
    "orDeviceReset": [],
    "orGetDeviceCount": [((None,), VALUE)],
    "orGetDevice": [((None,), VALUE)],
    "orSetDevice": each(BAD_DEVICES, DEVICE),
    "orGetDeviceProperties": [((None, 0), VALUE), *each(BAD_DEVICES, DEVICE, (OUT,))],
    "orDeviceGetStats": [((None, 0), VALUE), *each(BAD_DEVICES, DEVICE, (OUT,))],
    "orDeviceGetError": each(BAD_DEVICES, DEVICE),
    "orDeviceGetStreamPriorityRange": [((None, OUT), VALUE), ((OUT, None), VALUE)],
    "orDeviceCanAccessPeer": [
        ((None, 0, 1), VALUE),
        *each(BAD_DEVICES, DEVICE, (OUT,), (0,)),
        *each(BAD_DEVICES, DEVICE, (OUT, 0)),
    ],
    "orDeviceGetUtilization": [((None, 0), VALUE), *each(BAD_DEVICES, DEVICE, (OUT,))],
    "orGetEngineCount": [((None,), VALUE)],
    "orEngineGetStats": [((None, 0), VALUE), *each((-1, 2, 2**31 - 1), VALUE, (OUT,))],
    "orSetFaults": each(
        tuple(
            b"alloc alloc: alloc:0 alloc:-1 alloc:x alloc:1@2 alloc:1@ alloc:1@-1 free:1 alloc:1, ,alloc:1 copy:1@1@1"
            b" alloc:99999999999999999999 alloc:1;copy:1".split()
        ),
        VALUE,
    ),
    "orRegisterFaultKind": [
        ((None, b"kind"), VALUE),
        *each((None, b"", b"Upper", b"two words", b"one1", b"a:b", b"a,b"), VALUE, (OUT,)),
    ],
    "orCountForFault": [
        ((FAULT_KIND, 0, None), VALUE),
        *each((-1, 0, 3, 2**31 - 1), VALUE, (), (0, OUT)),
        *each(BAD_DEVICES, DEVICE, (FAULT_KIND,), (OUT,)),
    ],
    "orDriverGetVersion": [((None,), VALUE)],
    "orMalloc": [((None, 4096), VALUE), ((None, 0), VALUE), ((OUT, HUGE), MEMORY)],
    "orFree": each((*NOT_ALLOCATED, INSIDE), POINTER),
    "orMallocHost": [((None, 4096), VALUE), ((None, 0), VALUE), ((OUT, HUGE), MEMORY)],
    "orFreeHost": each((HOST, DEV, PIN_FREED, PIN_INSIDE, 1, HUGE), VALUE),
    "orMemGetInfo": [((None, OUT), VALUE), ((OUT, None), VALUE)],
    "orPointerGetAttributes": [((None, DEV), VALUE)],
    "orMemGetAddressRange": [
        ((None, OUT, DEV), VALUE),
        ((OUT, None, DEV), VALUE),
        *each((None, *NOT_ALLOCATED), POINTER, (OUT, OUT)),
    ],
    "orGetKernelViewOffset": [((None,), VALUE)],
    "orMemcpy": [
        ((None, HOST, 1, 4), VALUE),
        ((DEV, None, 1, 4), VALUE),
        ((DEV, HOST, 4097, 1), POINTER),
        ((HOST, DEV, HUGE, 2), POINTER),
        ((INSIDE, HOST, 4096, 1), POINTER),
        ((FREED, HOST, 1, 1), POINTER),
        ((HOST, FREED, 1, 2), POINTER),
        ((DEV, FREED, 1, 3), POINTER),
        *each((0, 2, 3, 5, -1, 2**31 - 1), DIRECTION, (DEV, HOST, 1)),
    ],
    "orMemcpyAsync": [
        ((None, PIN, 1, 4, STREAM), VALUE),
        ((DEV, None, 1, 4, STREAM), VALUE),
        ((DEV, PIN, 4097, 1, STREAM), POINTER),
        ((DEV, FREED, 1, 3, STREAM), POINTER),
        ((DEV, PIN, 1, 2, STREAM), DIRECTION),
        *each(BAD_STREAMS, HANDLE, (DEV, PIN, 1, 4)),
        *each(BAD_STREAMS, HANDLE, (DEV, HOST, 1, 4)),
        *each(BAD_STREAMS, HANDLE, (HOST, DEV, 1, 4)),
        *each(BAD_STREAMS, HANDLE, (DEV, PIN, 0, 4)),
    ],
    "orTryMemcpyToHost": [
        ((None, DEV, 1, STREAM), VALUE),
        ((HOST, None, 1, STREAM), VALUE),
        ((HOST, FREED, 1, STREAM), POINTER),
        ((HOST, INSIDE, 4096, STREAM), POINTER),
        ((HOST, DEV, HUGE, STREAM), POINTER),
        ((HOST, HOST, 1, STREAM), DIRECTION),
        ((DEV, DEV, 1, STREAM), DIRECTION),
        *each(BAD_STREAMS, HANDLE, (HOST, DEV, 1)),
        *each(BAD_STREAMS, HANDLE, (HOST, DEV, 0)),
    ],
    "orMemset": [
        *each((None, *NOT_ALLOCATED), POINTER, (), (0, 1)),
        ((DEV, 0, 4097), POINTER),
        ((INSIDE, 0, 4096), POINTER),
        ((DEV, 0, HUGE), POINTER),
    ],
    "orMemsetAsync": [
        *each((None, *NOT_ALLOCATED), POINTER, (), (0, 1, STREAM)),
        ((DEV, 0, HUGE, STREAM), POINTER),
        *each(BAD_STREAMS, HANDLE, (DEV, 0, 1)),
        *each(BAD_STREAMS, HANDLE, (DEV, 0, 0)),
    ],
    "orMemcpyPeer": [
        ((None, 0, DEV, 0, 1), VALUE),
        *each((HOST, PIN, FREED, 1, HUGE), POINTER, (), (0, DEV, 0, 1)),
        *each((HOST, PIN, FREED, 1, HUGE), POINTER, (DEV, 0), (0, 1)),
        ((DEV, 0, None, 0, 1), VALUE),
        ((DEV, 1, DEV, 0, 1), POINTER),
        ((DEV, 0, DEV, 1, 1), POINTER),
        ((DEV, 0, DEV, 0, HUGE), POINTER),
        ((INSIDE, 0, DEV, 0, 4096), POINTER),
        *each(BAD_DEVICES, DEVICE, (DEV,), (DEV, 0, 1)),
        *each(BAD_DEVICES, DEVICE, (DEV, 0, DEV), (1,)),
        *each(BAD_DEVICES, DEVICE, (DEV, 0, DEV), (0,)),
    ],
    "orMemcpyPeerAsync": [
        ((HOST, 0, DEV, 0, 1, STREAM), POINTER),
        ((DEV, 0, DEV, 1, 1, STREAM), POINTER),
        ((DEV, 0, FREED, 0, 1, STREAM), POINTER),
        ((DEV, 0, DEV, 0, HUGE, STREAM), POINTER),
        *each(BAD_DEVICES, DEVICE, (DEV,), (DEV, 0, 1, STREAM)),
        *each(BAD_STREAMS, HANDLE, (DEV, 0, DEV, 0, 1)),
        *each(BAD_STREAMS, HANDLE, (DEV, 0, DEV, 0, 0)),
    ],
    "orIpcGetMemHandle": [((None, DEV), VALUE), *each((None, *NOT_ALLOCATED, INSIDE), POINTER, (OUT,))],
    "orIpcOpenMemHandle": [
        ((None, OWN_HANDLE, 0), VALUE),
        *each((EMPTY_HANDLE, DAMAGED_HANDLE, OWN_HANDLE), VALUE, (OUT,), (0,)),
        *each((1, 2**32 - 1), VALUE, (OUT, OWN_HANDLE)),
    ],
    "orIpcCloseMemHandle": each((None, *NOT_ALLOCATED, DEV, INSIDE), POINTER),
    "orStreamCreate": [((None,), VALUE)],
    "orStreamCreateWithPriority": [
        ((None, 0, 0), VALUE),
        *each((1, 2**32 - 1), VALUE, (OUT,), (0,)),
    ],
    "orDeviceGetDefaultStream": [((None, 0), VALUE), *each(BAD_DEVICES, DEVICE, (OUT,))],
    "orStreamDestroy": each((None, Name("default stream"), *BAD_STREAMS), HANDLE),
    "orStreamQuery": each(BAD_STREAMS, HANDLE),
    "orStreamSynchronize": each(BAD_STREAMS, HANDLE),
    "orStreamWaitEvent": [
        *each(BAD_STREAMS, HANDLE, (), (EVENT, 0)),
        *each(BAD_EVENTS, HANDLE, (STREAM,), (0,)),
        *each((1, 2**32 - 1), VALUE, (STREAM, EVENT)),
    ],
    "orStreamGetPriority": [((STREAM, None), VALUE), *each(BAD_STREAMS, HANDLE, (), (OUT,))],
    "orStreamGetDevice": [((STREAM, None), VALUE), *each(BAD_STREAMS, HANDLE, (), (OUT,))],
    "orEventCreate": [((None,), VALUE)],
    "orEventCreateWithFlags": [((None, 0), VALUE), *each((2, 3, 2**32 - 1), VALUE, (OUT,))],
    "orEventDestroy": each(BAD_EVENTS, HANDLE),
    "orEventRecord": [
        *each(BAD_EVENTS, HANDLE, (), (STREAM,)),
        *each(BAD_STREAMS, HANDLE, (EVENT,)),
    ],
    "orEventQuery": each(BAD_EVENTS, HANDLE),
    "orEventSynchronize": each(BAD_EVENTS, HANDLE),
    "orEventElapsedTime": [
        ((None, TIMED, TIMED), VALUE),
        *each(BAD_EVENTS, HANDLE, (OUT,), (TIMED,)),
        *each(BAD_EVENTS, HANDLE, (OUT, TIMED)),
        ((OUT, EVENT, TIMED), VALUE),
        ((OUT, TIMED, EVENT), VALUE),
    ],
    "orSemaphoreCreate": [((None, 0), VALUE)],
    "orSemaphoreDestroy": each(BAD_SEMAPHORES, HANDLE),
    "orSemaphoreSignal": each(BAD_SEMAPHORES, HANDLE, (), (1,)),
    "orSemaphoreFail": [
        *each(BAD_SEMAPHORES, HANDLE, (), (1, None)),
        *each((0, 2, 18, -1, 2**31 - 1), VALUE, (Name("semaphore"),), (None,)),
    ],
    "orSemaphoreGetValue": [((Name("semaphore"), None), VALUE), *each(BAD_SEMAPHORES, HANDLE, (), (OUT,))],
    "orStreamWaitSemaphore": [
        *each(BAD_STREAMS, HANDLE, (), (Name("semaphore"), 1)),
        *each(BAD_SEMAPHORES, HANDLE, (STREAM,), (1,)),
        *each(BAD_SEMAPHORES, HANDLE, (STREAM,), (0,)),
    ],
    "orThreadSetProgress": each((-1, 2, 2**31 - 1), VALUE),
    "orLaunchKernel": [
        *each(BAD_KERNELS, VALUE, (STREAM,)),
        *each(BAD_STREAMS, HANDLE, (), (KERNEL,)),
    ],
    "orLaunchKernelWithOperands": [
        *each(BAD_KERNELS, VALUE, (STREAM,), (None, 0)),
        *each(BAD_STREAMS, HANDLE, (), (KERNEL, None, 0)),
        ((STREAM, KERNEL, None, 1), VALUE),
    ],
    "orTryLaunchKernel": [
        *each(BAD_KERNELS, VALUE, (STREAM,)),
        *each(BAD_STREAMS, HANDLE, (), (KERNEL,)),
    ],
    "orTryLaunchKernelWithOperands": [
        *each(BAD_KERNELS, VALUE, (STREAM,), (None, 0)),
        *each(BAD_STREAMS, HANDLE, (), (KERNEL, None, 0)),
        ((STREAM, KERNEL, None, 1), VALUE),
    ],
    "orOperandsWanted": [],
    "orSetEnqueueHook": [],
    "orSubscribe": [
        ((None, None, OUT), VALUE),
        ((Name("table"), None, None), VALUE),
        ((Name("empty table"), None, OUT), VALUE),
    ],
    "orUnsubscribe": each((None, Name("ended subscription"), STREAM, EVENT, GRAPH, HOST, 1, HUGE, 1 << 32), HANDLE),
    "orLaunchHostFunc": [
        ((STREAM, None, None), VALUE),
        *each(BAD_STREAMS, HANDLE, (), (Name("function"), None)),
    ],
    "orStreamDelay": each(BAD_STREAMS, HANDLE, (), (0,)),
    "orStreamGetStats": [((STREAM, None), VALUE), *each(BAD_STREAMS, HANDLE, (), (OUT,))],
    "orStreamBeginCapture": [*each((-1, 3, 2**31 - 1), VALUE, (STREAM,)), *each(BAD_STREAMS, HANDLE, (), (0,))],
    "orStreamEndCapture": [((STREAM, None), VALUE), ((STREAM, Name("graph out")), STATE)],
    "orStreamIsCapturing": [((STREAM, None), VALUE), *each(BAD_STREAMS, HANDLE, (), (OUT,))],
    "orStreamGetCaptureInfo": [
        ((STREAM, None, OUT), VALUE),
        ((STREAM, OUT, None), VALUE),
        *each(BAD_STREAMS, HANDLE, (), (OUT, OUT)),
    ],
    "orGraphLaunch": [
        *each(BAD_GRAPHS, HANDLE, (), (STREAM,)),
        *each(BAD_STREAMS, HANDLE, (GRAPH,)),
        ((GRAPH, Name("default stream")), VALUE),  # of another device
    ],
    "orGraphDestroy": each(BAD_GRAPHS, HANDLE),
    "orGraphGetNodeCount": [((GRAPH, None), VALUE), *each(BAD_GRAPHS, HANDLE, (), (OUT,))],
    "orGraphDebugDotPrint": [
        ((GRAPH, None), VALUE),
        ((GRAPH, b"no/such/folder/graph.dot"), VALUE),
        *each(BAD_GRAPHS, HANDLE, (), (b"graph.dot",)),
    ],
}

CALLS = [(name, *case) for name, cases in CASES.items() for case in cases]


def test_no_function_is_forgotten() -> None:
    declared = re.findall(r"OPENREG_API [\w ]*?\**\s*\b(or\w+)\(", HEADER.read_text())
    assert len(declared) == len(set(declared)) > 40
    assert set(CASES) == set(declared)
    assert set(PROTOTYPES) == set(declared)


@pytest.fixture
def things(api: Api) -> Iterator[dict[str, Any]]:
    """What the names of the table stand for."""
    host = ctypes.create_string_buffer(4096)
    device = api.malloc(4096)
    freed = api.malloc(MIB)  # beyond `device`, so that a hole follows a live allocation
    pinned, pin_freed = api.malloc_host(4096), api.malloc_host(4096)
    api.free(freed)
    api.free_host(pin_freed)
    dead_stream, dead_event = api.stream(), api.event()
    stream, event, timed = api.stream(), api.event(), api.event(timed=True)
    semaphore, dead_semaphore = api.semaphore(), api.semaphore()
    api.destroy_semaphore(dead_semaphore)
    observer = Observer(api)
    observer.end()
    api.destroy_stream(dead_stream)
    api.destroy_event(dead_event)
    api.record(event, stream)
    api.record(timed, stream)
    api.synchronize()
    kernel = api.kernel(lambda: None)
    graphs = []
    for _ in range(2):
        api.begin_capture(stream)
        graphs.append(api.end_capture(stream))
    api.destroy_graph(graphs[1])
    own_handle = IpcMemHandle.from_buffer_copy(api.export(device))
    damaged_handle = IpcMemHandle.from_buffer_copy(bytes(own_handle)[:40] + b"?" + bytes(own_handle)[41:])
    yield {
        "out": ctypes.create_string_buffer(b"\xa5" * 256, 256),
        "host": host,
        "device": device,
        "pinned": pinned,
        "inside device": device + 1,
        "inside pinned": pinned + 1,
        "freed device": freed + 8192,
        "freed pinned": pin_freed,
        "kernel view": api.kernel_view(device),
        "stream": stream,
        "default stream": api.default_stream(1),
        "destroyed stream": dead_stream,
        "misaligned stream": stream + (1 << 29),
        "event": event,
        "timed": timed,
        "destroyed event": dead_event,
        "misaligned event": event + 1000,
        "semaphore": semaphore,
        "destroyed semaphore": dead_semaphore,
        "table": ctypes.byref(observer.table),
        "empty table": ctypes.byref(Subscriber()),
        "ended subscription": observer.handle,
        "kernel": ctypes.byref(kernel),
        "kernel without function": ctypes.byref(Kernel(b"name", 0, 0, 0)),
        "kernel without name": ctypes.byref(Kernel(None, kernel.function, 0, 0)),
        "function": kernel.function,
        "fault kind": api.register_fault_kind("kind"),
        "graph": graphs[0],
        "destroyed graph": graphs[1],
        "graph out": ctypes.create_string_buffer(8),
        "own memory handle": own_handle,
        "damaged memory handle": damaged_handle,
    }
    api.destroy_graph(graphs[0])
    api.destroy_stream(stream)
    api.destroy_event(event)
    api.destroy_event(timed)
    api.destroy_semaphore(semaphore)
    api.free(device)
    api.free_host(pinned)


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    CALLS,
    ids=[f"{name}-{number}" for number, (name, _, _) in enumerate(CALLS)],
)
def test_bad_input_is_refused(
    api: Api, things: dict[str, Any], name: str, arguments: tuple[Any, ...], code: Error
) -> None:
    real = [things[item.key] if isinstance(item, Name) else item for item in arguments]
    before = (api.memory_info(), api.device(), bytes(api.stats(0)))
    assert getattr(api.c, name)(*real) == code
    message = api.message()
    assert message.split(":")[0] in (name, f"{name}WithPriority", f"{name}WithFlags")
    assert len(message) > len(name) + 10
    assert api.c.orGetLastError() == code
    # Nothing was changed, and the device works.
    assert things["out"].raw == b"\xa5" * 256
    assert (api.memory_info(), api.device(), bytes(api.stats(0))) == before
    api.upload(things["device"], b"works")
    assert api.download(things["device"], 5) == b"works"


def test_the_first_event_is_not_taken_for_the_first_stream(run_script: RunScript) -> None:
    """In a fresh process both are number one of their kind."""
    done = run_script(
        """
        streams, event = [api.default_stream(0), api.stream()], api.event()
        assert api.c.orStreamQuery(event) == Error.orErrorInvalidResourceHandle
        for stream in streams:
            assert api.c.orEventQuery(stream) == Error.orErrorInvalidResourceHandle
            assert api.c.orEventDestroy(stream) == Error.orErrorInvalidResourceHandle
        print("ok")
        """
    )
    assert done.output.split() == ["ok"], done.errors
