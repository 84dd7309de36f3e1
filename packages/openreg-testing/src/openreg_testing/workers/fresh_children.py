# SPDX-License-Identifier: BSD-3-Clause
"""Programs that start further Python programs, each in a separate process as with ``fresh``.

A command takes seconds more for each child that imports torch. ``FreshFamily`` forks the children too. In the program,
``subprocess`` starts a program of this Python as a fork, and any other program as usual.

This file is also the program of the forked process, and imports no file of its package except ``fresh``.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

if __package__:
    from . import fresh
else:
    import fresh  # type: ignore[import-not-found, no-redef]

# Options that the forked process applies itself, so that a process without them can fork a program that has them.
_OWN_OPTIONS = {"-B", "-X faulthandler"}


class FreshFamily(fresh.FreshPython):
    """A runner of programs, one after the other, each in a new process that forks its children.

    In all these processes ``import torch`` returns the module of the forking interpreter and then loads its backends.
    If Python would find another installation of torch, that one is imported instead. ``env`` is the environment of
    the forking interpreter; it is needed if the options hide torch from that interpreter.
    """

    def __init__(self, *modules: str, options: tuple[str, ...] = (), env: Mapping[str, str] | None = None) -> None:
        super().__init__(*modules, options=options)
        if env is not None:
            self._env = dict(env)

    def run(self, *arguments: str, env: Mapping[str, str], **how: Any) -> subprocess.CompletedProcess[str]:
        """Same as ``FreshPython.run()``, except that the children of a forked program are forked too."""
        if how.get("fresh") or not self._can_be_forked(arguments, env):
            return super().run(*arguments, env=env, **{**how, "fresh": True})
        own = json.dumps({"env": dict(env), "options": self._options})
        return super().run(__file__, own, *arguments, env={**env, fresh._AUTOLOAD: "0"}, **how)


class _Torch(MetaPathFinder, Loader):
    """An importer of the torch that this process has already loaded, if Python would find that installation."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch = torch

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Returns the specification that Python finds for torch, with this loader; None for other modules."""
        found = PathFinder.find_spec(fullname, path) if fullname == "torch" else None
        if found is None or found.origin is None or not Path(found.origin).samefile(str(self._torch.__file__)):
            return None
        found.loader = self
        return found

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002
        """Returns the loaded module with all its names."""
        return self._torch

    def exec_module(self, module: ModuleType) -> None:
        """Loads the backends, which is the last step of an import of torch."""
        if module._is_device_backend_autoload_enabled():
            module._import_device_backends()


class _Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A child process, which is a fork of this process if it runs a program of this Python."""

    options: Sequence[str] = ()  # the options of this Python
    torch: ModuleType
    modules: frozenset[str]  # the modules imported before this process began its program
    path: Sequence[str]  # sys.path before this process began its program

    def __init__(self, args: Any, *more: Any, **options: Any) -> None:
        env = options.get("env") or dict(os.environ)
        program = _program(args, env)
        if program is not None:
            options["preexec_fn"] = partial(_run_forked, env, *program)  # does not return
        super().__init__(args, *more, **options)


def _program(command: Any, env: Mapping[str, str]) -> tuple[set[str], list[str]] | None:
    """Returns the options and arguments of a command that runs a program in a Python like this one, or None."""
    if not isinstance(command, list) or command[0] != sys.executable:
        return None
    options, arguments = set(), command[1:]
    while arguments and arguments[0].startswith("-") and arguments[0] not in ("-c", "-m"):
        count = 2 if arguments[0] in ("-X", "-W") else 1
        options.add(" ".join(arguments[:count]))
        del arguments[:count]
    alike = options - _OWN_OPTIONS == set(_Popen.options) - _OWN_OPTIONS
    return (options, arguments) if alike and fresh._read_at_start(env) == fresh._read_at_start(os.environ) else None


def _run_forked(env: Mapping[str, str], options: set[str], arguments: list[str]) -> NoReturn:
    """Runs a program in a fork of another program, discards that program's state, and ends the process."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # also the pipe at whose end the other program continues
    gc.enable()
    atexit._clear()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for name in set(sys.modules) - _Popen.modules:
        if name.partition(".")[0] not in sys.stdlib_module_names:
            del sys.modules[name]
    sys.path[:] = [*fresh._paths(env.get("PYTHONPATH", "")), *_Popen.path]
    sys.dont_write_bytecode = "-B" in options or bool(env.get("PYTHONDONTWRITEBYTECODE"))
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    if "-X faulthandler" in options:
        faulthandler.enable()
    # This thread must be the first to call PyTorch after a fork; see fresh._apply_request().
    _Popen.torch.set_num_threads(_Popen.torch.get_num_threads())
    fresh._end(_begin(env, arguments))


def _begin(env: Mapping[str, str], arguments: list[str]) -> int:
    """Runs a program in this process and returns its exit status."""
    os.environ.clear()
    os.environ.update(env)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Torch)]
    sys.meta_path.insert(0, _Torch(_Popen.torch))
    sys.modules.pop("torch", None)
    return fresh._status_of(arguments)


def _main() -> None:
    own = json.loads(sys.argv[1])
    del sys.path[0]  # the folder of this file
    inherited = fresh._paths(os.environ.get("PYTHONPATH", ""))
    _Popen.options = own["options"]
    _Popen.torch = sys.modules["torch"]
    _Popen.modules = frozenset(sys.modules)
    _Popen.path = [path for path in sys.path if path not in inherited]
    subprocess.Popen = _Popen  # type: ignore[misc]
    sys.exit(_begin(own["env"], sys.argv[2:]))


if __name__ == "__main__":
    _main()
