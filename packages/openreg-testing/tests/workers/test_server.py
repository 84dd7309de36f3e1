# SPDX-License-Identifier: BSD-3-Clause
"""The server that forks workers keeps no descriptor of a request that failed."""

import errno
import os
import socket

import pytest
from _platform import HAS_FORK

from openreg_testing.workers import server

pytestmark = pytest.mark.skipif(not HAS_FORK, reason="this system has no fork()")


def test_a_fork_that_fails_is_answered_and_closes_the_output(monkeypatch):
    def refuse():
        raise OSError(errno.EAGAIN, "too many processes")

    monkeypatch.setattr(server, "fork", refuse)
    client, control = socket.socketpair()
    output = os.open(os.devnull, os.O_WRONLY)
    with client, control:
        server._fork_worker(control, set(), None, {}, output)
        assert server.REPLY.unpack(client.recv(server.REPLY.size)) == (errno.EAGAIN, 0)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(output)
