# SPDX-License-Identifier: BSD-3-Clause
"""A `python` command for the shells of the pages. Its processes are forked from one that has imported torch.

It asks the process of the tests, which has FreshPython run what it was given, and passes on what that printed.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from openreg_testing.fresh import FreshPython

# Without arguments a program comes from standard input, which a forked process does not have.
PROGRAM = """\
#!/bin/sh
[ $# -gt 0 ] || exec {python}
exec {python} -ISB {client} {address} "$@"
"""
CLIENT = """
import os, sys
from multiprocessing.connection import Client
with Client(sys.argv[1], family="AF_UNIX") as server:
    server.send((sys.argv[2:], dict(os.environ), os.getcwd()))
    status, output, errors = server.recv()
sys.stdout.write(output)
sys.stderr.write(errors)
sys.exit(status if status >= 0 else 128 - status)
"""


class PythonCommand:
    """Puts the program into `folder`, which has to be first on the PATH; close() ends it."""

    def __init__(self, folder: Path, python: FreshPython) -> None:
        self.folder = folder
        self._python = python
        client, self._address = folder / "client.py", str(folder / "address")
        client.write_text(CLIENT, encoding="utf-8")
        parts = {"python": sys.executable, "client": client, "address": self._address}
        program = folder / "python"
        program.write_text(PROGRAM.format(**{name: shlex.quote(str(part)) for name, part in parts.items()}), "utf-8")
        program.chmod(0o700)
        self._listener = Listener(self._address, family="AF_UNIX")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread that answers."""
        with Client(self._address, family="AF_UNIX") as server:
            server.send(None)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            with self._listener.accept() as caller:
                request = caller.recv()
                if request is None:
                    return
                self._answer(caller, *request)

    def _answer(self, caller: Connection, arguments: list[str], env: dict[str, str], folder: str) -> None:
        try:
            done = self._python.run(*arguments, env=env, folder=folder)
        except subprocess.TimeoutExpired as error:
            caller.send((1, "", str(error)))
        else:
            caller.send((done.returncode, done.stdout, done.stderr))
