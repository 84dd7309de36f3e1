# SPDX-License-Identifier: BSD-3-Clause
"""Scripts in processes of their own that have imported torch and nothing else: forks of one, as that takes seconds."""

import contextlib
import os
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

from openreg_testing.conformance.pool import Answer, Lost, Pool

LIMIT = 240  # seconds, against hangs
OF_BACKENDS = ("OPENREG_", "TORCH_")
AUTOLOAD = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


@dataclass(frozen=True)
class ImportTorch:
    """What each process begins with."""

    def run(self):
        import torch  # noqa: F401


@dataclass(frozen=True)
class Script:
    """Code to run in a folder, with these environment variables and no other ones of backends."""

    code: str
    folder: str
    variables: dict

    def run(self):
        """(exit status, standard output, standard error)."""
        for name in [name for name in os.environ if name.startswith((*OF_BACKENDS, "PYTHONPATH"))]:
            del os.environ[name]
        os.environ.update({**AUTOLOAD, **self.variables})
        os.chdir(self.folder)
        sys.path.insert(0, "")
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            with written_to(output, errors):
                status = self._execute()
            output.seek(0)
            errors.seek(0)
            return Answer((status, output.read(), errors.read()), spent=True)

    def _execute(self):
        try:
            exec(compile(self.code, "<string>", "exec"), {"__name__": "__main__"})
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            return 1
        return 0


@contextlib.contextmanager
def written_to(output, errors):
    """What Python and native code write goes to these files."""
    kept = [os.dup(1), os.dup(2)]
    for number, file in ((1, output), (2, errors)):
        os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, handle in enumerate(kept, 1):
            os.dup2(handle, number)
            os.close(handle)


class FreshProcesses:
    """Runs scripts, one after the other; close() ends the process that forks."""

    def __init__(self):
        # The processes find this file, and have as many threads as others: the pool would give them one.
        threads = os.environ.get("OMP_NUM_THREADS", str(os.cpu_count()))
        settings = {**AUTOLOAD, "PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": threads}
        self._pool = Pool((ImportTorch(),), 1, LIMIT, settings)

    def run(self, code, folder, variables):
        """The process as subprocess.run() gives it; one that reads variables when it starts is a new interpreter."""
        if any(not name.startswith("OPENREG_") for name in variables):
            return run_interpreter(code, folder, variables)
        found = self._pool.ask(Script(code, str(folder), variables))
        if isinstance(found, Lost):
            return subprocess.CompletedProcess(code, -1, "", f"{found.reason}\n{found.output}")
        return subprocess.CompletedProcess(code, *found.value)

    def close(self):
        self._pool.close()


def run_interpreter(code, folder, variables):
    """The code in an interpreter that begins with nothing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_BACKENDS)}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        env={**kept, **AUTOLOAD, **variables},
        cwd=folder,
    )
