# SPDX-License-Identifier: BSD-3-Clause
"""Tasks for the pools of test_kit_pool.py."""

import os
from dataclasses import dataclass

from openreg_testing.conformance.pool import Answer


@dataclass(frozen=True)
class Begin:
    """Prepares a process: gives its number."""

    def run(self):
        return os.getpid()


@dataclass(frozen=True)
class Ask:
    """Gives a variable of the environment, and says whether its process is to be used again."""

    name: str
    spends: bool = False

    def run(self):
        return Answer(os.environ.get(self.name), self.spends)


@dataclass(frozen=True)
class Crash:
    """Ends its process."""

    def run(self):
        os.abort()
