# SPDX-License-Identifier: BSD-3-Clause
"""The far side of ``forks``: the server that forks workers, and what a worker does, forked or started.

python -m openreg_testing.workers module:function
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

ADDRESS = "TESTING_WORKERS_ASKER"  # tells a worker that was started where to connect: port:token:process
REPLY = struct.Struct("!iq")  # of the server: an error number, and a process or its exit status
PATIENCE = 5.0  # seconds for what takes milliseconds, such as leaving when the connection has ended
_IMPORT_PATIENCE = 60.0


def fork() -> int:
    """``os.fork``, with nothing left in buffers that two processes would write."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with contextlib.suppress(Exception):  # the user's own object, or closed
                stream.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's, of any thread; can_fork() knows which matter
        return os.fork()


def serve_forks(control: socket.socket, serve: Callable[[Any], Any], asker: int) -> NoReturn:
    """The server: forks a worker, or ends one, on each request, until its connection ends."""
    workers: set[int] = set()

    def end_with_asker(*_: object) -> None:
        if os.getppid() != asker:  # the signal also comes when only the thread ended that forked this process
            _kill(workers)
            os._exit(0)

    status = 1
    try:
        os.setpgid(0, 0)  # Ctrl-C is for the asker
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, end_with_asker)
        signal_at_end_of_parent(signal.SIGTERM)
        end_with_asker()
        _note_imports()
        gc.freeze()  # else the collector of each worker would touch, and so copy, all that there is
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
        control.sendall(REPLY.pack(error.errno or errno.EAGAIN, 0))
        return
    finally:
        if os.getpid() == server:
            theirs.close()
    if process == 0:
        control.close()
        ours.close()
        _be_forked(theirs, serve, environment, output, server)
    workers.add(process)
    with contextlib.suppress(OSError):  # the worker does it too: whoever is first
        os.setpgid(process, process)
    handles = [ours.fileno()]
    with contextlib.suppress(AttributeError, OSError):  # not on every system, and not in every container
        handles.append(os.pidfd_open(process))
    socket.send_fds(control, [REPLY.pack(0, process)], handles)
    ours.close()
    for handle in (output, *handles[1:]):
        os.close(handle)


def _be_forked(
    connection: socket.socket, serve: Callable[[Any], Any], environment: Mapping[str, str], output: int, server: int
) -> NoReturn:
    try:
        os.setpgid(0, 0)  # what the worker starts can be ended with it
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
        sys.stdout, sys.stderr = (  # those of the asker may write to a file of its own, as under pytest
            open(number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            for number in (1, 2)
        )
        os.environ.update(environment)
        _mend_thread_pool()
        _answer(connection, serve, output)
    finally:
        os._exit(1)


def _mend_thread_pool() -> None:
    """Lets PyTorch make its pool of threads anew, which it does in the first call after a fork, and not thread-safely.

    Autograd's threads, one for each device, make that call at the same time and abort.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(torch.get_num_threads())


def _import_ahead(modules: list[str]) -> bool:
    """Imports what workers had to import, so that later ones need not; but nothing after which none could be forked."""
    trial = fork()
    if trial == 0:
        safe = False
        try:
            _import_silently(modules)
            safe = can_fork() is None and threading.active_count() == 1
        finally:
            os._exit(int(not safe))
    safe = wait_for(trial, _IMPORT_PATIENCE) == 0
    with contextlib.suppress(OSError):  # it has ended and is reaped
        os.kill(trial, signal.SIGKILL)
        os.waitpid(trial, 0)
    if safe:
        _import_silently(modules)
        _note_imports()
        gc.freeze()
    return safe


def _import_silently(modules: list[str]) -> None:
    """Nobody asked this process for what a module has to say; the worker said it."""
    kept = [os.dup(1), os.dup(2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    _flush()
    try:
        for number in (1, 2):
            os.dup2(nothing, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for module in modules:
                with contextlib.suppress(Exception):  # it may need what a test had prepared
                    importlib.import_module(module)
    finally:
        _flush()  # else workers would inherit, and write, what stands in Python's buffers
        for number, handle in enumerate(kept, 1):
            os.dup2(handle, number)
        for handle in (nothing, *kept):
            os.close(handle)


def _reap(process: int, patience: float) -> int:
    """The exit status of a worker; it is killed if it does not end by itself, and what it started in any case."""
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
    """The exit status of a child; None if it still runs after so many seconds."""
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
    """Answers the requests of the ``SpawnServer`` that started this process, and ends the process."""
    place = os.environ.pop(ADDRESS, "")
    if not place:
        raise RuntimeError(f"{ADDRESS} is not set: attend() is for a process that a SpawnServer started")
    port, token, asker = place.split(":")
    if int(asker):
        signal_at_end_of_parent(getattr(signal, "SIGKILL", 0))
        if IS_POSIX and os.getppid() != int(asker):
            os._exit(1)
    connection = socket.create_connection(("127.0.0.1", int(port)))
    connection.sendall(token.encode())
    _note_imports()
    _answer(connection, serve, os.dup(2))


_imported: set[str] = set()  # the modules that a worker begins with
_asker: socket.socket | None = None  # in a worker, the connection to who asks


def _note_imports() -> None:
    """In the server: to look at every name would make each worker copy the memory that it lies in."""
    _imported.update(sys.modules)


def _late_imports() -> list[str]:
    """The modules of torch that were imported meanwhile, in this order: it imports much when it is first needed.

    Only its own: a test may look whether its library has imported something. Not those of the compiler, which start
    processes.
    """
    if len(sys.modules) == len(_imported):
        return []
    late = [name for name in list(sys.modules) if name not in _imported]
    _imported.update(late)
    return [name for name in late if name.startswith("torch.") and not name.startswith("torch._inductor")]


def send_part(value: Any) -> None:
    """Sends something to the asker before the answer; for ``serve``, in a worker."""
    if _asker is None:
        raise RuntimeError("send_part() is for a worker, and this process is none")
    _asker.sendall(wire.packed(("part", value)))


def _answer(connection: socket.socket, serve: Callable[[Any], Any], output: int) -> NoReturn:
    """Answers requests until the connection ends, then ends the process.

    By ``os._exit``: what was registered for the end of a process is for the one that it was forked from, and taking
    torch apart takes most of a second.
    """
    global _asker
    _asker = connection
    faulthandler.enable(file=output, all_threads=True)
    close_after_fork(connection.close)  # else it would outlive the worker in what that started
    status = 0
    try:
        while True:
            try:
                request = wire.receive(connection)
            except ConnectionError:
                break
            value = serve(request)
            _flush()  # whoever has the answer looks at the output
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
    from openreg_testing import workers  # this file under its own name, so that send_part() knows the asker

    module, function = sys.argv[1].split(":")
    workers.attend(getattr(importlib.import_module(module), function))
