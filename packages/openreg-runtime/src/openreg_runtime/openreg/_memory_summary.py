# SPDX-License-Identifier: BSD-3-Clause
"""Formats the statistics of the caching allocator as a table."""

from __future__ import annotations

from openreg_runtime.openreg._device import DeviceLike, device_index, get_device_name
from openreg_runtime.openreg._memory import mem_get_info, memory_stats

_SIZES = {
    "allocated_bytes": "held by tensors",
    "requested_bytes": "requested by tensors",
    "active_bytes": "in use, also by other streams",
    "inactive_split_bytes": "free parts of used segments",
    "reserved_bytes": "held by the allocator",
}
_COUNTS = {
    "allocation": "tensor allocations",
    "active": "blocks in use",
    "inactive_split": "free parts of used segments",
    "segment": "segments",
}
_COLUMNS = ("current", "peak", "allocated", "freed")
_POOLS = {"small_pool": "small", "large_pool": "large"}
_WIDTH = 34


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """Returns a table of :func:`torch.openreg.memory_stats`; ``abbreviated`` omits rows of small and large blocks."""
    index = device_index(device)
    stats = memory_stats(index)
    free, total = mem_get_info(index)
    pools = {} if abbreviated else _POOLS
    waits = stats.get("num_sync_all_streams", 0)
    failures = f"out of memory: {stats.get('num_ooms', 0)}, retries: {stats.get('num_alloc_retries', 0)}"
    lines = [
        f"Memory of openreg:{index} ({get_device_name(index)}): {_size(total - free)} of {_size(total)} in use",
        f"{failures}, waits for the device: {waits}",
    ]
    for title, rows, show in (("bytes", _SIZES, _size), ("number", _COUNTS, str)):
        lines += ["", title.ljust(_WIDTH) + "".join(column.rjust(13) for column in _COLUMNS)]
        for key, label in rows.items():
            for pool, prefix in {"all": label, **{name: f"  {text} blocks" for name, text in pools.items()}}.items():
                cells = (show(stats.get(f"{key}.{pool}.{column}", 0)) for column in _COLUMNS)
                lines.append(prefix.ljust(_WIDTH) + "".join(cell.rjust(13) for cell in cells))
    return "\n".join(lines) + "\n"


def _size(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.2f} GiB"
