# SPDX-License-Identifier: BSD-3-Clause
"""Workers: fresh processes that answer requests, and may crash or hang without harm to the process that asks.

Importing torch takes a second or more, forking a process that has done it takes milliseconds. So a server is forked
while nothing runs yet that a fork would lose (``can_fork``), and it forks workers later, whatever the asking process
has done meanwhile.

    server = ForkServer(serve)
    worker = server.worker({"OPENREG_SCHEDULE_SEED": "3"})
    worker.ask(request, limit=60)  # Answer(serve(request)), or Lost("crashed with SIGSEGV", the stack)
    server.close()

``SpawnServer`` does the same with processes that start from nothing, for where a fork is not possible.

The server is the workers' parent: it ends and reaps them when it is asked to, and all of them when the asker goes. A
worker ends when its connection does.
"""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

from . import wire
from ._platform import HAS_FORK, HAS_PREAD, IS_POSIX
from .fork_safety import can_fork
from .workers import ADDRESS, PATIENCE, REPLY, attend, fork, send_part, serve_forks, wait_for

__all__ = ["Answer", "ForkServer", "Lost", "SpawnServer", "Worker", "attend", "can_fork", "send_part"]

_LAST_LINES = 40
_LINES_BEFORE_A_CRASH = 10
_LOOK_AGAIN = 0.5  # seconds, where nothing tells when a process ends


@dataclass(frozen=True)
class Answer:
    """What ``serve`` returned."""

    value: Any


@dataclass(frozen=True)
class Lost:
    """A worker that ended instead of answering: how, and the last lines that it wrote (of a crash, the stack)."""

    reason: str
    output: str


class _Process(Protocol):
    """A worker's process, as the asker sees it."""

    def watched(self) -> list[int]:
        """What becomes readable when the process ends, if the system has such a thing."""

    def running(self) -> bool:
        """False if it is known to have ended."""

    def signal(self, number: int) -> None:
        """Sends a signal to a process that may have ended."""

    def end(self, patience: float) -> int:
        """The exit status, negative for a signal; kills what does not end by itself, with what it started."""


class Worker:
    """A process that answers one request after the other. For one thread at a time."""

    def __init__(
        self,
        connection: socket.socket,
        process: _Process,
        output: IO[bytes],
        on_imports: Callable[[list[str]], None] | None = None,
    ) -> None:
        self._connection = connection
        self._on_imports = on_imports  # learns which modules of torch a request made the worker import
        self._process = process
        self._output = output
        self._written = 0
        self._asked = False
        self._ended = False

    def ask(
        self, request: Any, limit: float | None = None, on_part: Callable[[Any], None] | None = None
    ) -> Answer | Lost:
        """``serve(request)`` in the worker. After ``limit`` seconds the worker is ended; a lost worker answers no more.

        What ``serve`` gives to ``send_part`` goes to ``on_part``, before the answer.
        """
        if self._ended:
            raise RuntimeError("this worker has ended; ask the server for another one")
        message = wire.packed(request)
        if self._asked:  # what it said when it started belongs to the first request
            self._written = os.fstat(self._output.fileno()).st_size
        self._asked = True
        deadline = None if limit is None else time.monotonic() + limit
        try:
            kind, value = self._exchange(message, deadline, on_part)
        except TimeoutError:
            return self._lose(f"took longer than {limit:g} s", with_stack=True)
        except ConnectionError:
            return self._lose()
        except BaseException:  # Ctrl-C, or on_part failed: nobody waits for the answer
            self._finish(0)
            raise
        if kind == "raised":
            return self._lose(value)
        answer, imports = value
        if imports and self._on_imports is not None:
            self._on_imports(imports)
        return Answer(answer)

    def written(self) -> str:
        """What it wrote to its standard output and error since this was called, or the last request was made."""
        size = os.fstat(self._output.fileno()).st_size
        if HAS_PREAD:
            text = os.pread(self._output.fileno(), size - self._written, self._written)
        else:  # reading moves the place where the worker writes: up to the end, where it is anyway
            self._output.seek(self._written)
            text = self._output.read()
        self._written += len(text)
        return text.decode("utf-8", "replace")

    def end(self) -> None:
        """Ends the process, and waits until it is gone."""
        if not self._ended:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            self._finish(PATIENCE)

    def _exchange(
        self, message: bytes, deadline: float | None, on_part: Callable[[Any], None] | None
    ) -> tuple[str, Any]:
        self._connection.settimeout(_left(deadline))
        self._connection.sendall(message)
        while True:
            size = wire.LENGTH.unpack(self._read(wire.LENGTH.size, deadline))[0]
            kind, value = pickle.loads(self._read(size, deadline))
            if kind != "part":
                return kind, value
            if on_part is not None:
                on_part(value)

    def _read(self, size: int, deadline: float | None) -> bytes:
        """So many bytes; ConnectionError if the process ended: what it started may hold the connection open."""
        data = bytearray()
        watched: list[Any] = [self._connection, *self._process.watched()]
        while len(data) < size:
            left = _left(deadline)
            if len(watched) == 1:
                left = _LOOK_AGAIN if left is None else min(left, _LOOK_AGAIN)
            ready = multiprocessing.connection.wait(watched, left)
            if self._connection in ready:
                part = self._connection.recv(min(size - len(data), wire.CHUNK))
                if not part:
                    raise ConnectionResetError
                data += part
            elif ready or not self._process.running():
                raise ConnectionResetError
        return bytes(data)

    def _lose(self, reason: str = "", with_stack: bool = False) -> Lost:
        if with_stack and hasattr(signal, "SIGABRT"):
            self._process.signal(signal.SIGABRT)  # faulthandler writes the stacks, and the process ends
        status = self._process.end(PATIENCE)
        output = _most_telling(self.written())
        self._finish(0)
        return Lost(reason or _describe(status), output)

    def _finish(self, patience: float) -> None:
        self._ended = True
        self._connection.close()
        self._process.end(patience)
        self._output.close()


class ForkServer:
    """Forks workers from a process that has imported what they need and touched no device, OpenMP or autograd."""

    def __init__(self, serve: Callable[[Any], Any]) -> None:
        if not HAS_FORK:
            raise RuntimeError("this system has no fork; SpawnServer starts its workers instead")
        self._lock = threading.Lock()
        self._late: list[str] = []  # modules that the server has yet to import
        self._known: set[str] = set()
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._asker = os.getpid()
        self._control, theirs = socket.socketpair()
        self._server = fork()
        if self._server == 0:
            self._control.close()
            serve_forks(theirs, serve, self._asker)
        theirs.close()

    def worker(self, environment: Mapping[str, str] | None = None) -> Worker:
        """Forks a worker, with these environment variables besides those that the server has.

        What torch imported late in other workers, the server imports now, so that this happens once.
        """
        late, self._late = self._late, []
        if late:
            self._call(("import", late), [])
        output = tempfile.TemporaryFile()  # noqa: SIM115  (the worker closes it; it has no name that could be left)
        try:
            process, handles = self._call(("fork", dict(environment or {})), [output.fileno()])
        except BaseException:
            output.close()
            raise
        process_of = _Forked(self, process, handles[1:])
        worker = Worker(socket.socket(fileno=handles[0]), process_of, output, self._learn)
        self._workers.add(worker)
        return worker

    def _learn(self, imports: list[str]) -> None:
        self._late += [module for module in imports if module not in self._known]
        self._known.update(imports)

    def close(self) -> None:
        """Ends the server and all its workers, and waits until they are gone."""
        if os.getpid() != self._asker:  # a forked child of the asker
            return
        with self._lock:
            server, self._server = self._server, 0
            if not server:
                return
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
            self._control.close()
            if wait_for(server, 2 * PATIENCE) is None:
                os.kill(server, signal.SIGKILL)
                os.waitpid(server, 0)
        for worker in list(self._workers):
            worker.end()

    def reap(self, process: int, patience: float) -> int:
        """The exit status of a worker, which is killed if it does not end by itself in so many seconds."""
        try:
            return self._call(("reap", process, patience), [])[0]
        except RuntimeError:  # the server has gone, and its workers with it
            return -signal.SIGKILL

    def _call(self, request: tuple[Any, ...], handles: list[int]) -> tuple[int, list[int]]:
        with self._lock:
            if not self._server:
                raise RuntimeError("this server is closed")
            message = wire.packed(request)
            try:
                socket.send_fds(self._control, [message[: wire.LENGTH.size]], handles)
                self._control.sendall(message[wire.LENGTH.size :])
                flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
                reply, received, _, _ = socket.recv_fds(self._control, REPLY.size, 2, flags)
            except OSError:
                reply, received = b"", []
            except BaseException:  # Ctrl-C: the next reply would be to this request
                self._control.close()
                raise
        if len(reply) < REPLY.size:
            raise RuntimeError("the server that forks the workers is gone; something has killed it")
        error, value = REPLY.unpack(reply)
        if error:
            raise OSError(error, f"a worker could not be forked: {os.strerror(error)}")
        return value, received


class _Forked:
    """The process of a worker that the server forked."""

    def __init__(self, server: ForkServer, process: int, handles: list[int]) -> None:
        self._server = server
        self._process = process
        self._handles = handles
        self._status: int | None = None

    def watched(self) -> list[int]:
        return self._handles

    def running(self) -> bool:
        return True  # where there is no handle: the end of the connection tells

    def signal(self, number: int) -> None:
        if self._status is None:  # until it is reaped, no other process gets its number
            with contextlib.suppress(OSError):
                os.kill(self._process, number)

    def end(self, patience: float) -> int:
        if self._status is None:
            if self._handles:  # to wait here rather than in the server, which other threads ask too
                multiprocessing.connection.wait(self._handles, patience)
                patience = 0
            for handle in self._handles:
                os.close(handle)
            self._handles = []
            self._status = self._server.reap(self._process, patience)
        return self._status


class SpawnServer:
    """The same for where forking is not possible: each worker is started, and imports what it needs.

    ``serve`` is named, "module:function". Instead, ``command`` is a program that calls ``attend(serve)`` itself.
    """

    def __init__(self, serve: str = "", *, command: Sequence[str] = ()) -> None:
        if bool(serve) == bool(command) or (serve and serve.count(":") != 1):
            raise ValueError(f'give either serve="module:function" or a command, not {serve!r} and {command!r}')
        self._command = list(command) or [sys.executable, "-m", "openreg_testing.workers", serve]
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()

    def worker(self, environment: Mapping[str, str] | None = None) -> Worker:
        """Starts a worker, with these environment variables besides those of this process."""
        token = secrets.token_hex()
        asker = os.getpid() if threading.current_thread() is threading.main_thread() else 0  # a signal tells of threads
        output = tempfile.TemporaryFile()  # noqa: SIM115  (the worker closes it)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            place = f"{listener.getsockname()[1]}:{token}:{asker}"
            process = _Spawned(
                subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **(environment or {}), ADDRESS: place},
                    start_new_session=True,  # Ctrl-C is for the asker
                )
            )
            try:
                connection = _accept(listener, token, process)
            except BaseException:
                process.end(0)
                output.close()
                raise
        worker = Worker(connection, process, output)
        self._workers.add(worker)
        return worker

    def close(self) -> None:
        """Ends all workers."""
        for worker in list(self._workers):
            worker.end()


class _Spawned:
    """The process of a worker that was started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def watched(self) -> list[int]:
        return []

    def running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        if IS_POSIX:  # elsewhere any signal ends it, without a stack
            self._process.send_signal(number)

    def end(self, patience: float) -> int:
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if IS_POSIX:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()


def _accept(listener: socket.socket, token: str, process: _Spawned) -> socket.socket:
    """The connection of the process. If it ends before, one that has ended: the first request tells how."""
    listener.settimeout(0.1)
    while process.running():
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(PATIENCE)
        with contextlib.suppress(OSError):
            if secrets.compare_digest(wire.read(connection, len(token)), token.encode()):
                return connection
        connection.close()  # somebody else's
    ours, theirs = socket.socketpair()
    theirs.close()
    return ours


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _most_telling(output: str) -> str:
    """The last lines; of a crash those that tell where, which begin with the innermost call."""
    lines = [line for line in output.splitlines() if not line.startswith("Extension modules:")]
    for number, line in enumerate(lines):
        if line.startswith("Fatal Python error"):
            lines = lines[max(0, number - _LINES_BEFORE_A_CRASH) : number + _LAST_LINES]
    return "\n".join(lines[-_LAST_LINES - _LINES_BEFORE_A_CRASH :]).strip()


def _describe(status: int) -> str:
    """An exit status in words: the signal's name where one ended the process."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"crashed with {signal.Signals(-status).name}"
    except ValueError:
        return f"crashed with signal {-status}"
