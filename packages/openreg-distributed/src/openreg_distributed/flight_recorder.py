# SPDX-License-Identifier: BSD-3-Clause
"""Reads the flight recorder, which contains the last calls of all process groups ``occl`` of this process.

Its settings, records and files have the format of PyTorch's recorders (c10d's ``FlightRecorder.hpp``). So
``python -m torch.distributed.flight_recorder.fr_trace`` can compare the files of all ranks.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from openreg_distributed._C import _dump_trace

__all__ = ["flight_records", "save_flight_records"]


def flight_records(stacks: bool = True, only_active: bool = False) -> dict[str, Any]:
    """Returns the records: ``entries`` from the oldest to the newest, ``pg_config``, ``pg_status`` and ``version``.

    An entry contains the name of the call, its numbers in its group, sizes, dtypes, times in nanoseconds, and
    ``state``: ``scheduled``, ``started`` or ``completed``. An entry that is ``retired`` and not completed has failed.
    With ``stacks``, it also contains the Python frames of the call. With ``only_active``, complete calls are omitted.

    ``TORCH_FR_BUFFER_SIZE`` is the number of calls that are recorded, by default 2000; 0 disables the recorder.
    """
    records: dict[str, Any] = pickle.loads(_dump_trace(stacks, only_active))
    return records


def save_flight_records(path: str | Path, stacks: bool = True) -> None:
    """Writes the records to a file. PyTorch's analyzer expects that the name of the file ends with the rank.

    If ``TORCH_FR_DUMP_TEMP_FILE`` is set, a group that fails writes a file itself, without stacks.
    """
    Path(path).write_bytes(_dump_trace(stacks, False))
