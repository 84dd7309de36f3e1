# SPDX-License-Identifier: BSD-3-Clause
"""Exercises of registrations that are neither virtual functions nor names in the module torch.<device>.

An exercise is a call that fails if the backend lacks a row of the hook table (hooks.toml). EXERCISES has them by the
row's key.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import torch
import torch.utils.dlpack

from .device import ProbedDevice, has_kernel
from .error_text import first_line
from .request import CannotCheck

# The operators without which no tensor can be created, viewed, copied or read.
MINIMAL_OPERATORS = (
    "aten::empty.memory_format",
    "aten::empty_strided",
    "aten::as_strided",
    "aten::view",
    "aten::_reshape_alias",
    "aten::resize_",
    "aten::set_.source_Tensor",
    "aten::set_.source_Storage",
    "aten::set_.source_Storage_storage_offset",
    "aten::_copy_from",
    "aten::_copy_from_and_resize",
    "aten::_local_scalar_dense",
)
QUANTIZED_OPERATORS = ("aten::_empty_affine_quantized", "aten::_copy_from", "aten::dequantize.self", "aten::q_scale")
NESTED_OPERATORS = ("aten::values", "aten::unbind.int", "aten::clone", "aten::to_padded_tensor", "aten::add.Tensor")
# They create sparse tensors, take them apart, and add the gradient of an embedding to its weight.
COO_OPERATORS = (
    "aten::_sparse_coo_tensor_with_dims_and_tensors",
    "aten::_indices",
    "aten::_values",
    "aten::_coalesce",
    "aten::_to_dense",
    "aten::add.out",
)
COMPRESSED_OPERATORS = (
    "aten::empty.memory_format",
    "aten::crow_indices",
    "aten::col_indices",
    "aten::values",
    "aten::_to_dense",
    "aten::addmm.out",
)

SYNC_BATCH_NORM = (
    "aten::batch_norm_stats",
    "aten::batch_norm_gather_stats_with_counts",
    "aten::batch_norm_elemt",
    "aten::batch_norm_backward_reduce",
    "aten::batch_norm_backward_elemt",
)


def _name(device: ProbedDevice) -> None:
    if torch.device(device.name).type != device.name:
        raise RuntimeError(f"torch.device({device.name!r}) has another type: {torch.device(device.name)}")


def _methods(device: ProbedDevice) -> None:
    name = device.name
    kinds = {"Tensor": torch.Tensor, "nn.Module": torch.nn.Module, "UntypedStorage": torch.UntypedStorage}
    missing = [f"torch.{kind}.{name}" for kind, type_ in kinds.items() if not hasattr(type_, name)]
    missing += [
        f"torch.{kind}.is_{name}"
        for kind, type_ in kinds.items()
        if kind != "nn.Module" and not hasattr(type_, f"is_{name}")
    ]
    if missing:
        raise RuntimeError(f"missing: {', '.join(missing)}")


def _kernels(*operators: str, key: str = "PrivateUse1") -> Callable[[ProbedDevice], None]:
    """Returns an exercise that raises RuntimeError if one of these operators has no kernel for the dispatch key.

    For all but the minimal set, it raises CannotCheck if no operator creates tensors, because the row of the minimal
    set reports that.
    """

    def check(_: ProbedDevice) -> None:
        if operators != MINIMAL_OPERATORS and not has_kernel("aten::empty.memory_format"):
            raise CannotCheck("needs operators that make tensors")
        missing = [name for name in operators if not has_kernel(name, key)]
        if missing:
            raise RuntimeError(f"no kernel for {key}: {', '.join(missing)}")

    return check


def _fallback(_: ProbedDevice) -> None:
    if not torch._C._dispatch_has_backend_fallback(torch._C.DispatchKey.PrivateUse1):
        raise RuntimeError("no fallback for PrivateUse1: an operator without a kernel raises NotImplementedError")


def _out_of_memory(device: ProbedDevice) -> None:
    try:
        device.storage(1 << 60)
    except torch.OutOfMemoryError:
        return
    except RuntimeError as error:
        raise RuntimeError(
            f"an allocation of 2**60 bytes raises {type(error).__name__}, not torch.OutOfMemoryError: {error}"
        ) from error
    raise CannotCheck("an allocation of 2**60 bytes succeeds")


def _save(device: ProbedDevice) -> None:
    tensor, file = device.tensor(), io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    loaded = torch.load(file)
    if loaded.device != tensor.device or loaded.tolist() != tensor.tolist():
        raise RuntimeError(f"a tensor of {tensor.device} was loaded as {loaded}")


def _backward(device: ProbedDevice) -> None:
    """Runs a backward pass. Autograd's thread of a device sets the device and its streams by the backend's guard."""
    leaf = device.tensor().requires_grad_()
    try:
        (leaf * 2).backward(torch.ones(2).to(device.first))  # type: ignore[no-untyped-call]
    except NotImplementedError as error:
        raise CannotCheck(f"needs more operators: {first_line(error)}") from error


def _byteswap(device: ProbedDevice) -> None:
    # Raises CannotCheck without the operators that a backend's byteswap() may use. PyTorch's own ends the process.
    device.tensor()
    device.storage().byteswap(torch.int16)  # type: ignore[no-untyped-call]


def _dlpack(device: ProbedDevice) -> None:
    tensor = device.tensor()
    if torch.utils.dlpack.from_dlpack(tensor).data_ptr() != tensor.data_ptr():
        raise RuntimeError("torch.from_dlpack() returns other memory than the tensor's")


def _flatten_indices(device: ProbedDevice) -> None:
    if not has_kernel("aten::_to_sparse_csc", "SparseCsrPrivateUse1"):
        raise CannotCheck("needs kernels of SparseCsrPrivateUse1")
    places = torch.arange(3).to(device.first)
    torch.sparse_csr_tensor(places, places[:2], device.tensor(), (2, 2)).to_sparse_csc()


def _jagged_attention(device: ProbedDevice) -> None:
    values = device.tensor().reshape(2, 1, 1)
    try:
        offsets = torch.tensor([0, 2]).to(device.first)
        rows = torch.nested.nested_tensor_from_jagged(values, offsets, min_seqlen=2, max_seqlen=2).transpose(1, 2)
    except NotImplementedError as error:
        raise CannotCheck(f"needs more operators: {first_line(error)}") from error
    torch.nn.functional.scaled_dot_product_attention(rows, rows, rows, is_causal=True)


def _process_group(device: ProbedDevice) -> None:
    if not torch.distributed.is_available():
        raise CannotCheck("this torch was built without torch.distributed")
    backends = torch.distributed.Backend.default_device_backend_map
    if device.name not in backends:
        raise CannotCheck(
            f"no installed package has a process group for {device.name}; torch.distributed has {backends}"
        )


EXERCISES: dict[str, Callable[[ProbedDevice], object]] = {
    "registration.torch.utils.rename_privateuse1_backend": _name,
    "registration.torch.utils.generate_methods_for_privateuse1_backend": _methods,
    "registration.c10::OutOfMemoryError": _out_of_memory,
    "registration.aten::_has_compatible_shallow_copy_type": _kernels("aten::_has_compatible_shallow_copy_type"),
    "registration.aten::record_stream": _kernels("aten::record_stream"),
    "registration.kernels of SparsePrivateUse1": _kernels(*COO_OPERATORS, key="SparsePrivateUse1"),
    "registration.kernels of SparseCsrPrivateUse1": _kernels(*COMPRESSED_OPERATORS, key="SparseCsrPrivateUse1"),
    "registration.at::native::flatten_indices_stub": _flatten_indices,
    "registration.kernels of NestedTensorPrivateUse1": _kernels(*NESTED_OPERATORS, key="NestedTensorPrivateUse1"),
    "registration.aten::_jagged_to_padded_dense_forward and aten::_padded_dense_to_jagged_forward": _kernels(
        "aten::_jagged_to_padded_dense_forward", "aten::_padded_dense_to_jagged_forward"
    ),
    "registration.attention on nested tensors of layout torch.jagged": _jagged_attention,
    "registration.kernels of QuantizedPrivateUse1": _kernels(*QUANTIZED_OPERATORS, key="QuantizedPrivateUse1"),
    "registration.kernels of torch.ops.quantized": _kernels(
        "quantized::linear", "quantized::conv2d.new", "quantized::add", key="QuantizedPrivateUse1"
    ),
    "registration.the minimal set of operators": _kernels(*MINIMAL_OPERATORS),
    "registration.the boxed fallback": _fallback,
    "registration.aten::_amp_foreach_non_finite_check_and_unscale_ and aten::_amp_update_scale_": _kernels(
        "aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_update_scale_"
    ),
    "registration.torch.distributed.Backend.register_backend": _process_group,
    "registration.the operators of SyncBatchNorm": _kernels(*SYNC_BATCH_NORM),
    "registration.torch.save and torch.load": _save,
    "registration.a backward pass": _backward,
    "registration.UntypedStorage.byteswap": _byteswap,
    "registration.DLPack": _dlpack,
}
