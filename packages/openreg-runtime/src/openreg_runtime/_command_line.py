# SPDX-License-Identifier: BSD-3-Clause
"""Whether Python was started to run a package as a command, as ``python -m openreg_runtime doctor`` is.

Python imports a package before it runs its ``__main__``. The doctor has to run where importing torch or the native
modules fails, so the package leaves out its start-up in such a process.
"""

from __future__ import annotations

import sys


def runs_as_command(package: str) -> bool:
    """Whether Python is about to run ``package.__main__``, started with ``-m package``."""
    # While Python looks for the main module, sys.argv[0] is "-m", and sys.orig_argv has the module's name instead.
    return sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].removeprefix("-m") == package
