# SPDX-License-Identifier: BSD-3-Clause
"""The tasks of workers for operators: to list the entries of a table, and to test one entry in one dtype."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..pool import CompletedTask

TABLE = "torch.testing._internal.common_methods_invocations:op_db"
# Checks of other forms of the calls that "forward" makes: other operands, overloads or layouts.
VARIANTS = ("noncontiguous", "out", "in-place", "overloads", "layouts", "writes", "sparse")
ONCE_PER_ENTRY = ("errors", "dtypes")  # run with the first dtype of an entry only
APART = "flags"  # runs in separate processes, whose variables defer kernels
CHECKS = ("forward", "backward", *VARIANTS, *ONCE_PER_ENTRY, APART)  # run by default
# These run on request only, in separate processes, because each takes as long as all others together.
COMPILED = "compiled"
ARGUMENTS = "arguments"
STORAGES = "storages"
CASE_BY_CASE = (ARGUMENTS, STORAGES)  # if a case ends the process, the other cases run without it
ON_DEMAND = (COMPILED, *CASE_BY_CASE)


CASE_PREFIX = "conformance: case"  # begins the line that is printed before each call of a case


def last_case(output: str) -> tuple[int, str] | None:
    """Returns the number and device of the last case in the output of a process, or None."""
    lines = [line.removeprefix(CASE_PREFIX).split() for line in output.splitlines() if line.startswith(CASE_PREFIX)]
    return (int(lines[-1][0]), lines[-1][1]) if lines else None


@dataclass(frozen=True)
class Entries:
    """A task that lists the entries of a table, with the dtypes in which each is run."""

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
    """A task that runs the checks of an entry in a dtype. `settings` are arguments of examine()."""

    table: str
    index: int
    name: str
    dtype: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> CompletedTask:
        """Returns the report as a dictionary."""
        import torch

        from . import entries, subject
        from .examination import examine
        from .outcome import StandardError

        StandardError.open()
        op = entries.load(self.table)[self.index]
        report = examine(op, getattr(torch, self.dtype), **self.settings)
        return CompletedTask(report.as_dictionary(), bool(subject.spent()))
