# SPDX-License-Identifier: BSD-3-Clause
"""Plants the bugs in openreg that the environment variable PLANTED names. The kit has to find every one."""

import os

import torch

import torch_openreg  # noqa: F401  (brings the device up)

PLANTED = os.environ.get("PLANTED", "")
LIBRARY = torch.library.Library("aten", "IMPL")


def device_count():
    torch.openreg.device_count = lambda: 3


def context():
    torch.openreg.device.__exit__ = lambda self, *args: None


def stream_context():
    torch.openreg.StreamContext.__exit__ = lambda self, *args: None


def event_class():
    torch.openreg.Event = object


def resize():
    LIBRARY.impl("resize_", lambda x, size, *, memory_format=None: x, "PrivateUse1")


def global_seed():
    torch.openreg.manual_seed_all = lambda seed: None


def random_state():
    torch.openreg.set_rng_state = lambda state, device="openreg": None


def location():
    torch.serialization.register_package(0, lambda storage: None, lambda storage, location: storage)


def dlpack_device():
    torch.Tensor.__dlpack_device__ = lambda self: (1, 0)


def dlpack_crash():
    torch.Tensor.__dlpack_device__ = lambda self: os.abort()


def keeps_linear():
    from torch.export import exported_program

    split = exported_program._split_decomp_table_to_cia_and_python_decomp

    def keep(table):
        of_autograd, of_tracer = split(table)
        of_tracer.pop(torch.ops.aten.linear.default, None)
        return of_autograd, of_tracer

    exported_program._split_decomp_table_to_cia_and_python_decomp = keep


def padding():
    def pad(values, offsets, lengths, padding=0.0):
        return values.new_zeros(offsets[0].numel() - 1, lengths[0], *values.shape[1:])

    LIBRARY.impl("_jagged_to_padded_dense_forward", pad, "PrivateUse1")


def coalescing():
    LIBRARY.impl("_coalesce", lambda x: x.clone()._coalesced_(True), "SparsePrivateUse1")


def sparse_sine():
    LIBRARY.impl("sin", lambda x: x * 2, "SparsePrivateUse1")


def sparse_gradient():
    """The gradient of abs() is made of it."""
    LIBRARY.impl("sgn", torch.clone, "SparseCsrPrivateUse1")


def autocast_list():
    def mm(x, y):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)):
            return torch.mm(x, y)

    LIBRARY.impl("mm", mm, "AutocastPrivateUse1")


def gelu():
    LIBRARY.impl("gelu", lambda x, *, approximate="none": x * 2, "PrivateUse1")


def gelu_gradient():
    LIBRARY.impl("gelu_backward", lambda gradient, x, *, approximate="none": gradient * 2, "PrivateUse1")


def gelu_gradient_crash():
    LIBRARY.impl("gelu_backward", lambda gradient, x, *, approximate="none": os.abort(), "PrivateUse1")


def momentum():
    LIBRARY.impl("addcdiv_", lambda self, one, other, *, value=1: self, "PrivateUse1")


def fake_device():
    torch.openreg.current_device = lambda: 1


def no_reset():
    del torch.openreg.reset_device


def reset_raises():
    def reset_device(device=None):
        raise RuntimeError("the driver does not answer")

    torch.openreg.reset_device = reset_device


def reset_does_nothing():
    torch.openreg.reset_device = lambda device=None: None


def tells_no_fallbacks():
    del torch.openreg.fallback_stats


def wrong_and_crashes_with_out():
    LIBRARY.impl("erfinv", lambda x: x * 2, "PrivateUse1")
    LIBRARY.impl("erfinv.out", lambda x, *, out: os.abort(), "PrivateUse1")


def less_exact_with_out():
    LIBRARY.impl("erfinv.out", lambda x, *, out: out.copy_(torch.erfinv(x) + 1e-3), "PrivateUse1")


def refuses_strides_with_out():
    def with_out(x, *, out):
        if not out.is_contiguous():
            raise RuntimeError("out is not contiguous")
        return out.copy_(torch.erfinv(x))

    LIBRARY.impl("erfinv.out", with_out, "PrivateUse1")


def contiguous_result():
    """The values are right in every layout; the strides are right only if the argument is contiguous."""
    LIBRARY.impl("erfinv", lambda x: torch.erfinv(x.cpu()).contiguous().to(x.device), "PrivateUse1")


def compiled():
    """Inductor's code gives one more."""

    def compiler(function):
        if isinstance(function, torch.nn.Module):
            function.register_forward_hook(lambda module, inputs, result: more(result))
            return function
        return lambda *args, **kwargs: more(function(*args, **kwargs))

    def more(result):
        return result + 1 if result.device.type == "openreg" else result

    torch.compile = compiler


def erf(dtype, wrong):
    """What erf does with a dtype that the table does not list for float32's samples: an argument was changed."""
    LIBRARY.impl("erf", lambda x: wrong(x) if x.dtype == dtype else torch.erf(x.cpu()).to(x.device), "PrivateUse1")


def takes_what_the_cpu_refuses():
    erf(torch.complex64, lambda x: x.clone())


def refuses_what_the_cpu_takes():
    def refuse(x):
        raise RuntimeError("erf: not of float64")

    erf(torch.float64, refuse)


def gives_another_result():
    erf(torch.float64, lambda x: torch.erf(x.cpu()).to(x.device) + 1)


def loses_the_device():
    erf(torch.complex64, lambda x: x.reshape(-1).take(torch.tensor([10**6], device=x.device)))


def ends_the_process():
    erf(torch.complex64, lambda x: os.abort())


def ends_the_process_on_the_cpu():
    """The table holds PyTorch's function itself, whenever it was imported."""
    from torch.testing._internal.common_methods_invocations import op_db

    (entry,) = (entry for entry in op_db if entry.name == "erf")
    right = entry.op
    entry.op = lambda x: os.abort() if x.dtype == torch.complex64 and x.device.type == "cpu" else right(x)


def crash():
    def abort(x, *args):
        os.abort()

    LIBRARY.impl("erfinv", abort, "PrivateUse1")


def crash_of_a_device_in_use():
    torch.ones(1, device="openreg").cpu()
    crash()


for mistake in PLANTED.split():
    globals()[mistake]()
