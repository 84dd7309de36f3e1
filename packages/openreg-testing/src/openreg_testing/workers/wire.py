# SPDX-License-Identifier: BSD-3-Clause
"""Messages between a client and its workers: a length, then a pickle.

Both ends run this package as the same user, so unpickling is safe.
"""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

LENGTH = struct.Struct("!Q")
CHUNK = 1 << 20


def packed(value: Any) -> bytes:
    """Returns the bytes of a message."""
    data = pickle.dumps(value)
    return LENGTH.pack(len(data)) + data


def receive(connection: socket.socket) -> Any:
    """Returns the next message. Raises ConnectionError if the other end has closed the connection."""
    return pickle.loads(read(connection, LENGTH.unpack(read(connection, LENGTH.size))[0]))


def read(connection: socket.socket, size: int) -> bytes:
    """Returns ``size`` bytes. Raises ConnectionError if the other end has closed the connection."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), CHUNK))
        if not part:
            raise ConnectionResetError("the other end has closed the connection")
        data += part
    return bytes(data)
