# SPDX-License-Identifier: BSD-3-Clause
"""The flags of PyTorch that change the result of a call.

A flag applies to the calls that are made while it is set, but the kernel of a device runs later. The manifest (the file
of a backend's expected failures) lists the flags that its kernels read at that time, with the effect that a user sees.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Flag:
    """A flag of PyTorch's public interface, with its setter, its default and another value."""

    name: str
    set: Callable[[Any], object]
    default: Any
    other: Any

    def change(self) -> None:
        """Sets the other value."""
        self.set(self.other)

    def restore(self) -> None:
        """Sets the default."""
        self.set(self.default)


def precision_of(operation: str) -> Callable[[Any], object]:
    """Returns a setter of the precision in which oneDNN computes float32 for an operation."""
    return lambda value: torch._C._set_fp32_precision_setter("mkldnn", operation, value)


def half_sums(allowed: bool) -> None:
    """Allows or forbids sums of float16 in reduced precision, if the CPU has them."""
    try:
        torch._C._set_cpu_allow_fp16_reduced_precision_reduction(allowed)  # type: ignore[attr-defined]
    except RuntimeError as error:  # the CPU does not support it
        if "not supported" not in str(error):
            raise


DETERMINISTIC = Flag("torch.use_deterministic_algorithms", torch.use_deterministic_algorithms, False, True)
ONEDNN = Flag("torch.backends.mkldnn.enabled", torch._C._set_mkldnn_enabled, True, False)
MATMUL = Flag("torch.set_float32_matmul_precision", torch.set_float32_matmul_precision, "highest", "medium")
CONVOLUTION = Flag("torch.backends.mkldnn.conv.fp32_precision", precision_of("conv"), "none", "bf16")
RECURRENT = Flag("torch.backends.mkldnn.rnn.fp32_precision", precision_of("rnn"), "none", "bf16")
DEFAULT_DTYPE = Flag("torch.set_default_dtype", torch.set_default_dtype, torch.float32, torch.float64)
HALF_SUMS = Flag("torch.backends.cpu: allow_fp16_reduced_precision_reduction", half_sums, False, True)
DENORMALS = Flag("torch.set_flush_denormal", torch.set_flush_denormal, False, True)
FLAGS = (
    DETERMINISTIC,
    ONEDNN,
    Flag("torch.backends.mkldnn.deterministic", torch._C._set_mkldnn_deterministic, False, True),
    MATMUL,
    CONVOLUTION,
    RECURRENT,
    DEFAULT_DTYPE,
    HALF_SUMS,
    DENORMALS,
    Flag("torch.backends.nnpack", torch._C._set_nnpack_enabled, True, False),
    Flag("torch.backends.cuda.enable_flash_sdp", torch._C._set_sdp_use_flash, True, False),
    Flag("torch.backends.cuda.enable_mem_efficient_sdp", torch._C._set_sdp_use_mem_efficient, True, False),
    Flag("torch.backends.cuda.enable_overrideable_sdp", torch._C._set_sdp_use_overrideable, True, False),
    Flag(
        "torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp",
        torch._C._set_math_sdp_allow_fp16_bf16_reduction,
        False,
        True,
    ),
    Flag("torch.set_warn_always", torch.set_warn_always, False, True),
)
# The setters of torch._C for flags that change results: those of FLAGS, and one that only applies under
# deterministic algorithms.
SETTERS = {
    "_set_cpu_allow_fp16_reduced_precision_reduction",
    "_set_default_dtype",
    "_set_deterministic_algorithms",
    "_set_deterministic_fill_uninitialized_memory",
    "_set_float32_matmul_precision",
    "_set_fp32_precision_setter",
    "_set_math_sdp_allow_fp16_bf16_reduction",
    "_set_mkldnn_deterministic",
    "_set_mkldnn_enabled",
    "_set_nnpack_enabled",
    "_set_sdp_use_flash",
    "_set_sdp_use_mem_efficient",
    "_set_sdp_use_overrideable",
    "_set_warnAlways",
    "set_flush_denormal",
}

# Patterns of the other setters of torch._C, and the reason why no kernel of the device reads their flags.
OTHER_DEVICES = "for GPUs or phones"
HOST = "for the host: autograd, dispatch, tracing, tensors as objects"
NOT_OF_KERNELS = {
    "_set_cublas_*": OTHER_DEVICES,
    "_set_cublaslt_*": OTHER_DEVICES,  # since torch 2.15
    "_set_cudnn_*": OTHER_DEVICES,
    "_set_miopen_*": OTHER_DEVICES,
    "_set_onednn_allow_tf32": OTHER_DEVICES,
    "_set_rocm_*": OTHER_DEVICES,
    "_set_blas_preferred_backend": OTHER_DEVICES,
    "_set_linalg_preferred_backend": OTHER_DEVICES,
    "_set_sdp_use_cudnn": OTHER_DEVICES,
    "_set_sdp_use_fa3": OTHER_DEVICES,
    "_set_sdp_use_fa4": OTHER_DEVICES,  # since torch 2.15
    "_set_sm_carveout_experimental": OTHER_DEVICES,
    "_set_override_stale_capture_stream": OTHER_DEVICES,
    "_set_default_mobile_cpu_allocator": OTHER_DEVICES,
    "_set_sdp_priority_order": "read when the implementation of attention is chosen, before the launch",
    "_set_sdp_use_math": "read when the implementation of attention is chosen, before the launch",
    "_set_check_sparse_tensor_invariants": "read when a sparse tensor is constructed, on the calling thread",
    "_set_qengine": "for quantized tensors, whose operators are not in PyTorch's table",
    "_set_default_tensor_type": "sets the default dtype, and the device of new tensors",
    "set_autocast_*": "read by the autocast dispatch keys, before the device's operators",
    "set_num_interop_threads": "for the host's own threads",
    "set_num_threads": "for the calling thread, or the host",
    "set_anomaly_enabled": HOST,
    "_set_autograd_fallback_mode": HOST,
    "_set_backcompat_*": HOST,
    "_set_cached_tensors_enabled": HOST,
    "_set_conj": HOST,
    "_set_dispatch_mode": HOST,
    "_set_dtensor_*": HOST,
    "_set_fake_constant": HOST,  # since torch 2.15
    "_set_fwd_grad_enabled": HOST,
    "_set_generator_metaclass": HOST,
    "_set_grad_*": HOST,
    "_set_graph_*": HOST,
    "_set_meta_in_tls_dispatch_include": HOST,
    "_set_multithreading_enabled": HOST,
    "_set_native_aot_*": OTHER_DEVICES,  # since torch 2.15
    "_set_neg": HOST,
    "_set_only_lift_cpu_tensors": HOST,
    "_set_print_stack_traces_on_fatal_signal": HOST,
    "_set_should_use_format_with_string_table": HOST,
    "_set_skip_next_torch_function": HOST,
    "_set_storage_*": HOST,  # since torch 2.15
    "_set_tensor_metadata": HOST,
    "_set_thread_name": HOST,
    "_set_throw_on_mutable_data_ptr": HOST,
    "_set_torch_function_state": HOST,
    "_set_tracing_state": HOST,
    "_set_value_trace": HOST,
    "_set_view_replay_enabled": HOST,
    "_set_warn_*": HOST,
    "_set_worker_*": HOST,
}


def unknown_setters() -> list[str]:
    """Returns the setters of torch._C that this file does not list: flags of a newer PyTorch."""
    names = {name for name in dir(torch._C) if name.startswith(("_set_", "set_"))} - SETTERS
    return sorted(name for name in names if not any(fnmatch.fnmatchcase(name, pattern) for pattern in NOT_OF_KERNELS))
