# SPDX-License-Identifier: BSD-3-Clause
# Importing this module registers the device's profiler with PyTorch, and fails if PyTorch already has another one.

def abandon_all() -> None:
    """Discards all recordings without blocking, because the process is about to exit."""

def is_recording() -> bool:
    """Returns True if a recording has begun and not ended."""

def name_stream(handle: int, name: str, /) -> None:
    """Sets the name of the stream with this driver handle in traces; an empty name restores the generated one."""
