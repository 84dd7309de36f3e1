# SPDX-License-Identifier: BSD-3-Clause
"""Programs in processes of their own, as ``fresh`` has them, that start further Python programs.

A command whose children import torch is as slow as its children are many. ``FreshFamily`` forks the children too: in
the program, ``subprocess`` starts a program of this Python as a fork, and any other as it is.

The file is also what runs in the forked process, and imports nothing of its package but ``fresh``.
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

# What the forked process does by itself, so that a program with these options can be forked from one without them.
_OWN_OPTIONS = {"-B", "-X faulthandler"}


class FreshFamily(fresh.FreshPython):
    """Runs programs one after the other, each in a new process, from which the processes that it starts are forked.

    In all of them torch is imported, with the backends that load with it, at the program's ``import torch``; and only
    where Python would find this very torch. ``env`` is the environment of the interpreter that forks, as where the
    options hide torch from it.
    """

    def __init__(self, *modules: str, options: tuple[str, ...] = (), env: Mapping[str, str] | None = None) -> None:
        super().__init__(*modules, options=options)
        if env is not None:
            self._env = dict(env)

    def run(self, *arguments: str, env: Mapping[str, str], **how: Any) -> subprocess.CompletedProcess[str]:
        """As FreshPython.run(), with children that are forked where the program is."""
        if how.get("fresh") or not self._can_be_forked(arguments, env):
            return super().run(*arguments, env=env, **{**how, "fresh": True})
        own = json.dumps({"env": dict(env), "options": self._options})
        return super().run(__file__, own, *arguments, env={**env, fresh._AUTOLOAD: "0"}, **how)


class _Torch(MetaPathFinder, Loader):
    """Imports the torch that this process has anyway, where Python would find that one."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch = torch

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """What Python finds, with this loader."""
        found = PathFinder.find_spec(fullname, path) if fullname == "torch" else None
        if found is None or found.origin is None or not Path(found.origin).samefile(str(self._torch.__file__)):
            return None
        found.loader = self
        return found

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002
        """The module, with all its names."""
        return self._torch

    def exec_module(self, module: ModuleType) -> None:
        """Does the last that torch does when it is imported."""
        if module._is_device_backend_autoload_enabled():
            module._import_device_backends()


class _Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A process that runs a program of this Python is a fork of this one."""

    options: Sequence[str] = ()  # of this Python
    torch: ModuleType
    modules: frozenset[str]  # that this process had before its own program began
    path: Sequence[str]  # sys.path of that time

    def __init__(self, args: Any, *more: Any, **options: Any) -> None:
        env = options.get("env") or dict(os.environ)
        program = _program(args, env)
        if program is not None:
            options["preexec_fn"] = partial(_run_forked, env, *program)  # which does not come back
        super().__init__(args, *more, **options)


def _program(command: Any, env: Mapping[str, str]) -> tuple[set[str], list[str]] | None:
    """Options and arguments of a command that runs a program in a Python like this one; None of any other."""
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
    """Runs a program in a fork of another program, of which it keeps nothing, and ends the process."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # also the pipe at whose end the other program waits for the start
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
    # As in fresh: nobody else may be the first to call PyTorch after a fork.
    _Popen.torch.set_num_threads(_Popen.torch.get_num_threads())
    fresh._end(_begin(env, arguments))


def _begin(env: Mapping[str, str], arguments: list[str]) -> int:
    """Runs a program in this process, and gives its exit status."""
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
