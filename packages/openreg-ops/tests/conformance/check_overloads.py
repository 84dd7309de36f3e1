# SPDX-License-Identifier: BSD-3-Clause
"""The out= and in-place overloads of every operator that runs, also of those that only operators and gradients call."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .check_results import Computation
from .check_writes import is_intact_around, spoken, transposed, with_strides
from .comparison import difference
from .entries import differentiable, samples_of
from .outcome import DEVICE, attempt
from .transfer import copy_inputs, copy_tensor, inputs_of, tensors_in

SAMPLES = 3
OUT_FORMS = (with_strides, transposed)


class CallsOverloads(TorchDispatchMode):
    """Calls, after every operator on the device, its overloads that have a kernel there, and keeps what differs."""

    def __init__(self):
        super().__init__()
        self.known = set()
        self.differences = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        functional = not func._schema.is_mutable and not any(item.alias_info for item in func._schema.returns)
        if functional and func not in self.known and is_on_device(result):
            self.known.add(func)
            for overload in out_overloads(func):
                for form in OUT_FORMS:
                    self.compare(overload, result, lambda *given: call_out(*given, args, kwargs, result), form)
            overload = inplace_overload(func)
            if overload and may_hold(args[0], result):
                target = copy_of(args[0])
                self.compare(overload, result, lambda *_: overload(target, *args[1:], **kwargs))
        return result

    def compare(self, overload, result, call, form=None):
        name = f"{overload} {spoken(form)}" if form else overload
        try:
            ours = call(overload, form)
            torch.openreg.synchronize()
        except Exception as error:
            self.differences.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
            return
        values = torch.Tag.nondeterministic_seeded not in overload.tags
        mine = tensors_in(ours)
        # In place, a result is rounded to the operand's dtype.
        expected = [one.detach().cpu().to(other.dtype) for one, other in zip(tensors_in(result), mine, strict=True)]
        found = difference(mine, expected, values=values)
        if found:
            self.differences.append(f"{name}: {found}")


def is_on_device(result):
    tensors = tensors_in(result)
    return bool(tensors) and all(t.device.type == DEVICE and t.layout == torch.strided for t in tensors)


def has_kernel(overload):
    return torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "PrivateUse1")


def signature(arguments):
    return [(argument.name, str(argument.type)) for argument in arguments]


def out_overloads(func):
    """Overloads that take what `func` takes and the tensors to put the results into."""
    packet = func.overloadpacket
    for name in packet.overloads():
        overload = getattr(packet, name)
        arguments = overload._schema.arguments
        taken = [argument for argument in arguments if not argument.is_out]
        same = len(taken) < len(arguments) and signature(taken) == signature(func._schema.arguments)
        if same and has_kernel(overload):
            yield overload


def call_out(overload, form, args, kwargs, result):
    """With operands in the middle of a larger memory, which has to be as before around them."""
    names = [argument.name for argument in overload._schema.arguments if argument.is_out]
    hosts = [form(tensor.detach().cpu()) for tensor in tensors_in(result)]
    outs = [copy_tensor(out, DEVICE, {}) for out in hosts]
    if len(names) == len(outs):
        overload(*args, **kwargs, **dict(zip(names, outs, strict=True)))
    else:
        overload(*args, **kwargs, **{names[0]: outs})
    if not all(is_intact_around(out, before) for out, before in zip(outs, hosts, strict=True)):
        raise AssertionError("neighbours of the operand were written to")
    return outs


def inplace_overload(func):
    namespace, name = func._schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), f"{name}_", None)
    overload = getattr(packet, func._overloadname, None) if packet else None
    if overload and has_kernel(overload) and signature(overload._schema.arguments) == signature(func._schema.arguments):
        return overload
    return None


def may_hold(target, result):
    """Whether an in-place operator can put this result into its operand."""
    return (
        isinstance(target, torch.Tensor)
        and isinstance(result, torch.Tensor)
        and target.device.type == DEVICE
        and target.shape == result.shape
        and torch.can_cast(result.dtype, target.dtype)
    )


def copy_of(tensor):
    return torch.empty_like(tensor).copy_(tensor)


def check_overloads(op, dtype, report):
    """Compares the overloads with the functional form on the device, which other checks compare with the CPU."""
    gradient = differentiable(op, dtype)
    for sample in report.choose(samples_of(op, dtype, gradient), SAMPLES):
        computation = Computation(op, sample, gradient)
        args, kwargs = copy_inputs(op, inputs_of(sample), DEVICE)
        mode = CallsOverloads()

        def compute(computation=computation, args=args, kwargs=kwargs, mode=mode):
            with mode:
                return computation(args, kwargs)

        attempt(compute, DEVICE)
        if mode.differences:
            report.fail("overloads", mode.differences[0], sample)
            return
