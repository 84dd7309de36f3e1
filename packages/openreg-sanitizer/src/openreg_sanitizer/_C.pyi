# SPDX-License-Identifier: BSD-3-Clause
"""The native part, which observes the devices and stores the findings of the process."""

from typing import Any

def start(*, launches_block: bool, is_poisoned: bool) -> None:
    """Begins to observe in a process with these settings.

    Raises RuntimeError if the device cannot be used, as in a forked child.
    """

def stop() -> None:
    """Ends the observation. Blocks until all tasks that were observed are complete."""

def settle() -> None:
    """Blocks until all tasks that were enqueued are complete. Does not count as a wait of the program."""

def abandon() -> None:
    """Observes nothing from now on, and never blocks, because the process exits."""

def is_active() -> bool:
    """Returns True between :func:`start` and :func:`stop`."""

def add_existing(address: int, size: int, device: int, stream: int, is_private: bool, /) -> None:
    """Adds an allocation of ``size`` bytes from before :func:`start`, which counts as written."""

def renew() -> None:
    """Counts wrong accesses that repeat earlier findings as new findings from now on, for a new session."""

def findings(begin: int, /) -> list[dict[str, Any]]:
    """Returns the findings from number ``begin`` on, in the form that ``finding.py`` reads."""

def finding_count() -> int:
    """Returns the number of findings of the process."""

def counts() -> list[int]:
    """Returns how often each finding of the process has happened."""

def statistics() -> dict[str, int]:
    """Returns the numbers of accesses in the shadow memory and of stacks, for tests of the memory that they take."""

def register_exit_handler() -> None:
    """Registers the handler that replaces the exit status. Must be called at most once."""

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
