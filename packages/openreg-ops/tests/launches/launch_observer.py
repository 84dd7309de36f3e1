# SPDX-License-Identifier: BSD-3-Clause
"""Records the tasks that a piece of code submits, as the device reports them to observers (openreg.h, orSubscribe)."""

import contextlib
import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path

import torch
from _platform import DRIVER_LIBRARY

import openreg_runtime

READ, WRITE, UPDATE = 1, 2, 3  # orAccess


class _Operand(ctypes.Structure):
    _fields_ = [("address", c_void_p), ("size", c_size_t), ("access", c_int)]


class _TaskInfo(ctypes.Structure):
    _fields_ = [
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
        ("operands", ctypes.POINTER(_Operand)),
        ("operand_count", c_size_t),
    ]


_CALLBACKS = ("submit", "complete", "sync", "memory", "capture", "duration", "engine", "host")


class _Subscriber(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("version", c_uint),
        ("flags", c_uint),
        *((name, c_void_p) for name in _CALLBACKS),
    ]


_Submit = ctypes.CFUNCTYPE(None, c_void_p, ctypes.POINTER(_TaskInfo), ctypes.POINTER(c_uint64))
_KINDS = {0: "kernel", 2: "copy", 3: "fill"}
_SUBSCRIBE_OPERANDS = 1


@dataclass(frozen=True)
class Range:
    """Bytes that a task reads (1), writes (2) or both (3)."""

    begin: int
    end: int
    access: int

    def overlaps(self, other):
        return self.begin < other.end and other.begin < self.end


@dataclass(frozen=True)
class Task:
    """A kernel, copy or fill; its operands are None if they were not reported."""

    kind: str
    name: str | None
    operands: tuple[Range, ...] | None

    def of(self, tensor):
        """What it does with the memory of a tensor: the accesses, in order, of exactly its bytes."""
        whole = span(tensor)
        return [item.access for item in self.operands if (item.begin, item.end) == (whole.begin, whole.end)]


def span(tensor, access=0):
    """From the first byte of a tensor to its last."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return Range(tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size(), access)


def _driver():
    folder = Path(openreg_runtime.__file__).parent
    (path,) = folder.rglob(DRIVER_LIBRARY)
    return ctypes.CDLL(str(path))


@contextlib.contextmanager
def observe():
    """Gives the list of tasks that are enqueued inside, by code that launches from one thread at a time.

    The callback needs Python, which no other thread may hold while it waits for the device.
    """
    tasks = []

    def note(_user, info, _correlation):
        task = info.contents
        if task.kind in _KINDS:
            told = None
            if task.operands:
                ranges = (task.operands[i] for i in range(task.operand_count))
                told = tuple(Range(item.address, item.address + item.size, item.access) for item in ranges)
            tasks.append(Task(_KINDS[task.kind], task.name.decode() if task.name else None, told))

    callback = _Submit(note)
    table = _Subscriber(ctypes.sizeof(_Subscriber), 1, _SUBSCRIBE_OPERANDS, ctypes.cast(callback, c_void_p))
    driver = _driver()
    handle = c_void_p()
    torch.openreg.synchronize()
    assert driver.orSubscribe(ctypes.byref(table), None, ctypes.byref(handle)) == 0
    try:
        yield tasks
    finally:
        assert driver.orUnsubscribe(handle) == 0
