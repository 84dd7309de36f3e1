# SPDX-License-Identifier: BSD-3-Clause
"""pytest in processes forked from one that has imported torch, because such imports are most of a short run.

``run`` is for tests; as a program this file is the process that forks. A run starts from nothing where its environment
differs in what torch or a backend reads when it is imported, and where nothing can be forked.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from _platform import HAS_FORK

READ_AT_IMPORT = ("LD_", "MKL_", "OMP_", "OPENREG_", "PYTHON", "TORCH")
OF_TESTS = "OPENREG_TEST_"


def run(arguments, folder, env, guard, *, module="pytest", fresh=False):
    """Status, standard output and standard error of ``python -m MODULE ARGUMENTS``; ``guard`` is in seconds."""
    arguments = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as written:
        out, err = Path(written, "out"), Path(written, "err")
        if HAS_FORK and not fresh and (server := _Server.get()).serves(env):
            files = {"out": str(out), "err": str(err)}
            request = {"module": module, "arguments": arguments, "folder": str(folder), "env": env, **files}
            status = server.ask(request, guard)
        else:
            command = [sys.executable, "-m", module, *arguments]
            with out.open("wb") as stdout, err.open("wb") as stderr:
                ends = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": stderr}
                status = subprocess.run(command, cwd=folder, env=env, timeout=guard, check=False, **ends).returncode
        return status, *(file.read_text("utf-8", "replace") for file in (out, err))


def _read_at_import(env):
    here = {name: value for name, value in env.items() if name.startswith(READ_AT_IMPORT)}
    # The child sees to PYTHONPATH itself, and OPENREG_TEST_... is for tests and the plug-in.
    return {name: value for name, value in here.items() if name != "PYTHONPATH" and not name.startswith(OF_TESTS)}


class _Server:
    _one = None

    @classmethod
    def get(cls):
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def __init__(self):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OPENREG_")}
        pipe = subprocess.PIPE
        self._env = inherited | {"PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen([sys.executable, __file__], stdin=pipe, stdout=pipe, env=self._env, bufsize=0)
        atexit.register(self._process.kill)

    def serves(self, env):
        """Whether torch, as this server has imported it, is what it would be in that environment."""
        return _read_at_import(env) == _read_at_import(self._env)

    def ask(self, request, guard):
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        child = int(self._process.stdout.readline())
        answered, _, _ = select.select([self._process.stdout], [], [], guard)
        if not answered:
            os.killpg(child, signal.SIGKILL)
        status = int(self._process.stdout.readline())
        if not answered:
            raise subprocess.TimeoutExpired(request["arguments"], guard)
        return status


def _serve():
    import pytest  # noqa: F401  (what the children need not do)
    import torch._dynamo  # noqa: F401  (which optimizers and torch.testing import when they are first used)

    gc.freeze()  # nor collect again
    for line in sys.stdin.buffer:
        child = os.fork()
        if child == 0:
            os.setsid()
            _become(json.loads(line))
            return
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(request):
    """What ``python -m MODULE`` is to begin with."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, name in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
        opened = os.open(name, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  (the server's has read ahead)
    further = request["env"].get("PYTHONPATH", "")
    sys.path[:1] = [request["folder"], *filter(None, further.split(os.pathsep))]
    sys.argv = [request["module"], *request["arguments"]]
    del sys.modules["_platform"]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve()
