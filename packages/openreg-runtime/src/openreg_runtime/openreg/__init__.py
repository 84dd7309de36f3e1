# SPDX-License-Identifier: BSD-3-Clause
"""Defines the module ``torch.openreg``, the device's counterpart of ``torch.cuda``.

PyTorch looks up its functions by name, and requires that the module's ``__name__`` ends in ``.openreg``.
"""

from __future__ import annotations

from typing import Any

from openreg_runtime.openreg import _gpu_trace, _utils
from openreg_runtime.openreg._device import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    reset_device,
    set_device,
    synchronize,
)
from openreg_runtime.openreg._device import exchange_device as _exchange_device
from openreg_runtime.openreg._device import is_in_bad_fork as _is_in_bad_fork
from openreg_runtime.openreg._device import lazy_call as _lazy_call
from openreg_runtime.openreg._device import lazy_init as _lazy_init
from openreg_runtime.openreg._device import maybe_exchange_device as _maybe_exchange_device
from openreg_runtime.openreg._faults import inject_faults
from openreg_runtime.openreg._graph import Graph, graph, graph_pool_handle, is_current_stream_capturing
from openreg_runtime.openreg._random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from openreg_runtime.openreg._random import get_generator as _get_generator
from openreg_runtime.openreg._serialization import is_resident, set_resident
from openreg_runtime.openreg._sharing import ipc_collect
from openreg_runtime.openreg._statistics import device_stats, engine_stats, stream_stats, utilization
from openreg_runtime.openreg._stream import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from openreg_runtime.openreg._stream import sleep as _sleep
from openreg_runtime.openreg._sync_debug import get_sync_debug_mode, set_sync_debug_mode
from openreg_runtime.openreg.memory import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    device_memory_used,
    empty_cache,
    empty_host_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)

__all__ = [
    "Event",
    "ExternalStream",
    "Graph",
    "MemPool",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "device_stats",
    "empty_cache",
    "empty_host_cache",
    "engine_stats",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "inject_faults",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_resident",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_device",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_resident",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "stream_stats",
    "synchronize",
    "use_mem_pool",
    "utilization",
]

# PyTorch uses these private names; users do not need them.
_PYTORCH_READS = (
    _exchange_device,
    _get_generator,
    _gpu_trace,
    _is_in_bad_fork,
    _lazy_call,
    _lazy_init,
    _maybe_exchange_device,
    _sleep,
    _utils,
)


def __getattr__(name: str) -> Any:
    if name == "_initialized":  # torch.utils.checkpoint reads a variable, which must be current
        return is_initialized()
    from openreg_runtime.openreg._tensor_types import tensor_type

    if (found := tensor_type(name)) is not None:
        globals()[name] = found  # so that every lookup returns one class
        return found
    from openreg_runtime._providers import missing_name

    raise missing_name(name)
