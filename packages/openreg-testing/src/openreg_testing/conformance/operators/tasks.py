# SPDX-License-Identifier: BSD-3-Clause
"""What worker processes run for the suite "operators": listing the entries of a table, and testing one entry.

An entry is an OpInfo of PyTorch's table of operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..pool import CompletedTask

TABLE = "torch.testing._internal.common_methods_invocations:op_db"


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
