# SPDX-License-Identifier: BSD-3-Clause
"""Workers: fresh processes that serve requests, and may crash or hang without harm to the client process.

Importing torch takes a second or more, and forking a process that has imported it takes milliseconds. So the client
forks a server before it has any state that a fork would lose (``can_fork``). The server forks workers later, whatever
the client has done meanwhile.

    server = ForkServer(serve)
    worker = server.worker({"OPENREG_SCHEDULE_SEED": "3"})
    worker.ask(request, limit=60)  # Answer(serve(request)), or Lost("crashed with SIGSEGV", the stack)
    server.close()

``SpawnServer`` has the same interface and starts a new interpreter for each worker, for systems and processes that
cannot fork.

The server is the workers' parent. It ends and reaps a worker on request, and all workers when the client process ends.
A worker ends when its connection ends.
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
from .server import ADDRESS, PATIENCE, REPLY, attend, fork, send_part, serve_forks, wait_for

__all__ = ["Answer", "ForkServer", "Lost", "SpawnServer", "Worker", "attend", "can_fork", "send_part"]

_LAST_LINES = 40  # of the output, for Lost.output
_LINES_BEFORE_A_CRASH = 10
_POLL_INTERVAL = 0.5  # seconds, for processes without a descriptor that becomes readable at their end


@dataclass(frozen=True)
class Answer:
    """The value that ``serve`` returned."""

    value: Any


@dataclass(frozen=True)
class Lost:
    """The end of a worker that returned no value for a request."""

    reason: str  # a clause such as "crashed with SIGSEGV"
    output: str  # the last lines that the worker wrote; after a crash, its stack and a few lines before it


class _ProcessHandle(Protocol):
    """The operations of the client on the process of a worker, which was forked or started."""

    def watched(self) -> list[int]:
        """Returns the descriptors that become readable when the process ends; empty without system support."""

    def running(self) -> bool:
        """Returns False if the process is known to have ended."""

    def signal(self, number: int) -> None:
        """Sends a signal to a process that may have ended."""

    def end(self, patience: float) -> int:
        """Waits up to ``patience`` seconds for the process to end, then kills it with its children.

        Returns the exit status, which is negative for a signal.
        """


class Worker:
    """A worker as the client sees it: a process that serves one request after the other. Not thread-safe."""

    def __init__(
        self,
        connection: socket.socket,
        process: _ProcessHandle,
        output: IO[bytes],
        on_imports: Callable[[list[str]], None] | None = None,
    ) -> None:
        self._connection = connection
        self._on_imports = on_imports  # called with the modules of torch that the worker imported during a request
        self._process = process
        self._output = output
        self._written = 0  # position in the output after the part that was read
        self._had_request = False
        self._ended = False

    def ask(
        self, request: Any, limit: float | None = None, on_part: Callable[[Any], None] | None = None
    ) -> Answer | Lost:
        """Runs ``serve(request)`` in the worker and returns its value, or how the worker ended.

        A worker that takes longer than ``limit`` seconds is ended. ``on_part`` is called with each value that ``serve``
        passes to ``send_part``. Raises RuntimeError if the worker has ended before this call.
        """
        if self._ended:
            raise RuntimeError("Worker.ask(): this worker has ended; call worker() of the server for another one")
        message = wire.packed(request)
        if self._had_request:  # the output of a starting worker belongs to its first request
            self._written = os.fstat(self._output.fileno()).st_size
        self._had_request = True
        deadline = None if limit is None else time.monotonic() + limit
        try:
            kind, value = self._exchange(message, deadline, on_part)
        except TimeoutError:
            return self._lose(f"took longer than {limit:g} s", with_stack=True)
        except ConnectionError:
            return self._lose()
        except BaseException:  # Ctrl-C, or on_part raised: the reply would never be read
            self._finish(0)
            raise
        if kind == "raised":
            return self._lose(value)
        answer, imports = value
        if imports and self._on_imports is not None:
            self._on_imports(imports)
        return Answer(answer)

    def written(self) -> str:
        """Returns what the worker wrote to its standard output and error since the last call or request."""
        size = os.fstat(self._output.fileno()).st_size
        if HAS_PREAD:
            text = os.pread(self._output.fileno(), size - self._written, self._written)
        else:  # the worker shares the file position; reading up to the end leaves it where the worker left it
            self._output.seek(self._written)
            text = self._output.read()
        self._written += len(text)
        return text.decode("utf-8", "replace")

    def end(self) -> None:
        """Ends the process, and blocks until it has ended."""
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
        """Returns ``size`` bytes. Raises ConnectionError if the process ended, TimeoutError after the deadline.

        It watches the process too, because children of the worker may keep the connection open.
        """
        data = bytearray()
        watched: list[Any] = [self._connection, *self._process.watched()]
        while len(data) < size:
            left = _left(deadline)
            if len(watched) == 1:
                left = _POLL_INTERVAL if left is None else min(left, _POLL_INTERVAL)
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
        output = _relevant_lines(self.written())
        self._finish(0)
        return Lost(reason or _describe(status), output)

    def _finish(self, patience: float) -> None:
        self._ended = True
        self._connection.close()
        self._process.end(patience)
        self._output.close()


class ForkServer:
    """A process that forks workers, itself forked from this one. Thread-safe.

    When it is created, this process must have imported what the workers need, and must not have used a device, OpenMP
    threads or autograd. Raises RuntimeError on a system without fork.
    """

    def __init__(self, serve: Callable[[Any], Any]) -> None:
        if not HAS_FORK:
            raise RuntimeError("ForkServer: this system has no fork; use SpawnServer")
        self._lock = threading.Lock()
        self._late: list[str] = []  # modules that workers imported and the server has not
        self._known: set[str] = set()  # modules that workers reported
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._client_pid = os.getpid()
        self._control, theirs = socket.socketpair()
        self._server = fork()
        if self._server == 0:
            self._control.close()
            serve_forks(theirs, serve, self._client_pid)
        theirs.close()

    def worker(self, environment: Mapping[str, str] | None = None) -> Worker:
        """Forks a worker with ``environment`` added to the server's environment variables.

        The server first imports the modules of torch that earlier workers had to import, so that later workers need
        not. Raises OSError if the fork fails, and RuntimeError if the server is closed or was killed.
        """
        late, self._late = self._late, []
        if late:
            self._call(("import", late), [])
        output = tempfile.TemporaryFile()  # noqa: SIM115  (the worker closes it; it has no name to remove)
        try:
            process, handles = self._call(("fork", dict(environment or {})), [output.fileno()])
        except BaseException:
            output.close()
            raise
        process_of = _Forked(self, process, handles[1:])
        worker = Worker(socket.socket(fileno=handles[0]), process_of, output, self._record_imports)
        self._workers.add(worker)
        return worker

    def _record_imports(self, imports: list[str]) -> None:
        self._late += [module for module in imports if module not in self._known]
        self._known.update(imports)

    def close(self) -> None:
        """Ends the server and all its workers, and blocks until they have ended."""
        if os.getpid() != self._client_pid:  # a forked child of the client does not own the server
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
        """Returns the exit status of a worker, which is killed if it still runs after ``patience`` seconds."""
        try:
            return self._call(("reap", process, patience), [])[0]
        except RuntimeError:  # the server has ended, which ends its workers
            return -signal.SIGKILL

    def _call(self, request: tuple[Any, ...], handles: list[int]) -> tuple[int, list[int]]:
        with self._lock:
            if not self._server:
                raise RuntimeError("ForkServer: this server is closed; create another one")
            message = wire.packed(request)
            try:
                socket.send_fds(self._control, [message[: wire.LENGTH.size]], handles)
                self._control.sendall(message[wire.LENGTH.size :])
                flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
                reply, received, _, _ = socket.recv_fds(self._control, REPLY.size, 2, flags)
            except OSError:
                reply, received = b"", []
            except BaseException:  # Ctrl-C: the next call would read the reply to this request
                self._control.close()
                raise
        if len(reply) < REPLY.size:
            raise RuntimeError("ForkServer: the server process was killed; create another server")
        error, value = REPLY.unpack(reply)
        if error:
            raise OSError(error, f"ForkServer.worker(): the fork failed: {os.strerror(error)}")
        return value, received


class _Forked:
    """The process of a worker that ``ForkServer`` forked."""

    def __init__(self, server: ForkServer, process: int, handles: list[int]) -> None:
        self._server = server
        self._process = process
        self._handles = handles
        self._status: int | None = None

    def watched(self) -> list[int]:
        return self._handles

    def running(self) -> bool:
        return True  # without a descriptor of the process, the end of its connection is the only sign

    def signal(self, number: int) -> None:
        if self._status is None:  # the system does not reuse the process id before the process is reaped
            with contextlib.suppress(OSError):
                os.kill(self._process, number)

    def end(self, patience: float) -> int:
        if self._status is None:
            if self._handles:  # waits here, because the server would meanwhile block requests of other threads
                multiprocessing.connection.wait(self._handles, patience)
                patience = 0
            for handle in self._handles:
                os.close(handle)
            self._handles = []
            self._status = self._server.reap(self._process, patience)
        return self._status


class SpawnServer:
    """A server that starts a new interpreter for each worker, for systems and processes that cannot fork.

    ``serve`` is the name of a function, "module:function". Alternatively, ``command`` is a program that calls
    ``attend(serve)`` itself, which serves requests until the process ends. Raises ValueError unless exactly one of them
    is set.
    """

    def __init__(self, serve: str = "", *, command: Sequence[str] = ()) -> None:
        if bool(serve) == bool(command) or (serve and serve.count(":") != 1):
            raise ValueError(
                f'SpawnServer: give either serve="module:function" or a command, not {serve!r} and {command!r}'
            )
        self._command = list(command) or [sys.executable, "-m", "openreg_testing.workers.server", serve]
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()

    def worker(self, environment: Mapping[str, str] | None = None) -> Worker:
        """Starts a worker with ``environment`` added to the environment variables of this process."""
        token = secrets.token_hex()
        # A worker asks Linux for a signal when its parent ends. Linux sends it when the thread that started the worker
        # ends, so only workers that a main thread started ask for it (client != 0).
        client = os.getpid() if threading.current_thread() is threading.main_thread() else 0
        output = tempfile.TemporaryFile()  # noqa: SIM115  (the worker closes it)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            place = f"{listener.getsockname()[1]}:{token}:{client}"
            process = _Spawned(
                subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **(environment or {}), ADDRESS: place},
                    start_new_session=True,  # so that Ctrl-C signals only the client
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
    """The process of a worker that ``SpawnServer`` started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def watched(self) -> list[int]:
        return []

    def running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        if IS_POSIX:  # on Windows any signal ends the process without a stack
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
    """Accepts the connection of the process.

    If the process ends first, returns a closed connection, so that the first request reports how the process ended.
    """
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
        connection.close()  # another program's connection
    ours, theirs = socket.socketpair()
    theirs.close()
    return ours


def _left(deadline: float | None) -> float | None:
    """Returns the seconds until the deadline, None without one. Raises TimeoutError after it."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _relevant_lines(output: str) -> str:
    """Returns the last lines of an output; after a crash, the stack that faulthandler wrote and a few lines before it.

    The stack begins with the innermost call. A child of the worker may have crashed before it; the last crash counts.
    """
    lines = [line for line in output.splitlines() if not line.startswith("Extension modules:")]
    crashes = [number for number, line in enumerate(lines) if line.startswith("Fatal Python error")]
    if crashes:
        lines = lines[max(0, crashes[-1] - _LINES_BEFORE_A_CRASH) : crashes[-1] + _LAST_LINES]
    return "\n".join(lines[-_LAST_LINES - _LINES_BEFORE_A_CRASH :]).strip()


def _describe(status: int) -> str:
    """Returns an exit status in words, with the signal's name if a signal ended the process."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"crashed with {signal.Signals(-status).name}"
    except ValueError:
        return f"crashed with signal {-status}"
