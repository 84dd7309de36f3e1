# SPDX-License-Identifier: BSD-3-Clause
"""Detects that Python was started to run a package as a command, such as ``python -m openreg_runtime doctor``.

Python imports a package before it runs the package's ``__main__``. The doctor must run even if the import of torch or
of the native modules fails. So the package skips its start-up in a process that runs the command.
"""

from __future__ import annotations

import sys


def runs_as_command(package: str) -> bool:
    """Returns True if Python was started with ``-m package`` and has not run ``package.__main__`` yet."""
    # While Python searches for the main module, sys.argv is "-m" and the arguments of the command. sys.orig_argv ends
    # with these arguments, after the name of the module, which may be joined to -m, as in "-mopenreg_runtime".
    return sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].removeprefix("-m") == package
