# SPDX-License-Identifier: BSD-3-Clause
"""The native part: observes the device and keeps the findings."""

from typing import Any

def start(*, launches_block: bool, is_poisoned: bool) -> None:
    """Begins to observe in a process with these settings.

    Raises RuntimeError if the device cannot be used, as in a forked child.
    """

def stop() -> None:
    """Ends it, after all tasks that were seen are complete."""

def settle() -> None:
    """Blocks until all tasks that were seen are complete, which orders nothing in the program's name."""

def abandon() -> None:
    """Observes nothing from now on and blocks no more, because the process exits."""

def is_active() -> bool:
    """Returns True between :func:`start` and :func:`stop`."""

def add_existing(address: int, size: int, device: int, stream: int, is_private: bool, /) -> None:
    """Adds an allocation of ``size`` bytes from before :func:`start`, which counts as written."""

def renew() -> None:
    """Counts findings that repeat earlier ones as new from now on, for a new session."""

def findings(begin: int, /) -> list[dict[str, Any]]:
    """Returns the findings from number ``begin`` on, in the form that ``finding.py`` reads."""

def finding_count() -> int:
    """Returns the number of findings in the process."""

def counts() -> list[int]:
    """Returns how often each finding has happened."""

def statistics() -> dict[str, int]:
    """Returns the numbers of accesses in the shadow and of stacks, for tests of the memory that they take."""

def register_exit_handler() -> None:
    """Registers the handler that replaces the exit status, once for a program."""

def fail_at_exit() -> None:
    """Makes the process end with status 66 where it would end with 0."""

def overlap(
    begin: int,
    sizes: list[int],
    strides: list[int],
    other_begin: int,
    other_sizes: list[int],
    other_strides: list[int],
    /,
) -> bool:
    """Returns True if two tensors of bytes, each given by its address, sizes and strides, share a byte."""
