# SPDX-License-Identifier: BSD-3-Clause
"""A table of operators with one planted bug each on the device. The harness has to find every one."""

import ctypes
import os
import time
import warnings
from pathlib import Path

import torch
from _platform import DRIVER_LIBRARY
from torch.testing._internal.common_dtype import floating_types_and
from torch.testing._internal.opinfo.core import ErrorInput, OpInfo, SampleInput

DEVICE = "openreg"
LAUNCH_FAILURE = 10  # orErrorLaunchFailure of openreg.h


def on_device(tensor):
    return tensor.device.type == DEVICE


def right(x):
    return x * 2


def wrong_number(x):
    return x * 2 + 0.01 if on_device(x) else x * 2


def wrong_dtype(x):
    return (x * 2).double() if on_device(x) else x * 2


def wrong_shape(x):
    return (x * 2).view(-1) if on_device(x) else x * 2


def on_the_host(x):
    return (x * 2).cpu()


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * (3 if on_device(grad) else 2)


def wrong_for_strides(x):
    return x * 2 if x.is_contiguous() or not on_device(x) else x * 3


def double_inplace(x):
    return x.mul_(3 if on_device(x) else 2)


def ignores_out(x, out=None):
    if out is None or not on_device(x):
        return torch.mul(x, 2, out=out)
    return x * 2


def crashes(x):
    if on_device(x):
        os.abort()
    return x * 2


def hangs(x):
    while on_device(x):
        time.sleep(1)
    return x * 2


def accepts_anything(x):
    if x.dim() == 0 and not on_device(x):
        raise ValueError("a number has no length")
    return x * 2


def forgets_strides(x):
    return (x * 2).contiguous() if on_device(x) else x * 2


def double_where_the_cpu_asserts(x):
    if not on_device(x) and x.dim() > 1 and 0 in x.stride():
        raise RuntimeError("x.is_good() INTERNAL ASSERT FAILED")
    return x * 2


def wrong_where_the_cpu_asserts(x):
    return x * 3 if on_device(x) and 0 in x.stride() else double_where_the_cpu_asserts(x)


def takes_a_shape_of_its_own(x, out=None):
    """Writes its numbers one after the other from where the operand begins."""
    if out is None or not on_device(x):
        return torch.mul(x, 2, out=out)
    out.resize_(x.shape)
    out.as_strided((x.numel(),), (1,)).copy_((x * 2).reshape(-1))
    return out


def writes_beyond(x, out=None):
    result = torch.mul(x, 2, out=out)
    if out is not None and on_device(x):
        out.as_strided((1,), (1,), out.storage_offset() - 1).fill_(0)
    return result


def fill_but_not_expanded(x):
    if on_device(x) and 0 in x.stride():
        raise RuntimeError("unsupported operation: more than one element")
    return x.fill_(2)


def add_whatever_overlaps(x, other):
    return x.add_(other.clone() if on_device(x) else other)


def add(x, other):
    return x + other


def warns(x):
    if on_device(x):
        warnings.warn("of nothing", stacklevel=1)
    return x * 2


def forgets_to_warn(x):
    if not on_device(x):
        warnings.warn("of something", stacklevel=1)
    return x * 2


def warns_on_the_engine(x):
    if on_device(x):
        os.write(2, b"[W101 00:00:00.000 kernel.cpp:1] Warning: of nothing (function kernel)\n")
    return x * 2


def filled(x):
    return torch.full_like(x, 2)


def loses_the_device(x):
    """For dtypes that the CPU refuses at the call."""
    if x.dtype in (torch.float32, torch.float64):
        return x * 2
    if on_device(x):
        return torch.zeros(1, device=DEVICE).index_select(0, torch.tensor([99], device=DEVICE))
    raise NotImplementedError("not for this dtype")


def refuses_a_dtype(x):
    if x.dtype == torch.float64 and on_device(x):
        raise NotImplementedError("not for float64")
    return x * 2


# An operator of ours for the CPU only.
LIBRARY = torch.library.Library("conformance_faults", "DEF")
LIBRARY.define("double(Tensor x) -> Tensor")
LIBRARY.impl("double", lambda x: x * 2, "CPU")


def falls_back(x):
    return torch.ops.conformance_faults.double(x)


def other_distribution(x):
    return torch.rand_like(x) * (2 if on_device(x) else 1)


def not_repeatable(x):
    return torch.rand_like(x) + (time.perf_counter() % 1 if on_device(x) else 0)


class LateKernel(ctypes.Structure):
    """orKernel of openreg.h; the function runs on a thread of the device."""

    FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", FUNCTION),
        ("state", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
    )


LATE_KERNELS = []  # what the device may still call


def the_driver():
    """The library of the device, which the runtime has loaded."""
    import openreg_runtime

    folders = [Path(folder) / "lib" for folder in openreg_runtime.__path__]
    folders.append(Path(openreg_runtime._C.__file__).parent / "lib")
    return ctypes.CDLL(str(next(folder / DRIVER_LIBRARY for folder in folders if (folder / DRIVER_LIBRARY).exists())))


def launch_late(function):
    """Launches a Python function on the default stream of the device."""
    kernel = LateKernel(b"late", LateKernel.FUNCTION(lambda *_: function()))
    LATE_KERNELS.append(kernel)
    if the_driver().orLaunchKernel(None, ctypes.byref(kernel)):
        raise RuntimeError("the launch failed")


def reads_late(x):
    """A kernel that writes a zero if the default dtype is another one when it runs."""
    result = x * 2
    if on_device(x):
        offset = ctypes.c_ssize_t()
        the_driver().orGetKernelViewOffset(ctypes.byref(offset))
        place = result.data_ptr() + offset.value

        def kernel():
            if torch.get_default_dtype() != torch.float32:
                ctypes.memset(place, 0, 4)
            return 0

        launch_late(kernel)
    return result


def refuse():
    raise RuntimeError("this does not have a deterministic implementation")


def raises_late(x):
    if on_device(x):
        launch_late(lambda: LAUNCH_FAILURE if torch.are_deterministic_algorithms_enabled() else 0)
    elif torch.are_deterministic_algorithms_enabled():
        refuse()
    return x * 2


def ignores_the_alert(x):
    if not on_device(x) and torch.are_deterministic_algorithms_enabled():
        refuse()
    return x * 2


def samples(op_info, device, dtype, requires_grad, **kwargs):
    for shape in ((4, 3), (2, 5)):
        values = torch.rand(shape, dtype=dtype, device=device) + 1
        yield SampleInput(values.requires_grad_(requires_grad))


def pairs(op_info, device, dtype, requires_grad, **kwargs):
    for sample in samples(op_info, device, dtype, requires_grad):
        yield SampleInput(sample.input, args=(sample.input.detach().clone(),))


def number_as_input(op_info, device, **kwargs):
    yield ErrorInput(SampleInput(torch.tensor(1.0, device=device)), error_type=ValueError, error_regex="")


def entry(name, function, *, out=False, **others):
    return OpInfo(
        name,
        op=function,
        dtypes=floating_types_and(),
        sample_inputs_func=others.pop("sample_inputs_func", samples),
        supports_out=out,
        method_variant=None,
        inplace_variant=others.pop("inplace_variant", None),
        operator_variant=None,
        inplace_operator_variant=None,
        **others,
    )


TABLE = [
    entry("right", right),
    entry("wrong_number", wrong_number),
    entry("wrong_dtype", wrong_dtype),
    entry("wrong_shape", wrong_shape),
    entry("on_the_host", on_the_host),
    entry("wrong_gradient", WrongGradient.apply),
    entry("wrong_for_strides", wrong_for_strides),
    entry("wrong_inplace", right, inplace_variant=double_inplace),
    entry("ignores_out", ignores_out, out=True),
    entry("forgets_strides", forgets_strides),
    entry("right_where_the_cpu_asserts", double_where_the_cpu_asserts),
    entry("wrong_where_the_cpu_asserts", wrong_where_the_cpu_asserts),
    entry("takes_a_shape_of_its_own", takes_a_shape_of_its_own, out=True),
    entry("writes_beyond", writes_beyond, out=True),
    entry("refuses_expanded", filled, inplace_variant=fill_but_not_expanded),
    entry("takes_overlaps", add, inplace_variant=add_whatever_overlaps, sample_inputs_func=pairs),
    entry("warns", warns),
    entry("forgets_to_warn", forgets_to_warn),
    entry("warns_on_the_engine", warns_on_the_engine),
    entry("loses_the_device", loses_the_device),
    entry("refuses_a_dtype", refuses_a_dtype),
    entry("crashes", crashes),
    entry("hangs", hangs),
    entry("accepts_anything", accepts_anything, error_inputs_func=number_as_input),
    entry("falls_back", falls_back, supports_autograd=False),
    entry("other_distribution", other_distribution, supports_autograd=False),
    entry("not_repeatable", not_repeatable, supports_autograd=False),
]

# The same for the check of flags.
FLAG_TABLE = [
    entry("reads_no_flag", right),
    entry("reads_late", reads_late, supports_autograd=False),
    entry("raises_late", raises_late, supports_autograd=False),
    entry("ignores_the_alert", ignores_the_alert, supports_autograd=False),
]

# Those that a random call meets soon.
FUZZ_TABLE = [
    item for item in TABLE if item.name in ("right", "wrong_number", "wrong_for_strides", "loses_the_device", "crashes")
]
