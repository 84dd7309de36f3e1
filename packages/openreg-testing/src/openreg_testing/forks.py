# SPDX-License-Identifier: BSD-3-Clause
"""Workers: fresh processes that answer requests, and may crash or hang without harm to the process that asks.

Importing torch takes a second or more, forking a process that has done it takes milliseconds. So a server is forked
while nothing runs yet that a fork would lose (a device, autograd's threads, OpenMP's), and forks the workers later,
whatever the asking process has done meanwhile.

    server = ForkServer(serve)
    worker = server.worker({"OPENREG_SCHEDULE_SEED": "3"})
    worker.ask(request, limit=60)  # Answer(serve(request)), or Lost("crashed with SIGSEGV", the stack)
    server.close()

``SpawnServer`` does the same with processes that start from nothing, for where ``can_fork()`` says no.

Who ends whom: the asker ends workers through the server, which is their parent and reaps them. The server ends when its
connection does, and takes all workers with it. On Linux a signal says so too, to those that do not listen.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import multiprocessing.connection
import os
import pickle
import secrets
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol

_LENGTH = struct.Struct("!Q")
_ENDED = struct.Struct("!iq")  # what the server answers: an error number, and a process or its exit status
_ADDRESS = "OPENREG_TESTING_ASKER"  # tells a spawned worker where to connect
_PATIENCE = 5.0  # seconds for what takes milliseconds: leaving after the connection ended, writing a stack
_LAST_LINES = 40
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Answer:
    """What ``serve`` returned."""

    value: Any


@dataclass(frozen=True)
class Lost:
    """A worker that ended instead of answering: how, and the last lines that it wrote (the stack of a crash)."""

    reason: str
    output: str


class _Process(Protocol):
    """A worker's process, as the asker sees it."""

    def watched(self) -> list[Any]:
        """What becomes readable when the process ends, if the system has such a thing."""

    def running(self) -> bool:
        """False if it is known to have ended."""

    def signal(self, number: int) -> None:
        """Sends a signal to a process that may have ended."""

    def end(self, patience: float) -> int:
        """The exit status, negative for a signal; kills it, with what it started, if it does not end by itself."""


class Worker:
    """A process that answers one request after the other."""

    def __init__(self, connection: socket.socket, process: _Process, output: IO[bytes]) -> None:
        self._connection = connection
        self._process = process
        self._output = output
        self._ended = False

    def ask(
        self, request: Any, limit: float | None = None, on_part: Callable[[Any], None] | None = None
    ) -> Answer | Lost:
        """``serve(request)`` in the worker. After ``limit`` seconds the worker is ended; a lost worker answers no more.

        What ``serve`` passes to ``send_part`` goes to ``on_part``, before the answer.
        """
        if self._ended:
            raise RuntimeError("this worker has ended; ask another one")
        deadline = None if limit is None else time.monotonic() + limit
        try:
            kind, value = self._exchange(pickle.dumps(request), deadline, on_part)
        except TimeoutError:
            return self._lose(f"took longer than {limit:g} s", write_stack=True)
        except OSError:  # it ended before it read the request
            return self._lose()
        except BaseException:  # Ctrl-C, or on_part: nobody waits for the rest of the answer
            self._finish(0)
            raise
        if kind == "answer":
            return Answer(value)
        return self._lose(value if kind == "raised" else "")

    def end(self) -> None:
        """Ends the process, and waits until it is gone."""
        if not self._ended:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            self._finish(_PATIENCE)

    def _exchange(
        self, request: bytes, deadline: float | None, on_part: Callable[[Any], None] | None
    ) -> tuple[str, Any]:
        self._connection.settimeout(_left(deadline))
        self._connection.sendall(_LENGTH.pack(len(request)) + request)
        while True:
            message = self._receive(deadline)
            if message is None:
                return "ended", None
            kind, value = pickle.loads(message)  # noqa: S301  (of our own child)
            if kind != "part":
                return kind, value
            if on_part is not None:
                on_part(value)

    def _receive(self, deadline: float | None) -> bytes | None:
        header = self._read(_LENGTH.size, deadline)
        return None if header is None else self._read(_LENGTH.unpack(header)[0], deadline)

    def _read(self, size: int, deadline: float | None) -> bytes | None:
        """So many bytes; None if the process ended. Its children may hold the connection open, so both are watched."""
        data = bytearray()
        self._connection.settimeout(_PATIENCE)
        watched = [self._connection, *self._process.watched()]
        slices = None if len(watched) > 1 else 1.0
        while len(data) < size:
            left = _left(deadline)
            seconds = left if slices is None else slices if left is None else min(left, slices)
            ready = multiprocessing.connection.wait(watched, seconds)
            if self._connection in ready:
                part = self._connection.recv(min(size - len(data), 1 << 20))
                if not part:
                    return None
                data += part
            elif ready or not self._process.running():
                return None
        return bytes(data)

    def _lose(self, reason: str = "", write_stack: bool = False) -> Lost:
        if write_stack and hasattr(signal, "SIGABRT"):  # faulthandler writes the stacks, and the process ends
            self._process.signal(signal.SIGABRT)
        status = self._process.end(_PATIENCE)
        output = _most_telling(_read_all(self._output))
        self._finish(0)
        return Lost(reason or describe_exit(status), output)

    def _finish(self, patience: float) -> None:
        self._ended = True
        self._connection.close()
        self._process.end(patience)
        self._output.close()


class ForkServer:
    """Forks workers from a process that has imported what they need and touched no device, OpenMP or autograd."""

    def __init__(self, serve: Callable[[Any], Any]) -> None:
        if not hasattr(os, "fork"):
            raise RuntimeError("this system cannot fork; SpawnServer starts processes instead")
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._control, theirs = socket.socketpair()
        self._server = _fork()
        if self._server == 0:
            self._control.close()
            _be_server(theirs, serve, self._owner)
        theirs.close()
        with contextlib.suppress(OSError):  # the server does it too: whoever is first
            os.setpgid(self._server, self._server)

    def worker(self, environment: Mapping[str, str] | None = None) -> Worker:
        """Forks a worker, with these environment variables besides those of the server."""
        output = tempfile.TemporaryFile()  # noqa: SIM115  (the worker closes it; without a name nothing is left behind)
        try:
            process, handles = self._call(("fork", dict(environment or {})), [output.fileno()])
        except BaseException:
            output.close()
            raise
        connection = socket.socket(fileno=handles[0])
        return Worker(connection, _Forked(self, process, handles[1:]), output)

    def close(self) -> None:
        """Ends the server and all its workers, and waits until they are gone."""
        if self._server == 0 or os.getpid() != self._owner:  # a forked child of the asker has no part in this
            return
        with self._lock:
            server, self._server = self._server, 0
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
            self._control.close()
            if _wait_for(server, 2 * _PATIENCE) is None:
                os.kill(server, signal.SIGKILL)
                os.waitpid(server, 0)

    def reap(self, process: int, patience: float) -> int:
        """The exit status of a worker, which is killed if it does not end by itself."""
        try:
            return self._call(("reap", process, patience), [])[0]
        except RuntimeError:  # the server has ended, and its workers with it
            return -signal.SIGKILL

    def _call(self, request: tuple[Any, ...], handles: list[int]) -> tuple[int, list[int]]:
        with self._lock:
            if self._server == 0:
                raise RuntimeError("this server is closed")
            data = pickle.dumps(request)
            try:
                socket.send_fds(self._control, [_LENGTH.pack(len(data))], handles)
                self._control.sendall(data)
                flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
                answer, received, _, _ = socket.recv_fds(self._control, _ENDED.size, 2, flags)
            except OSError:
                answer, received = b"", []
        if len(answer) < _ENDED.size:
            raise RuntimeError("the server that forks workers has ended: was it killed?")
        error, value = _ENDED.unpack(answer)
        if error:
            raise OSError(error, f"no worker could be forked: {os.strerror(error)}")
        return value, received


class _Forked:
    """A worker whose parent is the server."""

    def __init__(self, server: ForkServer, process: int, handles: list[int]) -> None:
        self._server = server
        self._process = process
        self._handles = handles
        self._status: int | None = None

    def watched(self) -> list[Any]:
        return self._handles

    def running(self) -> bool:
        return True  # as far as is known: the end of the connection tells

    def signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.kill(self._process, number)  # the number is not given to another process before the server reaps it

    def end(self, patience: float) -> int:
        if self._status is None:
            for handle in self._handles:
                os.close(handle)
            self._handles = []
            self._status = self._server.reap(self._process, patience)
        return self._status


def _be_server(control: socket.socket, serve: Callable[[Any], Any], parent: int) -> NoReturn:
    """The process that forks workers, until its connection ends."""
    workers: set[int] = set()

    def end_with_parent(*_: object) -> None:
        if os.getppid() != parent:  # the signal also comes when only the thread ended that forked this process
            _kill(workers)
            os._exit(0)

    status = 1
    try:
        os.setpgid(0, 0)  # Ctrl-C is the asker's
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, end_with_parent)
        _signal_at_end_of_parent(signal.SIGTERM)
        end_with_parent()
        gc.freeze()  # or each worker would copy all that its collector looks at
        while True:
            header, handles, _, _ = socket.recv_fds(control, _LENGTH.size, 1)
            if len(header) < _LENGTH.size:
                break
            request = pickle.loads(_read_exactly(control, _LENGTH.unpack(header)[0]))  # noqa: S301  (of the parent)
            if request[0] == "fork":
                _fork_worker(control, workers, serve, request[1], handles[0])
            else:
                _, process, patience = request
                control.sendall(_ENDED.pack(0, _reap(process, patience)))
                workers.discard(process)
        status = 0
    except OSError:
        status = 0  # the asker has gone in the middle of a request
    except BaseException:
        traceback.print_exc()
    finally:
        _kill(workers)
        os._exit(status)
    raise AssertionError


def _fork_worker(
    control: socket.socket,
    workers: set[int],
    serve: Callable[[Any], Any],
    environment: Mapping[str, str],
    output: int,
) -> None:
    ours, theirs = socket.socketpair()
    server = os.getpid()
    try:
        process = _fork()
    except OSError as error:
        control.sendall(_ENDED.pack(error.errno or 1, 0))
        return
    finally:
        theirs_in_server = theirs
    if process == 0:
        control.close()
        ours.close()
        _be_forked_worker(theirs, serve, environment, output, server)
    workers.add(process)
    with contextlib.suppress(OSError):  # the worker does it too: whoever is first
        os.setpgid(process, process)
    theirs_in_server.close()
    handles = [ours.fileno()]
    watch = os.pidfd_open(process) if hasattr(os, "pidfd_open") else None
    if watch is not None:
        handles.append(watch)
    socket.send_fds(control, [_ENDED.pack(0, process)], handles)
    ours.close()
    os.close(output)
    if watch is not None:
        os.close(watch)


def _be_forked_worker(
    connection: socket.socket, serve: Callable[[Any], Any], environment: Mapping[str, str], output: int, server: int
) -> NoReturn:
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _signal_at_end_of_parent(signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(environment)
        _attend(connection, serve, output)
    finally:
        os._exit(1)
    raise AssertionError


def _reap(process: int, patience: float) -> int:
    """The exit status; what the process started ends with it."""
    status = _wait_for(process, patience)
    with contextlib.suppress(OSError):
        os.killpg(process, signal.SIGKILL)
    if status is None:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return status


def _kill(workers: set[int]) -> None:
    for process in workers:
        with contextlib.suppress(OSError):
            os.killpg(process, signal.SIGKILL)
    for process in workers:
        with contextlib.suppress(OSError):
            os.waitpid(process, 0)


def _wait_for(process: int, patience: float) -> int | None:
    """The exit status of a child; None if it runs on."""
    deadline = time.monotonic() + patience
    pause = 0.0005
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


class SpawnServer:
    """The same for where forking is not possible: each worker is started, and imports what it needs.

    ``serve`` is named, "module:function". A program that calls ``attend(serve)`` itself is given as ``command``.
    """

    def __init__(self, serve: str = "", *, command: Sequence[str] = ()) -> None:
        if bool(serve) == bool(command) or (serve and serve.count(":") != 1):
            raise ValueError(f'SpawnServer takes serve="module:function" or a command, not {serve!r} and {command!r}')
        self._command = list(command) or [sys.executable, "-m", __name__, serve]
        self._workers: list[_Spawned] = []

    def worker(self, environment: Mapping[str, str] | None = None) -> Worker:
        """Starts a worker, with these environment variables besides those of this process."""
        token = secrets.token_hex()
        output = tempfile.TemporaryFile()  # noqa: SIM115  (the worker closes it)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            follows = threading.current_thread() is threading.main_thread()  # else it would end with this thread
            place = f"{listener.getsockname()[1]}:{token}:{os.getpid() if follows else 0}"
            process = _Spawned(
                subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **(environment or {}), _ADDRESS: place},
                    start_new_session=True,
                )
            )
            self._workers.append(process)
            try:
                connection = _accept(listener, token, process)
            except BaseException:
                process.end(0)
                output.close()
                raise
        return Worker(connection, process, output)

    def close(self) -> None:
        """Ends all workers."""
        for worker in self._workers:
            worker.end(0)


def _accept(listener: socket.socket, token: str, process: _Spawned) -> socket.socket:
    """The connection of the process. If it ends before, one that is at its end: the first request tells how."""
    listener.settimeout(0.1)
    while process.running():
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(_PATIENCE)
        try:
            if secrets.compare_digest(_read_exactly(connection, len(token)), token.encode()):
                return connection
        except OSError:
            pass
        connection.close()  # somebody else's
    ours, theirs = socket.socketpair()
    theirs.close()
    return ours


class _Spawned:
    """A worker that is a child of this process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def watched(self) -> list[Any]:
        return []

    def running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        if os.name == "posix":  # elsewhere every signal is the end, without a stack
            self._process.send_signal(number)

    def end(self, patience: float) -> int:
        try:
            status = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            status = None
        if os.name == "posix":
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        if status is None:
            self._process.kill()
            status = self._process.wait()
        return status


_asker: socket.socket | None = None  # in a worker, the connection to who asks


def attend(serve: Callable[[Any], Any]) -> NoReturn:
    """Answers the requests for a process that a ``SpawnServer`` started, and ends the process."""
    place = os.environ.pop(_ADDRESS, "")
    if not place:
        raise RuntimeError(f"{_ADDRESS} is not set: only a SpawnServer starts this program")
    port, token, parent = place.split(":")
    if int(parent):
        _signal_at_end_of_parent(getattr(signal, "SIGKILL", 0))
        if os.name == "posix" and os.getppid() != int(parent):
            os._exit(1)
    connection = socket.create_connection(("127.0.0.1", int(port)))
    connection.settimeout(None)
    connection.sendall(token.encode())
    _attend(connection, serve, os.dup(2))


def send_part(value: Any) -> None:
    """Sends something to the asker before the answer; only in a worker, in ``serve``."""
    if _asker is None:
        raise RuntimeError("there is no asker: this process is not a worker")
    _send(_asker, "part", value)


def _attend(connection: socket.socket, serve: Callable[[Any], Any], output: int) -> NoReturn:
    """Answers requests until the connection ends, then ends the process.

    By ``os._exit``: what was registered for the end of the process is the parent's, and taking torch apart takes
    most of a second.
    """
    global _asker
    _asker = connection
    faulthandler.enable(file=output, all_threads=True)
    if hasattr(os, "register_at_fork"):  # a child of the worker must not keep the connection open
        os.register_at_fork(after_in_child=connection.close)
    status = 0
    try:
        while (request := _receive_request(connection)) is not None:
            value = serve(pickle.loads(request))  # noqa: S301  (of the process that started this one)
            _send(connection, "answer", value)
    except OSError as error:
        if not isinstance(error, ConnectionError):
            status = _report(connection, error)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException as error:
        status = _report(connection, error)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)
    raise AssertionError


def _report(connection: socket.socket, error: BaseException) -> int:
    traceback.print_exc()
    with contextlib.suppress(OSError):
        _send(connection, "raised", f"raised {type(error).__name__}: {error}")
    return 1


def _receive_request(connection: socket.socket) -> bytes | None:
    try:
        return _read_exactly(connection, _LENGTH.unpack(_read_exactly(connection, _LENGTH.size))[0])
    except ConnectionError:
        return None


def _send(connection: socket.socket, kind: str, value: Any) -> None:
    data = pickle.dumps((kind, value))
    connection.sendall(_LENGTH.pack(len(data)) + data)


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            raise ConnectionResetError("the connection ended")
        data += part
    return bytes(data)


def _fork() -> int:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with contextlib.suppress(Exception):  # what is in its buffer would be written twice
                stream.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's, of threads: can_fork() looks at those that matter
        return os.fork()


def _signal_at_end_of_parent(number: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _read_all(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _most_telling(output: str) -> str:
    """The last lines; of a crash those that tell where, which begin with the innermost call."""
    lines = [line for line in output.splitlines() if not line.startswith("Extension modules:")]
    for number, line in enumerate(lines):
        if line.startswith("Fatal Python error"):
            first = max(0, number - _LAST_LINES // 4)
            return "\n".join(lines[first : number + _LAST_LINES]).strip("\n")
    return "\n".join(lines[-_LAST_LINES:]).strip("\n")


def describe_exit(status: int) -> str:
    """An exit status in words: the signal's name where one ended the process."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"crashed with {signal.Signals(-status).name}"
    except ValueError:
        return f"crashed with signal {-status}"


def can_fork() -> str | None:
    """Why a worker that is forked from this process could not compute, in a clause; None if it could."""
    if not hasattr(os, "fork"):
        return "this system has no fork"
    torch = sys.modules.get("torch")
    if torch is not None:
        name = torch._C._get_privateuse1_backend_name()
        for device in (name, "cuda", "xpu", "mtia"):
            module = getattr(torch, device, None)
            for question in ("is_initialized", "_is_in_bad_fork"):
                ask = getattr(module, question, None)
                if callable(ask) and ask() is True:
                    return f"the device {device} is initialised, and a forked child cannot use it"
    threads = _threads()
    for thread, (thread_name, library) in sorted(threads.items()):
        if thread_name.startswith("pt_autograd"):
            return "a backward pass has started autograd's threads, and a forked child cannot run another one"
        if library.startswith("libgomp"):
            return f"OpenMP's threads run (thread {thread}), and a forked child would wait for them forever"
    return None


def _threads() -> dict[int, tuple[str, str]]:
    """Name of each thread, and the library that it waits in. Empty where the system does not tell.

    GNU's OpenMP is the one that a fork breaks, and its threads have no name of their own: they wait in its own code.
    """
    threads: dict[int, tuple[str, str]] = {}
    ranges = _mapped_code()
    for folder in Path("/proc/self/task").glob("*"):
        with contextlib.suppress(OSError):  # the thread has ended
            name = (folder / "comm").read_text().strip()
            call = (folder / "syscall").read_text().split()
            where = int(call[-1], 16) if len(call) > 1 else 0
            library = next((path for first, last, path in ranges if first <= where < last), "")
            threads[int(folder.name)] = (name, library)
    return threads


def _mapped_code() -> list[tuple[int, int, str]]:
    ranges = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and "x" in fields[1]:
                first, last = (int(number, 16) for number in fields[0].split("-"))
                ranges.append((first, last, Path(fields[5]).name))
    return ranges


def _main() -> NoReturn:
    module, function = sys.argv[1].split(":")
    attend(getattr(importlib.import_module(module), function))


if __name__ == "__main__":
    _main()
