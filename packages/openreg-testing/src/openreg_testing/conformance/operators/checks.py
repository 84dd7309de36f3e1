# SPDX-License-Identifier: BSD-3-Clause
"""The names of the checks of the suite "operators", and the numbers of the calls in those that run call by call."""

from __future__ import annotations

# Checks of other forms of the calls that "forward" makes: other operands, overloads or layouts.
VARIANTS = ("noncontiguous", "out", "in-place", "overloads", "layouts", "writes", "sparse")
ONCE_PER_ENTRY = ("errors", "dtypes")  # run only in the first dtype in which the run tests an entry
FLAGS = "flags"  # runs in separate processes, whose environment variables defer kernels until the host waits
CHECKS = ("forward", "backward", *VARIANTS, *ONCE_PER_ENTRY, FLAGS)  # run by default
# These run on request only, in separate processes, because each takes as long as all others together.
COMPILED = "compiled"
ARGUMENTS = "arguments"
STORAGES = "storages"
# Their calls are numbered *cases*. If a case ends the process, the other cases run without it.
CASE_BY_CASE = (ARGUMENTS, STORAGES)
ON_DEMAND = (COMPILED, *CASE_BY_CASE)

PROCESS = "process"  # the name of a failure that ended the process or lost the device, and so belongs to no check

CASE_PREFIX = "conformance: case"  # begins the line that is printed before each call of a case


def last_case(output: str) -> tuple[int, str] | None:
    """Returns the number and device of the last case in the output of a process, or None."""
    lines = [line.removeprefix(CASE_PREFIX).split() for line in output.splitlines() if line.startswith(CASE_PREFIX)]
    return (int(lines[-1][0]), lines[-1][1]) if lines else None
