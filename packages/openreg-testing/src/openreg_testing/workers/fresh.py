# SPDX-License-Identifier: BSD-3-Clause
"""Python programs in separate processes, forked from an interpreter that has already imported torch.

Some tests need a separate process: for the first use of a device, an import, the end of a program, or a setting that
is read once. Importing torch takes seconds, and forking a process that has imported it takes milliseconds. So
``FreshPython`` starts one interpreter that imports torch, and forks it for each program:

    python = FreshPython()
    done = python.run("-c", "import torch; print(torch.ones(2))", env={"OPENREG_POISON": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    python.close()

A program gets a newly started interpreter instead in each case in which a fork could behave differently:

- its environment differs from that of the forking interpreter in a variable that Python, torch or a library that torch
  loads reads when it starts;
- its arguments begin with another option of Python than ``-c`` or ``-m``;
- the system has no fork.

This file is also the program of the forking interpreter, in which it imports no other file of its package.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
# Prefixes of the variables that Python, torch and the libraries that torch loads read when they start.
_READ_AT_START = ("KMP_", "LD_", "MKL_", "OMP_", "PYTHON", "TORCH")
# Exceptions: variables that the forked process applies itself, that only concern how the interpreter writes files, or
# that are read at their first use.
_TAKEN_OVER = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "TORCHINDUCTOR_CACHE_DIR", _AUTOLOAD)


class FreshPython:
    """A runner of programs, one after the other, each in a new process. Thread-safe.

    The forking interpreter is started with the first program. It has ``options`` of Python and the environment of this
    process without the variables ``OPENREG_*`` and ``TORCH_*``. It imports torch and ``modules``, and no backend. On a
    system without fork, programs also run, but start more slowly.
    """

    def __init__(self, *modules: str, options: tuple[str, ...] = ()) -> None:
        self._modules = ("torch", *modules)
        self._options = options
        self._env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None

    def run(
        self,
        *arguments: str,
        env: Mapping[str, str],
        folder: str | os.PathLike[str] | None = None,
        timeout: float = 240,
        finalize: bool = False,
        fresh: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Returns the result of ``subprocess.run([sys.executable, *arguments])``, with stdout and stderr as text.

        ``arguments`` are ``-c CODE``, ``-m MODULE ...`` or ``FILE ...``. ``env`` is the whole environment, and
        ``folder`` the current folder. After ``timeout`` seconds the process is killed with its children, on Windows
        without them, and ``subprocess.TimeoutExpired`` is raised. The forked process runs its ``atexit`` functions and
        ends. With ``finalize`` it also finalizes Python's modules, which with torch takes most of a second. ``fresh``
        requires a newly started interpreter.

        A backend that torch loads automatically is loaded before the program begins, not at its ``import torch``.
        """
        folder = os.fspath(folder or Path.cwd())
        with tempfile.TemporaryDirectory() as written:
            out, err = Path(written, "out"), Path(written, "err")
            if fresh or not self._can_be_forked(arguments, env):
                command = [sys.executable, *self._options, *arguments]
                with out.open("wb") as stdout, err.open("wb") as stderr:
                    process = subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=stdout,
                        stderr=stderr,
                        cwd=folder,
                        env=dict(env),
                        start_new_session=True,  # a process group, so that its children can be killed with it
                    )
                    status = _wait(process, timeout)
            else:
                files = {"out": str(out), "err": str(err)}
                request = {"arguments": arguments, "folder": folder, "env": dict(env), "finalize": finalize, **files}
                status = self._request(request, timeout)
            texts = (file.read_text("utf-8", "replace") for file in (out, err))
            return subprocess.CompletedProcess(arguments, status, *texts)

    def close(self) -> None:
        """Ends the forking interpreter."""
        with self._lock:
            if self._server is not None:
                atexit.unregister(self._server.kill)
                self._server.communicate()
                self._server = None

    def _can_be_forked(self, arguments: tuple[str, ...], env: Mapping[str, str]) -> bool:
        # Not at the top, because the forking interpreter runs this file without its package.
        from ._platform import HAS_FORK

        is_program = arguments[0] in ("-c", "-m") or not arguments[0].startswith("-")
        return HAS_FORK and is_program and _read_at_start(env) == _read_at_start(self._env)

    def _request(self, request: dict[str, Any], timeout: float) -> int:
        with self._lock:
            if self._server is None:
                self._server = subprocess.Popen(
                    [sys.executable, *self._options, __file__, *self._modules],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=self._env | {_AUTOLOAD: "0"},
                    bufsize=0,
                )
                atexit.register(self._server.kill)
            requests, replies = self._server.stdin, self._server.stdout
            assert requests is not None
            assert replies is not None
            with contextlib.suppress(BrokenPipeError):  # the interpreter has ended; so there is no reply
                requests.write(json.dumps(request).encode() + b"\n")
            reply = replies.readline()
            if not reply:
                raise self._end_of_server(self._server)
            child = int(reply)
            in_time: list[Any] = []
            try:
                in_time, _, _ = select.select([replies], [], [], timeout)
            finally:
                if not in_time:  # after the timeout, or Ctrl-C, whose signal another process group does not get
                    _kill_group(child)
                status = replies.readline()  # also after Ctrl-C, so that the next request does not read it
            if not status:
                _kill_group(child)
                raise self._end_of_server(self._server)
            if not in_time:
                raise subprocess.TimeoutExpired(list(request["arguments"]), timeout)
            return int(status)

    def _end_of_server(self, server: subprocess.Popen[bytes]) -> RuntimeError:
        """Forgets the forking interpreter, which has ended, and returns the error for that."""
        atexit.unregister(server.kill)
        server.communicate()
        self._server = None
        return RuntimeError(
            f"FreshPython.run(): the interpreter that forks the programs ended with status {server.returncode}; "
            "its output is in the standard error of this process"
        )


def _kill_group(leader: int) -> None:
    """Kills a process and its children."""
    with contextlib.suppress(OSError):  # it has just ended; macOS reports that as PermissionError
        os.killpg(leader, signal.SIGKILL)


def _wait(process: subprocess.Popen[bytes], timeout: float) -> int:
    """Returns the exit status of a process that leads a process group; kills the group if the wait fails."""
    from ._platform import IS_POSIX

    try:
        return process.wait(timeout)
    except BaseException:  # TimeoutExpired, or Ctrl-C, whose signal another session does not get
        if IS_POSIX:
            _kill_group(process.pid)
        process.kill()
        process.wait()
        raise


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_READ_AT_START) and name not in _TAKEN_OVER}


def _serve() -> dict[str, Any] | None:
    """Returns a request in the child that runs it, and None in the server when its input ends."""
    del sys.path[0]  # the folder of this file
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keeps the output of imports out of the replies
    for name in sys.argv[1:]:
        importlib.import_module(name)
    gc.freeze()  # keeps the collector of each child from these objects, whose pages it would copy
    for line in sys.stdin.buffer:
        child = os.fork()
        if child == 0:
            replies.close()
            os.setpgid(0, 0)
            request: dict[str, Any] = json.loads(line)
            return request
        with contextlib.suppress(OSError):  # the child makes this call too, because either process may run first
            os.setpgid(child, child)
        print(child, file=replies, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=replies, flush=True)
    return None


def _paths(variable: str) -> list[str]:
    return [path for path in variable.split(os.pathsep) if path]


def _apply_request(request: dict[str, Any]) -> None:
    """Sets the folder, the environment and the standard streams of the request in this process."""
    torch = sys.modules["torch"]
    inherited = _paths(os.environ.get("PYTHONPATH", ""))
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, name in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  (the server's object has read ahead)
    sys.path[:] = [*_paths(request["env"].get("PYTHONPATH", "")), *(path for path in sys.path if path not in inherited)]
    # After a fork, the first call that uses PyTorch's thread pool, such as set_num_threads(), recreates the pool, which
    # is not thread-safe. Autograd's threads would make such calls at the same time, here and in children that the
    # program forks.
    torch.set_num_threads(torch.get_num_threads())
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(torch.get_num_threads()))
    if request["env"].get(_AUTOLOAD) != "0":
        torch._import_device_backends()


def _execute(arguments: list[str]) -> None:
    """Runs the program that ``python *arguments`` would run, as ``__main__``."""
    kind, *rest = arguments
    sys.orig_argv[:] = [sys.executable, *arguments]
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif kind == "-m":
        sys.argv = ["-m", *rest[1:]]  # the value that Python sets while it searches for the module
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")


def _status_of(arguments: list[str]) -> int:
    """Runs the program and returns its exit status; prints an exception as Python does."""
    try:
        _execute(arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        stack = error.__traceback__
        while stack is not None and stack.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
            stack = stack.tb_next
        sys.excepthook(type(error), error.with_traceback(stack), stack)
        return 1
    return 0


def _main() -> None:
    request = _serve()
    if request is None:
        return
    _apply_request(request)
    status = _status_of(request["arguments"])
    if request["finalize"]:
        sys.exit(status)
    _end(status)


def _end(status: int) -> NoReturn:
    """Ends the process as Python does, without the finalization of its modules."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    _main()
