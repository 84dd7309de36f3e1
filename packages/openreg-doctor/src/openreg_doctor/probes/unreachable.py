# SPDX-License-Identifier: BSD-3-Clause
"""Lists rows of the hook table (hooks.toml) without an exercise, with reasons, and rows that need ``--compiler``.

An exercise is a call from Python that fails if the backend lacks the row. The module imports nothing, because the
doctor's own process uses it, too.
"""

from __future__ import annotations

_NO_CALLER = "no Python function of PyTorch calls it"
_GENERATES = "Inductor uses it while it generates code, which may need the backend's compiler"
_HAS_DEFAULT = "PyTorch's default does nothing, so a call also succeeds without it"

UNREACHABLE: dict[str, str] = {
    "accelerator_hooks.isBuilt": _NO_CALLER,
    "accelerator_hooks.init": _HAS_DEFAULT,
    "accelerator_hooks.getDeviceFromPtr": _NO_CALLER,
    "guard.uncheckedSetDevice": "called by destructors, which cannot fail",
    "guard.getDefaultStream": _NO_CALLER,
    "guard.getStreamFromGlobalPool": _NO_CALLER,
    "guard.destroyEvent": _HAS_DEFAULT,
    "guard.recordDataPtrOnStream": _HAS_DEFAULT,
    "allocator.raw_deleter": _NO_CALLER,
    "allocator.copy_data": _NO_CALLER,
    "host_allocator.record_event": "called by asynchronous copies, which do not fail without it",
    "host_allocator.get_stats": "PyTorch has no function for all devices",
    "host_allocator.reset_accumulated_stats": "PyTorch has no function for all devices",
    "host_allocator.reset_peak_stats": "PyTorch has no function for all devices",
    "host_allocator.begin_allocate_to_pool": "called by captures that allocate pinned memory",
    "host_allocator.end_allocate_to_pool": "called by captures that allocate pinned memory",
    "host_allocator.release_pool": "called by captures that allocate pinned memory",
    "caching_host_allocator.record_stream": "called by asynchronous copies, which do not fail without it",
    "caching_host_allocator.query_event": "called by asynchronous copies, which do not fail without it",
    "caching_host_allocator.get_current_stream": "called by captures that allocate pinned memory",
    "caching_host_allocator.stream_is_capturing": "called by captures that allocate pinned memory",
    "graph.debug_dump": "writes a file",
    "registration.entry point torch.backends": "checked in the parent process: see autoload",
    "registration.register_device_op_overrides": _GENERATES,
    "registration.Scheduling and PythonWrapperCodegen": _GENERATES,
    "registration.device_custom_pass of register_backend_for_device": _GENERATES,
    "registration.register_sharding of aten::linear_backward": "DTensor's rules take seconds to import",
    "registration.register_sharding of attention": "DTensor's rules take seconds to import",
    "registration.custom_ops of context_parallel": "DTensor's rules take seconds to import",
    "registration.c10d::TimerRegistry": "Python cannot read it; DistributedDataParallel needs several processes",
    "registration.device_lazy_init": "PyTorch calls it before the first operation, if it exists",
    "registration.rules of AutocastPrivateUse1": "counted with the operators: see AutocastPrivateUse1",
    "registration.c10::AcceleratorError": "only a failure of the device uses it",
    "registration.REGISTER_ALLOCATOR_CONFIG_PARSE_HOOK": "PyTorch has no list of hooks",
    "registration.torch::profiler::impl::registerPrivateUse1Methods": "its errors are only printed, during a profile",
    "registration.REGISTER_PRIVATEUSE1_PROFILER": "no Python function returns the list of profilers",
    "registration.c10::reportMemoryUsageToProfiler": "the allocator calls it while a profile is taken",
    "registration.torch::jit::TensorBackendMetaRegistry": "PyTorch uses it only for tensors with metadata of a backend",
    "registration.reducers of torch.multiprocessing": "sending would share memory that no process receives",
}

# The group of rows, and the single rows, whose exercises import the compiler.
_COMPILER_GROUP = "device_interface."
_COMPILER_ROWS = {
    "registration.register_graphsafe_rng_device_type",
    "registration.register_backend_for_device",
    "registration.backends eager and aot_eager, torch.export, FakeTensor",
    "registration.decompositions of composite operators that the device overrides",
}


def needs_compiler(key: str) -> bool:
    """Returns True if the row's exercise imports PyTorch's compiler, which takes longer than all other checks."""
    return key.startswith(_COMPILER_GROUP) or key in _COMPILER_ROWS


def reason(key: str) -> str:
    """Returns why a row was not exercised."""
    return "only examined with --compiler" if needs_compiler(key) else UNREACHABLE.get(key, "not exercised")
