# SPDX-License-Identifier: BSD-3-Clause
"""Runs scripts in processes that have imported torch, and nothing else of the device.

Importing torch takes seconds, so one process does it once and forks a child for every script. Where
there is no fork, each script gets an interpreter of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver._platform import HAS_FORK


@dataclass
class Outcome:
    """How a script ended; `code` is negative when a signal ended it."""

    code: int
    output: str
    errors: str


class FreshProcesses:
    """Runs scripts, one after the other; close() ends the process that forks."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def run(
        self,
        script: str,
        *,
        env: dict[str, str] | None = None,
        timeout: float = 240,
        finalise: bool = False,
    ) -> Outcome:
        """Runs it. Taking torch apart takes most of a second, so that only happens on request."""
        script = textwrap.dedent(script)
        if not finalise:
            script += "\nimport os, sys; sys.stdout.flush(); sys.stderr.flush(); os._exit(0)\n"
        with tempfile.TemporaryDirectory() as folder:
            request = {
                "script": script,
                "env": env or {},
                "output": str(Path(folder, "output")),
                "errors": str(Path(folder, "errors")),
                "timeout": timeout,
            }
            code = self._fork(request) if HAS_FORK else self._spawn(request)
            output, errors = (Path(request[key]).read_text() for key in ("output", "errors"))
        assert code is not None, f"not done after {timeout} s\n{output}\n{errors}"
        return Outcome(code, output, errors)

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate(timeout=240)
            self._server = None

    def _fork(self, request: dict[str, Any]) -> int | None:
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, "-B", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=clean_environment(),
            )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def _spawn(self, request: dict[str, Any]) -> int | None:
        with Path(request["output"]).open("w") as output, Path(request["errors"]).open("w") as errors:
            try:
                return subprocess.run(
                    [sys.executable, "-B", "-c", request["script"]],
                    stdout=output,
                    stderr=errors,
                    env={**clean_environment(), **request["env"]},
                    timeout=request["timeout"],
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                return None


def clean_environment() -> dict[str, str]:
    """Without settings of the device, and so that no backend loads by itself."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OPENREG_")}
    return {**kept, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def wait_for(child: int, timeout: float) -> int | None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


def serve() -> dict[str, Any] | None:
    """Gives a request in a child that is to work on it; None in the server, at the end."""
    import torch

    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            # PyTorch makes its pool of threads anew in the first call after a fork, and not thread-safely: autograd's
            # threads would make that call at the same time.
            torch.set_num_threads(torch.get_num_threads())
            return request
        print(json.dumps(wait_for(child, request["timeout"])), flush=True)
    return None


def main() -> None:
    request = serve()
    if request is None:
        return
    os.environ.update(request["env"])
    for key, descriptor in (("output", 1), ("errors", 2)):
        os.dup2(os.open(request[key], os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        exec(compile(request["script"], "<script>", "exec"), {"__name__": "__main__"})
    except Exception:
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
