# SPDX-License-Identifier: BSD-3-Clause
"""A PyTorch backend in pure Python: one device called pocket, which keeps its data in bytearrays."""

import atexit
import time

import torch
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

aten = torch.ops.aten
CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
DEVICE = "pocket"


def on_device(value):
    return isinstance(value, torch.Tensor) and value.device.type == DEVICE


def place(tensor, size, stride, dtype):
    """Gives a tensor of the device new memory, laid out by size and stride, and returns the tensor."""
    last = sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    nbytes = 0 if 0 in size else (last + 1) * dtype.itemsize
    memory = torch.frombuffer(bytearray(max(nbytes, 1)), dtype=torch.uint8)
    storage = torch._C._construct_storage_from_data_pointer(memory.data_ptr(), torch.device(DEVICE, 0), nbytes)
    storage.memory = memory  # the storage only points; this attribute owns
    return aten.set_.source_Storage_storage_offset.redispatch(CPU, tensor, storage, 0, size, stride)


def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    if pin_memory or layout not in (None, torch.strided) or (device and device.index):
        raise RuntimeError(f"{DEVICE}:0 has strided, unpinned tensors only; got {device=}, {layout=}, {pin_memory=}")
    dtype = dtype or torch.get_default_dtype()
    return place(torch._C._acc.create_empty_tensor((0,), dtype), size, stride, dtype)


def empty(size, *, dtype=None, memory_format=None, **options):
    like = torch.empty(size, dtype=dtype, device="meta", memory_format=memory_format or torch.contiguous_format)
    return empty_strided(like.shape, like.stride(), dtype=like.dtype, **options)


def host_view(tensor):
    """Returns a CPU tensor over a tensor's memory, on which kernels of this device work."""
    storage = tensor.untyped_storage()
    owner = storage.memory.untyped_storage() if storage.nbytes() else torch.UntypedStorage()
    view = torch.empty(0, dtype=tensor.dtype).set_(owner, tensor.storage_offset(), tensor.shape, tensor.stride())
    view = view.conj() if tensor.is_conj() else view
    return torch._neg_view(view) if tensor.is_neg() else view


def copy_from(source, destination, non_blocking=False):
    to, what = (host_view(tensor) if on_device(tensor) else tensor for tensor in (destination, source))
    to.copy_(what)
    return destination


def any_operator(operator, *args, **kwargs):
    """Runs an operator that has no kernel of its own: the CPU's kernel, on the same memory."""
    if operator.is_view or operator.name().startswith("aten::set_."):  # these change sizes and never touch data
        return operator.redispatch(CPU, *args, **kwargs)
    tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
    mine = [tensor for tensor in tensors if on_device(tensor)]
    if any(tensor.dim() and not on_device(tensor) for tensor in tensors):
        raise RuntimeError(f"{operator.name()}: expected all tensors on {DEVICE}; move the others with .to('{DEVICE}')")
    names = [item.name for item in operator._schema.arguments if item.kwarg_only and item.alias_info]
    inputs = [id(value) for value in tree_leaves(args)]
    outs = [kwargs[name] for name in names if name in kwargs and id(kwargs[name]) not in inputs]  # out= arguments
    views = [(x, torch.empty(0, dtype=x.dtype) if any(x is y for y in outs) else host_view(x)) for x in mine]
    to_host = {id(tensor): view for tensor, view in views}
    to_device = {id(view): tensor for tensor, view in views}

    def argument(value):
        return torch.device("cpu") if isinstance(value, torch.device) else to_host.get(id(value), value)

    def result(value):
        if not isinstance(value, torch.Tensor) or id(value) in to_device:  # the latter: changed in place
            return to_device.get(id(value), value)
        return copy_from(value, empty_strided(value.shape, value.stride(), dtype=value.dtype))

    results = operator(*tree_map(argument, args), **tree_map(argument, kwargs))
    for out in outs:
        view = to_host[id(out)]
        copy_from(view, out if view.shape == out.shape else place(out, view.shape, view.stride(), out.dtype))
    return tree_map(result, results)


_setup_privateuseone_for_python_backend(DEVICE)
LIBRARY = torch.library.Library("aten", "IMPL")  # registrations end when these objects do
FALLBACK = torch.library.Library("_", "IMPL")
LIBRARY.impl("empty.memory_format", empty, "PrivateUse1")
LIBRARY.impl("empty_strided", empty_strided, "PrivateUse1")
LIBRARY.impl("_copy_from", copy_from, "PrivateUse1")
for key in ("Conjugate", "Negative"):  # a copy handles these bits itself
    LIBRARY.impl("_copy_from", torch.library.fallthrough_kernel, key)
FALLBACK.fallback(any_operator, "PrivateUse1")

# A backward pass returns a moment before PyTorch's thread for the device is done, and Python must not end before that.
# PyTorch does not tell when that is. So Python waits for a fixed time, which is enough unless the machine is very busy.
atexit.register(time.sleep, 0.05)
