# SPDX-License-Identifier: BSD-3-Clause
"""Checks a whole program without a changed line, by ``OPENREG_SANITIZER=1 python train.py``.

The check begins with the first use of the device after this package was imported, which torch does if openreg-autoload
is installed, and ends with the process. A program with findings ends with status 66, unless it ends with a failure of
its own.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

from openreg_sanitizer import _C, names, text
from openreg_sanitizer._session import (
    Action,
    SanitizerError,
    _sessions,
    sanitizer,
    write_finding,
    write_line,
    write_report,
)
from openreg_sanitizer.suppressions import SuppressionError

VARIABLE = "OPENREG_SANITIZER"
REPORT = "OPENREG_SANITIZER_REPORT"
SUPPRESSIONS = "OPENREG_SANITIZER_SUPPRESSIONS"
WARNINGS = "OPENREG_SANITIZER_WARNINGS"
_ACTIONS: dict[str, Action] = {"1": "report", "report": "report", "raise": "raise"}


def start() -> None:
    """Begins the check if the variable is set. Raises ImportError for a value that is unknown or cannot be used."""
    value = os.environ.get(VARIABLE, "")
    if value in ("", "0"):
        return
    if value not in _ACTIONS:
        raise ImportError(f"{VARIABLE}={value!r} is unknown; use 1, raise or 0")
    report = os.environ.get(REPORT, "")
    path = Path(report).absolute() if report else None
    if path is not None and (path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK)):
        raise ImportError(f"{REPORT}={report} cannot be written; name a file in a folder that exists, or unset it")
    try:
        session = sanitizer(_ACTIONS[value], os.environ.get(SUPPRESSIONS) or None)
        session.begin_at_first_use()
    except (SuppressionError, RuntimeError) as error:
        raise ImportError(f"{VARIABLE}={value}: {error}") from error
    _C.register_exit_handler()
    atexit.register(_finish, session, path)


def _finish(session: sanitizer, path: Path | None) -> None:
    """Writes the findings when the process ends, and replaces its exit status if there are any."""
    if not session.has_begun:  # the device was not used, or in the parent before it forked this process
        return
    _C.abandon()  # from here on nothing is observed and nothing blocks
    names.learn_from_main()
    found = session.findings
    warnings = session.warnings if os.environ.get(WARNINGS) == "1" else []
    ended_by = getattr(sys, "last_value", None)
    if isinstance(ended_by, SanitizerError):
        _sessions.note_written(ended_by.finding)  # Python has written it with the traceback
    _sessions.write_rest(session)
    for item in warnings:
        write_finding(item)
    session.name_unused()
    if path is not None:
        write_report([*found, *warnings], path)
    if found or warnings:
        write_line(text.summary([*found, *warnings]))
    if found:
        _C.fail_at_exit()
