# SPDX-License-Identifier: BSD-3-Clause
"""Messages between an asker and its workers: a length, then a pickle. Both ends are ours, and of one user."""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

LENGTH = struct.Struct("!Q")
CHUNK = 1 << 20


def packed(value: Any) -> bytes:
    """A message, as it is sent."""
    data = pickle.dumps(value)
    return LENGTH.pack(len(data)) + data


def receive(connection: socket.socket) -> Any:
    """The next message; ConnectionError if the other end has gone."""
    return pickle.loads(read(connection, LENGTH.unpack(read(connection, LENGTH.size))[0]))


def read(connection: socket.socket, size: int) -> bytes:
    """So many bytes; ConnectionError if the other end has gone."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), CHUNK))
        if not part:
            raise ConnectionResetError("the other end has gone")
        data += part
    return bytes(data)
