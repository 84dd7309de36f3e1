# SPDX-License-Identifier: BSD-3-Clause
"""Records the history of the caching allocator and takes snapshots, in the format of ``torch.cuda.memory``.

https://pytorch.org/memory_viz and ``torch.cuda._memory_viz`` display the files that :func:`_dump_snapshot` writes.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, device_count, device_index
from openreg_runtime.openreg._memory import get_per_process_memory_fraction

# Values of c10::CachingDeviceAllocator::RecordContext.
_CONTEXTS = {None: 0, "state": 1, "alloc": 2, "all": 3}
_ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "snapshot", "oom")
_NO_POOL = (0, 0)


def _record_memory_history(
    enabled: Literal["state", "all"] | None = "all",
    context: Literal["state", "alloc", "all"] | None = "all",
    stacks: Literal["python", "all"] = "all",
    max_entries: int = sys.maxsize,
    device: DeviceLike = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: Sequence[str] | None = None,
    record_pinned_host_memory: bool = False,
    record_cuda: bool = True,
) -> None:
    """Starts or stops recording actions of the allocator (source: ``torch.cuda.memory._record_memory_history``).

    - ``enabled``: ``"state"`` records only stacks of live allocations, ``"all"`` also a list of actions. ``None``
      stops recording and drops the list.
    - ``context``: the stacks that are recorded. ``"state"`` records those of live allocations, ``"alloc"`` also those
      of allocations in the list, ``"all"`` also those of releases in the list. ``None`` records no stack.
    - ``stacks``: ``"python"`` records Python frames, ``"all"`` also C++ frames.
    - ``max_entries``: the greatest length of the list; a full list drops its oldest action.
    - ``device``: the device to record; ``None`` stands for all devices.
    - ``clear_history``: True drops the actions recorded so far.
    - ``skip_actions``: the kinds of actions that are not recorded.
    - ``compile_context``, ``global_record_annotations``, ``record_pinned_host_memory``: True raises
      NotImplementedError, because the allocator records none of them.
    - ``record_cuda``: means this device's allocator, as CUDA's function means CUDA's. False raises NotImplementedError,
      because nothing else is recorded.

    Raises ValueError for any other value; the message names the accepted ones.
    """
    _refuse("_record_memory_history", "compile_context", compile_context)
    _refuse("_record_memory_history", "global_record_annotations", global_record_annotations)
    _refuse("_record_memory_history", "record_pinned_host_memory", record_pinned_host_memory)
    _refuse("_record_memory_history", "record_cuda", record_cuda, supported=True)
    _check("enabled", enabled, (None, "state", "all"))
    _check("context", context, tuple(_CONTEXTS))
    _check("stacks", stacks, ("python", "all"))
    for action in skip_actions or ():
        _check("skip_actions", action, _ACTIONS)
    if max_entries < 1:
        raise ValueError(f"_record_memory_history: expected max_entries of at least 1, but got {max_entries}")
    for index in range(device_count()) if device is None else [device_index(device)]:
        if enabled is None:
            _C._stop_memory_history(index)
        else:
            _C._start_memory_history(
                index,
                trace=enabled == "all",
                context=_CONTEXTS[context],
                native_stacks=stacks == "all",
                max_entries=max_entries,
                clear=clear_history,
                skip=list(skip_actions or ()),
            )


def _snapshot(device: DeviceLike = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Returns the segments of all devices, the recorded actions of each device, and the allocator's settings.

    ``device`` has no effect, as in ``torch.cuda.memory._snapshot``. ``augment_with_fx_traces=True`` raises
    NotImplementedError.
    """
    device_index(device)
    _refuse("_snapshot", "augment_with_fx_traces", augment_with_fx_traces)
    result = _C._memory_snapshot(_NO_POOL, True)
    result["allocator_settings"] = _allocator_settings()
    result["external_annotations"] = []  # annotations of PyTorch's profiler, which only CUDA collects
    return result


def _dump_snapshot(
    filename: str | os.PathLike[str] = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Writes the result of :func:`_snapshot` to a file, with pickle."""
    Path(filename).write_bytes(pickle.dumps(_snapshot(augment_with_fx_traces=augment_with_fx_traces)))


def memory_snapshot(mempool_id: tuple[int, int] | None = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """Returns the segments of the caching allocator on all devices, each with its blocks.

    ``mempool_id`` selects the segments of one private pool. ``include_traces`` has no effect; it exists because
    ``torch.cuda.memory_snapshot`` has it.
    """
    segments: list[dict[str, Any]] = _C._memory_snapshot(mempool_id or _NO_POOL, include_traces)["segments"]
    return segments


def _save_segment_usage(filename: str = "output.svg", snapshot: dict[str, Any] | None = None) -> None:
    """Writes a flame graph of a snapshot, grouped by segment. PyTorch downloads the script that draws it."""
    _save(filename, "segments", snapshot)


def _save_memory_usage(filename: str = "output.svg", snapshot: dict[str, Any] | None = None) -> None:
    """Same as :func:`_save_segment_usage`, except that the graph is grouped by stream and state."""
    _save(filename, "memory", snapshot)


def _save(filename: str, view: str, snapshot: dict[str, Any] | None) -> None:
    from torch.cuda import _memory_viz

    svg = getattr(_memory_viz, view)(_snapshot() if snapshot is None else snapshot)
    Path(filename).write_text(svg, encoding="utf-8")


def _allocator_settings() -> dict[str, Any]:
    return {
        "PYTORCH_ALLOC_CONF": torch._C._accelerator_getAllocatorSettings(),
        "expandable_segments": False,
        "per_process_memory_fraction": [get_per_process_memory_fraction(index) for index in range(device_count())],
    }


def _check(name: str, value: object, accepted: tuple[object, ...]) -> None:
    if value not in accepted:
        expected = ", ".join(map(repr, accepted))
        raise ValueError(f"_record_memory_history: expected {name} to be one of {expected}, but got {value!r}")


def _refuse(function: str, name: str, value: bool, supported: bool = False) -> None:
    """Raises NotImplementedError for a value of an option of ``torch.cuda.memory`` that this device has not."""
    if value != supported:
        raise NotImplementedError(f"{function}: {name}={value!r} is not supported on openreg devices; leave out {name}")
