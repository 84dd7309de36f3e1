# SPDX-License-Identifier: BSD-3-Clause
"""The processes behind ``forks``: the server that forks workers, and the workers, forked or started.

The command of a started worker is ``python -m openreg_testing.workers.server module:function``.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import gc
import importlib
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from . import wire
from ._platform import IS_POSIX, close_after_fork, signal_at_end_of_parent
from .fork_safety import can_fork

ADDRESS = "TESTING_WORKERS_CLIENT"  # where a started worker connects, as port:token:process of the client
REPLY = struct.Struct("!iq")  # a reply of the server: an error number, and a process id or exit status
PATIENCE = 5.0  # seconds for a step that takes milliseconds, such as exiting when the connection has ended
_IMPORT_PATIENCE = 60.0


def fork() -> int:
    """Calls ``os.fork`` after flushing the streams, whose buffers both processes would otherwise write."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with contextlib.suppress(Exception):  # a user's object, or a closed stream
                stream.flush()
    with warnings.catch_warnings():
        # Python warns of every other thread; can_fork() checks the threads that matter.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def serve_forks(control: socket.socket, serve: Callable[[Any], Any], client: int) -> NoReturn:
    """Runs the server: forks or ends a worker on each request until the connection ends, then ends the process.

    ``client`` is the process id of the client.
    """
    workers: set[int] = set()

    def exit_if_client_ended(*_: object) -> None:
        if os.getppid() != client:  # Linux also sends the signal when only the forking thread of the client ended
            _kill(workers)
            os._exit(0)

    status = 1
    try:
        os.setpgid(0, 0)  # so that Ctrl-C signals only the client
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, exit_if_client_ended)
        signal_at_end_of_parent(signal.SIGTERM)
        exit_if_client_ended()
        _note_imports()
        gc.freeze()  # otherwise the collector of each worker would write to, and so copy, all pages of objects
        while True:
            header, handles, _, _ = socket.recv_fds(control, wire.LENGTH.size, 1)
            if len(header) < wire.LENGTH.size:
                break
            request = pickle.loads(wire.read(control, wire.LENGTH.unpack(header)[0]))
            if request[0] == "fork":
                _fork_worker(control, workers, serve, request[1], handles[0])
            elif request[0] == "import":
                control.sendall(REPLY.pack(0, _import_ahead(request[1])))
            else:
                _, process, patience = request
                workers.discard(process)
                control.sendall(REPLY.pack(0, _reap(process, patience)))
        status = 0
    except ConnectionError:
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        _kill(workers)
        os._exit(status)


def _fork_worker(
    control: socket.socket,
    workers: set[int],
    serve: Callable[[Any], Any],
    environment: Mapping[str, str],
    output: int,
) -> None:
    server = os.getpid()
    ours, theirs = socket.socketpair()
    try:
        process = fork()
    except OSError as error:
        ours.close()
        os.close(output)
        control.sendall(REPLY.pack(error.errno or errno.EAGAIN, 0))
        return
    finally:
        if os.getpid() == server:
            theirs.close()
    if process == 0:
        control.close()
        ours.close()
        _run_forked_worker(theirs, serve, environment, output, server)
    workers.add(process)
    with contextlib.suppress(OSError):  # the worker makes this call too, because either process may run first
        os.setpgid(process, process)
    handles = [ours.fileno()]
    with contextlib.suppress(AttributeError, OSError):  # absent on some systems, and forbidden in some containers
        handles.append(os.pidfd_open(process))
    socket.send_fds(control, [REPLY.pack(0, process)], handles)
    ours.close()
    for handle in (output, *handles[1:]):
        os.close(handle)


def _run_forked_worker(
    connection: socket.socket, serve: Callable[[Any], Any], environment: Mapping[str, str], output: int, server: int
) -> NoReturn:
    try:
        os.setpgid(0, 0)  # a process group, so that children of the worker can be ended with it
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal_at_end_of_parent(signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        for number in (1, 2):
            os.dup2(output, number)
        sys.stdout, sys.stderr = (  # new ones, because the client's may write to another file, as under pytest
            open(number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            for number in (1, 2)
        )
        os.environ.update(environment)
        _recreate_thread_pool()
        _serve_requests(connection, serve, output)
    finally:
        os._exit(1)


def _recreate_thread_pool() -> None:
    """Makes PyTorch recreate its thread pool now.

    PyTorch recreates it in the first call after a fork, which is not thread-safe. Autograd has one thread per device,
    and these threads would make that call at the same time and abort.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(torch.get_num_threads())


def _import_ahead(modules: list[str]) -> bool:
    """Imports modules that workers had to import, so that later workers need not; returns True if it did.

    It first imports them in a forked child, and skips them if that child could not be forked safely afterwards.
    """
    trial = fork()
    if trial == 0:
        safe = False
        try:
            _import_silently(modules)
            safe = can_fork() is None and threading.active_count() == 1
        finally:
            os._exit(int(not safe))
    safe = wait_for(trial, _IMPORT_PATIENCE) == 0
    with contextlib.suppress(OSError):  # the child has ended and is reaped
        os.kill(trial, signal.SIGKILL)
        os.waitpid(trial, 0)
    if safe:
        _import_silently(modules)
        _note_imports()
        gc.freeze()
    return safe


def _import_silently(modules: list[str]) -> None:
    """Imports modules and discards their output and warnings, which the worker that imported them has shown."""
    kept = [os.dup(1), os.dup(2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    _flush()
    try:
        for number in (1, 2):
            os.dup2(nothing, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for module in modules:
                with contextlib.suppress(Exception):  # the import may need what a test had prepared
                    importlib.import_module(module)
    finally:
        _flush()  # otherwise workers would inherit Python's buffers and write their content
        for number, handle in enumerate(kept, 1):
            os.dup2(handle, number)
        for handle in (nothing, *kept):
            os.close(handle)


def _reap(process: int, patience: float) -> int:
    """Returns the exit status of a worker, which is killed if it still runs after ``patience`` seconds.

    Its children are killed in any case.
    """
    status = wait_for(process, patience)
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


def wait_for(process: int, patience: float) -> int | None:
    """Returns the exit status of a child, or None if it still runs after ``patience`` seconds."""
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


def attend(serve: Callable[[Any], Any]) -> NoReturn:
    """Serves the requests of the ``SpawnServer`` that started this process, then ends the process.

    Raises RuntimeError in any other process.
    """
    place = os.environ.pop(ADDRESS, "")
    if not place:
        raise RuntimeError(f"attend(): {ADDRESS} is not set; call it only in a process that a SpawnServer started")
    port, token, client = place.split(":")
    if int(client):
        signal_at_end_of_parent(getattr(signal, "SIGKILL", 0))
        if IS_POSIX and os.getppid() != int(client):
            os._exit(1)
    connection = socket.create_connection(("127.0.0.1", int(port)))
    connection.sendall(token.encode())
    _note_imports()
    _serve_requests(connection, serve, os.dup(2))


_imported: set[str] = set()  # the modules that a worker starts with
_client: socket.socket | None = None  # in a worker, the connection to the client


def _note_imports() -> None:
    """Records the imported modules.

    The server does so before it forks, because reading every name in a worker would copy the memory of the names.
    """
    _imported.update(sys.modules)


def _late_imports() -> list[str]:
    """Returns the modules of torch imported since the last call, in the order of import.

    torch imports many of its modules at their first use. Other packages are left out, because a test may check that
    its library imports no module. The modules of the compiler are left out, because they start processes.
    """
    if len(sys.modules) == len(_imported):
        return []
    late = [name for name in list(sys.modules) if name not in _imported]
    _imported.update(late)
    return [name for name in late if name.startswith("torch.") and not name.startswith("torch._inductor")]


def send_part(value: Any) -> None:
    """Sends a value to the client before the reply; ``serve`` may call it. Raises RuntimeError outside a worker."""
    if _client is None:
        raise RuntimeError("send_part(): this process is not a worker; call it in the function serve of a worker")
    _client.sendall(wire.packed(("part", value)))


def _serve_requests(connection: socket.socket, serve: Callable[[Any], Any], output: int) -> NoReturn:
    """Serves requests until the connection ends, then ends the process with ``os._exit``.

    Exit handlers belong to the process from which the worker was forked, and the finalization of torch takes most of a
    second.
    """
    global _client
    _client = connection
    faulthandler.enable(file=output, all_threads=True)
    close_after_fork(connection.close)  # otherwise children of the worker would keep it open
    status = 0
    try:
        while True:
            try:
                request = wire.receive(connection)
            except ConnectionError:
                break
            value = serve(request)
            _flush()  # the client reads the output as soon as it has the reply
            connection.sendall(wire.packed(("answer", (value, _late_imports()))))
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException as error:
        status = 1
        traceback.print_exc()
        _flush()
        with contextlib.suppress(OSError):
            connection.sendall(wire.packed(("raised", f"raised {type(error).__name__}: {error}")))
    finally:
        _flush()
        os._exit(status)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


if __name__ == "__main__":
    # This file under its name, so that send_part() finds the connection.
    from openreg_testing.workers import server

    module, function = sys.argv[1].split(":")
    server.attend(getattr(importlib.import_module(module), function))
