# SPDX-License-Identifier: BSD-3-Clause
"""Sets the sync debug mode, which reports the places where a program synchronizes with the device."""

from __future__ import annotations

from openreg_runtime import _C

_MODES = ("default", "warn", "error")


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Allows waits of the host for a stream (0, ``"default"``), warns (1, ``"warn"``) or raises (2, ``"error"``).

    The mode concerns reading a result (``item()``, ``cpu()``), copies between host and device without
    ``non_blocking=True``, operators that fall back to the CPU, operators that wait for their own kernel, and
    ``Stream.synchronize()``. It also concerns a copy of pageable memory to the device that is so small that the host
    does not wait for it, because CUDA would, but no such copy with ``non_blocking=True``. An operator waits for its
    kernel if the shape of its result depends on data, as with ``nonzero()``, or if only the data show an error that the
    call has to raise. The mode does not concern ``synchronize()``, ``empty_cache()`` and waits for events, which
    programs call on purpose. It applies to all threads. Raises ValueError for another mode. It corresponds to
    ``torch.cuda.set_sync_debug_mode``.
    """
    mode = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    if mode not in range(len(_MODES)):
        accepted = ", ".join(map(repr, _MODES))
        raise ValueError(f"set_sync_debug_mode: expected 0, 1, 2 or one of {accepted}, but got {debug_mode!r}")
    _C._set_sync_debug_mode(int(mode))


def get_sync_debug_mode() -> int:
    """Returns the mode of :func:`set_sync_debug_mode`: 0, 1 or 2."""
    return _C._get_sync_debug_mode()
