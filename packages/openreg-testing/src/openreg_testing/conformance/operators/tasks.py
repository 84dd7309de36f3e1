# SPDX-License-Identifier: BSD-3-Clause
"""What worker processes run for the suite "operators": listing the entries of a table, and testing one entry.

An entry is an OpInfo of PyTorch's table of operators. The module also has the names of the checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..pool import CompletedTask

TABLE = "torch.testing._internal.common_methods_invocations:op_db"
# Checks of other forms of the calls that "forward" makes: other operands, overloads or layouts.
VARIANTS = ("noncontiguous", "out", "in-place", "overloads", "layouts", "writes", "sparse")
ONCE_PER_ENTRY = ("errors", "dtypes")  # run only with the first of entries.DTYPES that an entry lists
FLAGS = "flags"  # runs in separate processes, whose environment variables defer kernels until the host waits
CHECKS = ("forward", "backward", *VARIANTS, *ONCE_PER_ENTRY, FLAGS)  # run by default
# These run on request only, in separate processes, because each takes as long as all others together.
COMPILED = "compiled"
ARGUMENTS = "arguments"
STORAGES = "storages"
# Their calls are numbered *cases*. If a case ends the process, the other cases run without it.
CASE_BY_CASE = (ARGUMENTS, STORAGES)
ON_DEMAND = (COMPILED, *CASE_BY_CASE)


CASE_PREFIX = "conformance: case"  # begins the line that is printed before each call of a case


def last_case(output: str) -> tuple[int, str] | None:
    """Returns the number and device of the last case in the output of a process, or None."""
    lines = [line.removeprefix(CASE_PREFIX).split() for line in output.splitlines() if line.startswith(CASE_PREFIX)]
    return (int(lines[-1][0]), lines[-1][1]) if lines else None


@dataclass(frozen=True)
class Entries:
    """A picklable object whose `run()` lists the entries of a table, with the dtypes in which each is run."""

    table: str = TABLE

    def run(self) -> dict[str, Any]:
        """Returns `dtypes`, the names of all dtypes in order, and `entries`, pairs of a name and its dtypes."""
        from . import entries

        loaded = entries.load(self.table)
        return {
            "dtypes": [entries.name_of(dtype) for dtype in entries.DTYPES],
            "entries": [(op.full_name, [entries.name_of(dtype) for dtype in entries.dtypes_of(op)]) for op in loaded],
        }


@dataclass(frozen=True)
class Examine:
    """A picklable object whose `run()` checks an entry in a dtype. `settings` are arguments of examine()."""

    table: str
    index: int
    name: str
    dtype: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> CompletedTask:
        """Returns the report as a dictionary."""
        import torch

        from . import device_under_test, entries
        from .examination import examine
        from .outcome import StandardError

        StandardError.open()
        op = entries.load(self.table)[self.index]
        report = examine(op, getattr(torch, self.dtype), **self.settings)
        return CompletedTask(report.as_dictionary(), bool(device_under_test.unusable_reason()))
