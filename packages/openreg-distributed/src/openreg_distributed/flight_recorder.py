# SPDX-License-Identifier: BSD-3-Clause
"""The flight recorder: the last calls of all process groups ``occl`` of this process.

PyTorch has such a recorder for each of its backends (source: c10d's ``FlightRecorder.hpp``). Settings, records and
files have the same format: ``python -m torch.distributed.flight_recorder.fr_trace`` compares those of all ranks.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from openreg_distributed._C import _dump_trace

__all__ = ["flight_records", "save_flight_records"]


def flight_records(stacks: bool = True, only_active: bool = False) -> dict[str, Any]:
    """Return the records: ``entries`` from the oldest to the newest, ``pg_config``, ``pg_status`` and ``version``.

    An entry has the name of the call, its numbers in its group, sizes, dtypes, times in nanoseconds, and ``state``:
    ``scheduled``, ``started`` or ``completed``. An entry that is ``retired`` and not completed has failed. With
    ``stacks`` it has the Python frames of the call. With ``only_active``, entries of complete calls are left out.

    ``TORCH_FR_BUFFER_SIZE`` is the number of calls that are kept, 2000 by default; 0 disables the recorder.
    """
    records: dict[str, Any] = pickle.loads(_dump_trace(stacks, only_active))
    return records


def save_flight_records(path: str | Path, stacks: bool = True) -> None:
    """Write the records to a file. PyTorch's analyzer expects that the name of the file ends with the rank.

    With ``TORCH_FR_DUMP_TEMP_FILE`` a group that fails writes the file itself, without stacks.
    """
    Path(path).write_bytes(_dump_trace(stacks, False))
