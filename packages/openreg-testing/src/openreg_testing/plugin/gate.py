# SPDX-License-Identifier: BSD-3-Clause
"""A gate: a kernel of openreg that runs until the test opens the gate, however fast the machine is.

The kernel is a C function that reads from a socket until the gate is opened, which sends the end of the file. It needs
no Python interpreter, so it can end while a host thread holds the GIL and waits. If the gate is never opened, the
socket's time limit ends the kernel, and the device fails with an error that names the gate.

All kernels of all devices wait behind a closed gate, because the driver has one compute engine for all devices. So do
its other tasks: fills, host functions and copies of less than 1 MiB. On other streams, delays, event records and waits
do not wait for the gate, because they occupy no engine. Nor do larger copies, which the copy engine executes, except
with a seeded schedule or in simulated time.
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

from openreg_testing.plugin.devices import INSTALL, load_torch

LONGEST = 60  # seconds until a closed gate fails the device
_NAME = b"a gate that was not opened in time"  # the driver keeps the address and prints the name if the kernel fails
_HEAD_START = 0.05  # seconds within which a call that fails to wait would return


class _OrKernel(ctypes.Structure):
    """The structure orKernel of openreg.h, for a function of the C library."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
    )


def driver() -> ctypes.CDLL:
    """Returns the driver that torch uses, by its C interface. Raises RuntimeError if it is not installed."""
    spec = importlib.util.find_spec("openreg_runtime")
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    found = [path for folder in folders for path in Path(folder, "lib").glob("*openreg.*")]
    if not found:
        raise RuntimeError(f"Gate: openreg-runtime is not installed; to install it: {INSTALL}")
    library = ctypes.CDLL(str(found[0]))
    library.orGetLastErrorMessage.restype = ctypes.c_char_p
    return library


class Gate:
    """A gate that stops streams from ``close()`` to ``open()``; it can be closed again.

    Tests use the fixture ``gate``. A program without pytest that creates a gate calls ``end()``. Not thread-safe.
    """

    def __init__(self) -> None:
        self.is_open = True
        self._driver = driver()
        self._read = ctypes.cast(ctypes.pythonapi.read, ctypes.c_void_p)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._opener: threading.Timer | None = None

    def close(self, stream: Any = None) -> None:
        """Makes tasks that are enqueued later on ``stream``, by default the current stream, wait for ``open()``.

        A gate that stays closed for a minute fails the device. Raises RuntimeError if the device reports an error.
        """
        import torch

        stream = stream or torch.get_device_module("openreg").current_stream()
        reader, writer = socket.socketpair()
        self._pairs.append((reader, writer))
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", LONGEST, 0))
        kernel = _OrKernel(_NAME, self._read, reader.fileno(), None)
        if self._driver.orLaunchKernel(ctypes.c_void_p(stream.native_handle), ctypes.byref(kernel)):
            error = self._driver.orGetLastErrorMessage().decode()
            raise RuntimeError(f"Gate.close(): the gate cannot be closed: {error}")
        self.is_open = False

    def open(self) -> None:
        """Opens the gate, so that the streams continue."""
        self.is_open = True
        for _, writer in self._pairs:
            writer.shutdown(socket.SHUT_WR)

    def open_soon(self) -> None:
        """Opens the gate after 50 ms from another thread, while the host waits in its next call.

        That call must not return before ``is_open`` is true.
        """
        self._opener = threading.Timer(_HEAD_START, self.open)
        self._opener.start()

    def end(self) -> None:
        """Opens the gate, synchronizes the devices and closes the sockets."""
        import torch

        if self._opener is not None:
            self._opener.join()
        self.open()
        openreg = torch.get_device_module("openreg")
        for device in range(openreg.device_count() if self._pairs else 0):
            with contextlib.suppress(torch.AcceleratorError):  # the test that failed the device reports the error
                openreg.synchronize(device)
        for pair in self._pairs:
            for end in pair:
                end.close()
        self._pairs.clear()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Opens a gate that the test left closed, before other hooks synchronize the device."""
    try:
        return (yield)
    finally:
        held = getattr(item, "funcargs", {}).get("gate")
        if isinstance(held, Gate):
            held.open()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Yields an open gate; once closed, it stops tasks of openreg until the test opens it or ends."""
    if not hasattr(load_torch("the fixture gate"), "openreg"):
        pytest.skip("a gate stops tasks of openreg, which is not loaded")
    if not hasattr(ctypes.pythonapi, "read"):
        pytest.skip("the kernel of a gate needs a C library whose read() accepts a socket")
    held = Gate()
    yield held
    held.end()
