# SPDX-License-Identifier: BSD-3-Clause
"""The constants, structures and prototypes of openreg.h for ctypes, under the names of the header."""

from __future__ import annotations

import ctypes
import enum
from ctypes import POINTER, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

HEADER = Path(__file__).resolve().parents[2] / "csrc" / "driver" / "include" / "openreg.h"


class Error(enum.IntEnum):
    """orError_t."""

    orSuccess = 0
    orErrorUnknown = 1
    orErrorNotReady = 2
    orErrorInvalidValue = 3
    orErrorMemoryAllocation = 4
    orErrorInvalidDevice = 5
    orErrorInvalidResourceHandle = 6
    orErrorInvalidDevicePointer = 7
    orErrorInvalidMemcpyDirection = 8
    orErrorInvalidConfiguration = 9
    orErrorLaunchFailure = 10
    orErrorForkedChild = 11
    orErrorDeinitialized = 12
    orErrorNotSupported = 13
    orErrorDeviceLost = 14
    orErrorStreamCaptureUnsupported = 15
    orErrorStreamCaptureInvalidated = 16
    orErrorIllegalState = 17


class Kind(enum.IntEnum):
    """orMemcpyKind."""

    orMemcpyHostToHost = 0
    orMemcpyHostToDevice = 1
    orMemcpyDeviceToHost = 2
    orMemcpyDeviceToDevice = 3
    orMemcpyDefault = 4


class MemoryType(enum.IntEnum):
    """orMemoryType."""

    orMemoryTypeUnmanaged = 0
    orMemoryTypeHost = 1
    orMemoryTypeDevice = 2


class EventFlags(enum.IntEnum):
    """orEventFlags."""

    orEventDisableTiming = 0
    orEventEnableTiming = 1


class CaptureStatus(enum.IntEnum):
    """orStreamCaptureStatus."""

    orStreamCaptureStatusNone = 0
    orStreamCaptureStatusActive = 1
    orStreamCaptureStatusInvalidated = 2


class CaptureMode(enum.IntEnum):
    """orStreamCaptureMode."""

    orStreamCaptureModeGlobal = 0
    orStreamCaptureModeThreadLocal = 1
    orStreamCaptureModeRelaxed = 2


class PointerAttributes(ctypes.Structure):
    """orPointerAttributes."""

    _fields_ = (("type", c_int), ("device", c_int), ("pointer", c_void_p))


class DeviceProp(ctypes.Structure):
    """orDeviceProp."""

    _fields_ = (
        ("name", c_char * 64),
        ("totalGlobalMem", c_size_t),
        ("multiProcessorCount", c_int),
        ("major", c_int),
        ("minor", c_int),
    )


class DeviceStats(ctypes.Structure):
    """orDeviceStats."""

    _fields_ = (
        ("launches", c_uint64),
        ("copies", c_uint64),
        ("bytes_copied", c_uint64),
        ("busy_nanoseconds", c_uint64),
        ("allocated_bytes", c_size_t),
        ("peak_allocated_bytes", c_size_t),
    )


class StreamStats(ctypes.Structure):
    """orStreamStats."""

    _fields_ = tuple(
        (name, c_uint64)
        for name in ("launches", "copies", "bytes_copied", "busy_nanoseconds", "submitted", "completed")
    )


class EngineStats(ctypes.Structure):
    """orEngineStats."""

    _fields_ = (("name", c_char * 32), ("tasks", c_uint64), ("busy_nanoseconds", c_uint64))


class IpcMemHandle(ctypes.Structure):
    """orIpcMemHandle_t."""

    _fields_ = (("reserved", c_char * 128),)


KernelFunction = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
ReleaseFunction = ctypes.CFUNCTYPE(None, c_void_p)
HostFunction = ctypes.CFUNCTYPE(None, c_void_p)


class Kernel(ctypes.Structure):
    """orKernel; the functions are addresses, so that they may also be native ones."""

    _fields_ = (
        ("name", c_char_p),
        ("function", c_void_p),
        ("state", c_void_p),
        ("release", c_void_p),
    )


class Access(enum.IntEnum):
    """orAccess."""

    orAccessRead = 1
    orAccessWrite = 2
    orAccessReadWrite = 3


class Operand(ctypes.Structure):
    """orOperand."""

    _fields_ = (("address", c_void_p), ("size", c_size_t), ("access", c_int))


class TaskKind(enum.IntEnum):
    """orTaskKind."""

    orTaskKernel = 0
    orTaskHostFunction = 1
    orTaskCopy = 2
    orTaskFill = 3
    orTaskDelay = 4
    orTaskEventRecord = 5
    orTaskEventWait = 6
    orTaskSemaphoreWait = 7


class TaskInfo(ctypes.Structure):
    """orTaskInfo."""

    _fields_ = (
        ("correlation", c_uint64),
        ("kind", c_int),
        ("device", c_int),
        ("stream", c_void_p),
        ("queue", c_uint32),
        ("ticket", c_uint64),
        ("name", c_char_p),
        ("bytes", c_uint64),
        ("graph_launch", c_uint64),
        ("node", c_uint64),
        ("event", c_void_p),
        ("waited_queue", c_uint32),
        ("waited_ticket", c_uint64),
        ("semaphore", c_void_p),
        ("value", c_uint64),
        ("operands", POINTER(Operand)),
        ("operand_count", c_size_t),
    )


class TaskCompletion(ctypes.Structure):
    """orTaskCompletion."""

    _fields_ = (
        ("correlation", c_uint64),
        ("kind", c_int),
        ("device", c_int),
        ("stream", c_void_p),
        ("queue", c_uint32),
        ("ticket", c_uint64),
        ("engine", c_int),
        ("launched", c_uint64),
        ("begin", c_uint64),
        ("end", c_uint64),
        ("status", c_int),
        ("skipped", c_int),
    )


class SyncKind(enum.IntEnum):
    """orSyncKind."""

    orSyncEventRecord = 0
    orSyncEventWait = 1
    orSyncEvent = 2
    orSyncStream = 3
    orSyncDevice = 4
    orSyncEventQuery = 5
    orSyncStreamQuery = 6
    orSyncSemaphoreSignal = 7
    orSyncSemaphoreWait = 8


class SyncInfo(ctypes.Structure):
    """orSyncInfo."""

    _fields_ = (
        ("kind", c_int),
        ("device", c_int),
        ("stream", c_void_p),
        ("queue", c_uint32),
        ("ticket", c_uint64),
        ("event", c_void_p),
        ("waiting", c_void_p),
        ("waiting_queue", c_uint32),
        ("semaphore", c_void_p),
        ("value", c_uint64),
        ("time", c_uint64),
    )


class MemoryAction(enum.IntEnum):
    """orMemoryAction."""

    orMemoryAllocated = 0
    orMemoryReleased = 1
    orMemoryImported = 2
    orMemoryClosed = 3


class MemoryInfo(ctypes.Structure):
    """orMemoryInfo."""

    _fields_ = (("action", c_int), ("type", c_int), ("device", c_int), ("address", c_void_p), ("size", c_size_t))


SUBSCRIBER_VERSION = 1
SUBSCRIBE_OPERANDS = 1
SUBSCRIBE_TIME = 2


class Subscriber(ctypes.Structure):
    """orSubscriber; the callbacks are addresses, so that they may also be native ones."""

    _fields_ = (
        ("size", c_size_t),
        ("version", c_uint),
        ("flags", c_uint),
        ("submit", c_void_p),
        ("complete", c_void_p),
        ("sync", c_void_p),
        ("memory", c_void_p),
        ("capture", c_void_p),
        ("duration", c_void_p),
        ("engine", c_void_p),
        ("host", c_void_p),
    )


# They take the GIL while the device's lock is held. That is no deadlock, because ctypes.CDLL gives the GIL up before it
# calls a function that takes the lock.
CALLBACKS = {
    "submit": ctypes.CFUNCTYPE(None, c_void_p, POINTER(TaskInfo), POINTER(c_uint64)),
    "complete": ctypes.CFUNCTYPE(None, c_void_p, POINTER(TaskCompletion)),
    "sync": ctypes.CFUNCTYPE(None, c_void_p, POINTER(SyncInfo)),
    "memory": ctypes.CFUNCTYPE(None, c_void_p, POINTER(MemoryInfo)),
    "capture": ctypes.CFUNCTYPE(None, c_void_p, POINTER(TaskInfo)),
    "duration": ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(TaskInfo), POINTER(c_uint64)),
    "engine": ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(TaskInfo)),
    "host": ctypes.CFUNCTYPE(c_uint64, c_void_p, POINTER(TaskInfo)),
}


# Every exported function: result and arguments.
PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "orGetErrorName": (c_char_p, (c_int,)),
    "orGetErrorString": (c_char_p, (c_int,)),
    "orGetLastError": (c_int, ()),
    "orPeekAtLastError": (c_int, ()),
    "orGetLastErrorMessage": (c_char_p, ()),
    "orGetDeviceCount": (c_int, (c_void_p,)),
    "orGetDevice": (c_int, (c_void_p,)),
    "orSetDevice": (c_int, (c_int,)),
    "orGetDeviceProperties": (c_int, (c_void_p, c_int)),
    "orDeviceGetStats": (c_int, (c_void_p, c_int)),
    "orDeviceSynchronize": (c_int, ()),
    "orDeviceReset": (c_int, ()),
    "orDeviceGetError": (c_int, (c_int,)),
    "orDeviceGetUtilization": (c_int, (c_void_p, c_int)),
    "orGetEngineCount": (c_int, (c_void_p,)),
    "orEngineGetStats": (c_int, (c_void_p, c_int)),
    "orSetFaults": (c_int, (c_char_p,)),
    "orRegisterFaultKind": (c_int, (c_void_p, c_char_p)),
    "orCountForFault": (c_int, (c_int, c_int, c_void_p)),
    "orDeviceGetStreamPriorityRange": (c_int, (c_void_p, c_void_p)),
    "orDeviceCanAccessPeer": (c_int, (c_void_p, c_int, c_int)),
    "orDriverIsUsable": (c_int, ()),
    "orDriverGetVersion": (c_int, (c_void_p,)),
    "orMalloc": (c_int, (c_void_p, c_size_t)),
    "orFree": (c_int, (c_void_p,)),
    "orMallocHost": (c_int, (c_void_p, c_size_t)),
    "orFreeHost": (c_int, (c_void_p,)),
    "orMemGetInfo": (c_int, (c_void_p, c_void_p)),
    "orPointerGetAttributes": (c_int, (c_void_p, c_void_p)),
    "orMemGetAddressRange": (c_int, (c_void_p, c_void_p, c_void_p)),
    "orGetKernelViewOffset": (c_int, (c_void_p,)),
    "orMemcpy": (c_int, (c_void_p, c_void_p, c_size_t, c_int)),
    "orMemcpyAsync": (c_int, (c_void_p, c_void_p, c_size_t, c_int, c_void_p)),
    "orMemset": (c_int, (c_void_p, c_int, c_size_t)),
    "orMemsetAsync": (c_int, (c_void_p, c_int, c_size_t, c_void_p)),
    "orMemcpyPeer": (c_int, (c_void_p, c_int, c_void_p, c_int, c_size_t)),
    "orMemcpyPeerAsync": (c_int, (c_void_p, c_int, c_void_p, c_int, c_size_t, c_void_p)),
    "orIpcGetMemHandle": (c_int, (c_void_p, c_void_p)),
    "orIpcOpenMemHandle": (c_int, (c_void_p, IpcMemHandle, c_uint)),
    "orIpcCloseMemHandle": (c_int, (c_void_p,)),
    "orStreamCreate": (c_int, (c_void_p,)),
    "orStreamCreateWithPriority": (c_int, (c_void_p, c_uint, c_int)),
    "orDeviceGetDefaultStream": (c_int, (c_void_p, c_int)),
    "orStreamDestroy": (c_int, (c_void_p,)),
    "orStreamQuery": (c_int, (c_void_p,)),
    "orStreamSynchronize": (c_int, (c_void_p,)),
    "orStreamWaitEvent": (c_int, (c_void_p, c_void_p, c_uint)),
    "orStreamGetPriority": (c_int, (c_void_p, c_void_p)),
    "orStreamGetDevice": (c_int, (c_void_p, c_void_p)),
    "orEventCreate": (c_int, (c_void_p,)),
    "orEventCreateWithFlags": (c_int, (c_void_p, c_uint)),
    "orEventDestroy": (c_int, (c_void_p,)),
    "orEventRecord": (c_int, (c_void_p, c_void_p)),
    "orEventQuery": (c_int, (c_void_p,)),
    "orEventSynchronize": (c_int, (c_void_p,)),
    "orEventElapsedTime": (c_int, (c_void_p, c_void_p, c_void_p)),
    "orSemaphoreCreate": (c_int, (c_void_p, c_uint64)),
    "orSemaphoreDestroy": (c_int, (c_void_p,)),
    "orSemaphoreSignal": (c_int, (c_void_p, c_uint64)),
    "orSemaphoreFail": (c_int, (c_void_p, c_int, c_char_p)),
    "orSemaphoreGetValue": (c_int, (c_void_p, c_void_p)),
    "orStreamWaitSemaphore": (c_int, (c_void_p, c_void_p, c_uint64)),
    "orThreadSetProgress": (c_int, (c_int,)),
    "orLaunchKernel": (c_int, (c_void_p, POINTER(Kernel))),
    "orLaunchKernelWithOperands": (c_int, (c_void_p, POINTER(Kernel), c_void_p, c_size_t)),
    "orOperandsWanted": (c_int, ()),
    "orSetEnqueueHook": (c_int, (c_void_p,)),
    "orTryMemcpyToHost": (c_int, (c_void_p, c_void_p, c_size_t, c_void_p)),
    "orTryLaunchKernel": (c_int, (c_void_p, POINTER(Kernel))),
    "orTryLaunchKernelWithOperands": (c_int, (c_void_p, POINTER(Kernel), c_void_p, c_size_t)),
    "orSubscribe": (c_int, (c_void_p, c_void_p, c_void_p)),
    "orUnsubscribe": (c_int, (c_void_p,)),
    "orLaunchHostFunc": (c_int, (c_void_p, c_void_p, c_void_p)),
    "orStreamDelay": (c_int, (c_void_p, c_uint64)),
    "orStreamGetStats": (c_int, (c_void_p, c_void_p)),
    "orStreamBeginCapture": (c_int, (c_void_p, c_int)),
    "orStreamEndCapture": (c_int, (c_void_p, c_void_p)),
    "orStreamIsCapturing": (c_int, (c_void_p, c_void_p)),
    "orStreamGetCaptureInfo": (c_int, (c_void_p, c_void_p, c_void_p)),
    "orGraphLaunch": (c_int, (c_void_p, c_void_p)),
    "orGraphDestroy": (c_int, (c_void_p,)),
    "orGraphGetNodeCount": (c_int, (c_void_p, c_void_p)),
    "orGraphDebugDotPrint": (c_int, (c_void_p, c_char_p)),
}
