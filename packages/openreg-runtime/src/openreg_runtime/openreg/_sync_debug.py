# SPDX-License-Identifier: BSD-3-Clause
"""Finding the places where the host waits for the device without meaning to."""

from __future__ import annotations

from openreg_runtime import _C

_MODES = ("default", "warn", "error")


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Allows waits for a stream (0 or ``"default"``), warns of each (1, ``"warn"``) or refuses them (2, ``"error"``).

    Waits are: reading a result (``item()``, ``cpu()``), copies that are not asynchronous, operators that fall back to
    the CPU, and ``Stream.synchronize()``; not ``synchronize()``, ``empty_cache()`` and events, which say themselves
    that they wait. The mode holds for all threads. Raises ValueError for anything else (source: ``torch.cuda``).
    """
    mode = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    if mode not in range(len(_MODES)):
        raise ValueError(f"debug_mode is 0, 1, 2 or one of {', '.join(map(repr, _MODES))}, got {debug_mode!r}")
    _C._set_sync_debug_mode(int(mode))


def get_sync_debug_mode() -> int:
    """The mode that :func:`set_sync_debug_mode` set: 0, 1 or 2."""
    return _C._get_sync_debug_mode()
