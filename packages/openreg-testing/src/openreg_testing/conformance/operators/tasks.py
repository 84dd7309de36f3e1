# SPDX-License-Identifier: BSD-3-Clause
"""What a worker is asked about operators: which entries there are, and one of them in one dtype."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..pool import Answer

TABLE = "torch.testing._internal.common_methods_invocations:op_db"
VARIANTS = ("noncontiguous", "out", "in-place", "overloads", "layouts", "writes", "sparse")
ONCE_PER_ENTRY = ("errors", "dtypes")
APART = "flags"  # under a schedule of its own, in processes of its own
CHECKS = ("forward", "backward", *VARIANTS, *ONCE_PER_ENTRY, APART)
# In processes of their own, and only where they are asked for: each takes as long as all others.
COMPILED = "compiled"
ARGUMENTS = "arguments"
STORAGES = "storages"
CASE_BY_CASE = (ARGUMENTS, STORAGES)  # of one that ends the process, the others are tried without it
ON_DEMAND = (COMPILED, *CASE_BY_CASE)


MARK = "conformance: case"  # begins the line that is written before each call of a case


def marked(output: str) -> tuple[int, str] | None:
    """The number of the case that a process tried last, and on which device, read from what it wrote; else None."""
    lines = [line.removeprefix(MARK).split() for line in output.splitlines() if line.startswith(MARK)]
    return (int(lines[-1][0]), lines[-1][1]) if lines else None


@dataclass(frozen=True)
class Entries:
    """Asks for the entries of a table: the name of each and the dtypes in which it is run."""

    table: str = TABLE

    def run(self) -> dict[str, Any]:
        """`dtypes`: all that are run, in order; `entries`: (name, its dtypes)."""
        from . import entries

        loaded = entries.load(self.table)
        return {
            "dtypes": [entries.name_of(dtype) for dtype in entries.DTYPES],
            "entries": [(op.full_name, [entries.name_of(dtype) for dtype in entries.dtypes_of(op)]) for op in loaded],
        }


@dataclass(frozen=True)
class Examine:
    """Asks for the report of an entry in a dtype. Settings are named arguments of examine()."""

    table: str
    index: int
    name: str
    dtype: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> Answer:
        """The report as a dictionary."""
        import torch

        from . import entries, subject
        from .examination import examine
        from .outcome import StandardError

        StandardError.open()
        op = entries.load(self.table)[self.index]
        report = examine(op, getattr(torch, self.dtype), **self.settings)
        return Answer(report.as_dictionary(), bool(subject.spent()))
