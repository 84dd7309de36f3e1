# SPDX-License-Identifier: BSD-3-Clause
"""A gate: work of openreg that ends when the test says so, for whatever has to be still running on any machine.

The work is a kernel in C that reads from a socket: opening the gate is the end of the file. It needs no interpreter, so
a host that waits with the GIL held cannot keep it from ending, and the socket's own time limit ends one that nobody
opens: the device then fails with an error that says so.

All kernels of all devices wait behind a closed gate, because one engine runs them; the pauses, marks and waits of other
streams do not.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import socket
import struct
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

LONGEST = 60  # seconds
_NAME = b"a gate that nobody opened in time"  # the driver keeps the address, and shows it when the kernel fails
_HEAD_START = 0.05  # seconds in which a call that forgets to wait would return


class _Kernel(ctypes.Structure):
    """orKernel, with a function of the C library."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
    )


def driver() -> ctypes.CDLL:
    """The device that torch uses, by its interface in C. Raises RuntimeError where it is not installed."""
    spec = importlib.util.find_spec("openreg_runtime")
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    found = [path for folder in folders for path in Path(folder, "lib").glob("*openreg.*")]
    if not found:
        raise RuntimeError("a gate holds the work of openreg, and openreg-runtime is not installed")
    library = ctypes.CDLL(str(found[0]))
    library.orGetLastErrorMessage.restype = ctypes.c_char_p
    return library


class Gate:
    """Holds streams from ``close()`` to ``open()``; may be closed again.

    For programs without pytest; who makes one calls ``end()``. Methods are called from one thread.
    """

    def __init__(self) -> None:
        self.is_open = True
        self._driver = driver()
        self._read = ctypes.cast(ctypes.pythonapi.read, ctypes.c_void_p)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._opener: threading.Timer | None = None

    def close(self, stream: Any = None) -> None:
        """What is enqueued on the stream, or the current one, from now on runs after ``open()``.

        A gate that stays closed for a minute fails the device.
        """
        import torch

        stream = stream or torch.get_device_module("openreg").current_stream()
        reader, writer = socket.socketpair()
        self._pairs.append((reader, writer))
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", LONGEST, 0))
        kernel = _Kernel(_NAME, self._read, reader.fileno(), None)
        if self._driver.orLaunchKernel(ctypes.c_void_p(stream.native_handle), ctypes.byref(kernel)):
            raise RuntimeError(f"the gate cannot be closed: {self._driver.orGetLastErrorMessage().decode()}")
        self.is_open = False

    def open(self) -> None:
        """Lets the work go on."""
        self.is_open = True
        for _, writer in self._pairs:
            writer.shutdown(socket.SHUT_WR)

    def open_soon(self) -> None:
        """Opens while the host waits in its next call, which therefore must not return before ``is_open``."""
        self._opener = threading.Timer(_HEAD_START, self.open)
        self._opener.start()

    def end(self) -> None:
        """Opens, and gives everything back when nothing uses it any more."""
        import torch

        if self._opener is not None:
            self._opener.join()
        self.open()
        openreg = torch.get_device_module("openreg")
        for device in range(openreg.device_count() if self._pairs else 0):
            with contextlib.suppress(torch.AcceleratorError):  # of a failed device, which is the test's own business
                openreg.synchronize(device)
        for pair in self._pairs:
            for end in pair:
                end.close()
        self._pairs.clear()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Opens what the test left closed, before anybody else waits for the test's work."""
    try:
        return (yield)
    finally:
        held = getattr(item, "funcargs", {}).get("gate")
        if isinstance(held, Gate):
            held.open()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate, open at first: holds the work of openreg until the test opens it, or ends."""
    if importlib.util.find_spec("openreg_runtime") is None:
        pytest.skip("a gate holds the work of openreg, which is not installed")
    if not hasattr(ctypes.pythonapi, "read"):
        pytest.skip("the C library has no read() that takes a socket, as the kernel of a gate does")
    held = Gate()
    yield held
    held.end()
