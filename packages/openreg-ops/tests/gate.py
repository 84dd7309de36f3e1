# SPDX-License-Identifier: BSD-3-Clause
"""A gate: work that ends when the test says so, for whatever has to be still running, however slow the machine is.

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
NAME = b"a gate that nobody opened in time"  # the driver keeps the address, and shows it when the kernel fails
HEAD_START = 0.05  # seconds in which a call that forgets to wait would return


class Kernel(ctypes.Structure):
    """orKernel, with a function of the C library."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
    )


def driver() -> ctypes.CDLL:
    """The device that torch uses."""
    spec = importlib.util.find_spec("openreg_runtime")
    assert spec is not None
    found = [
        path for folder in spec.submodule_search_locations or () for path in Path(folder, "lib").glob("*openreg.*")
    ]
    library = ctypes.CDLL(str(found[0]))
    library.orGetLastErrorMessage.restype = ctypes.c_char_p
    return library


class Gate:
    """Holds streams from close() to open(); may be closed again."""

    def __init__(self) -> None:
        self.is_open = True
        self._driver = driver()
        self._read = ctypes.cast(ctypes.pythonapi.read, ctypes.c_void_p)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._opener: threading.Timer | None = None

    def close(self, stream: Any = None) -> None:
        """What is enqueued on the stream, or the current one, from now on runs after open()."""
        import torch

        stream = stream or torch.openreg.current_stream()
        reader, writer = socket.socketpair()
        self._pairs.append((reader, writer))
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", LONGEST, 0))
        kernel = Kernel(NAME, self._read, reader.fileno(), None)
        code = self._driver.orLaunchKernel(ctypes.c_void_p(stream.native_handle), ctypes.byref(kernel))
        assert code == 0, self._driver.orGetLastErrorMessage().decode()
        self.is_open = False

    def open(self) -> None:
        """Lets the work go on."""
        self.is_open = True
        for _, writer in self._pairs:
            writer.shutdown(socket.SHUT_WR)

    def open_soon(self) -> None:
        """Opens while the host waits in its next call, which therefore must not return before `is_open`."""
        self._opener = threading.Timer(HEAD_START, self.open)
        self._opener.start()

    def end(self) -> None:
        """Opens, and gives everything back when nothing uses it any more."""
        import torch

        if self._opener is not None:
            self._opener.join()
        self.open()
        for device in range(torch.openreg.device_count() if self._pairs else 0):
            with contextlib.suppress(torch.AcceleratorError):  # of a failed device, which is the test's own business
                torch.openreg.synchronize(device)
        for pair in self._pairs:
            for end in pair:
                end.close()
        self._pairs.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Opens what the test left closed, before openreg-testing waits for the test's work; imported by a conftest.py."""
    try:
        return (yield)
    finally:
        gate = getattr(item, "funcargs", {}).get("gate")
        if gate is not None:
            gate.open()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Open at first."""
    if not hasattr(ctypes.pythonapi, "read"):
        pytest.skip("the C library has no read() that takes a socket, as the kernel of a gate does")
    gate = Gate()
    yield gate
    gate.end()
