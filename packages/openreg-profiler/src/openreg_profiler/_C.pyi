# SPDX-License-Identifier: BSD-3-Clause
# Importing it registers the profiler of the device, and fails where PyTorch has another.

def abandon_all() -> None:
    """Ends all recordings without waiting, for a process that ends: what they have is lost."""

def is_recording() -> bool:
    """Whether a recording has begun and not ended."""

def name_stream(handle: int, name: str, /) -> None:
    """Traces show the stream with this handle of the driver under this name; an empty one takes it back."""
