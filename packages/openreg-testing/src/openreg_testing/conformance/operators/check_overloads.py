# SPDX-License-Identifier: BSD-3-Clause
"""Checks the out= and in-place overloads of all operators that a sample runs.

These include the operators that composite operators call, but not those that a kernel calls inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..error_text import first_line
from . import device_under_test
from .check_results import Computation
from .check_writes import form_name, is_intact_around, transposed, with_strides
from .comparison import difference
from .entries import differentiable, samples_of
from .outcome import attempt
from .report import EntryReport
from .transfer import copy_inputs, copy_tensor, inputs_of, tensors_in

SAMPLES = 3
# A form is a function of a result that returns an out= operand for it, inside of a larger memory: with the strides of
# the result, or with the dimensions in reversed order in memory.
OUT_FORMS = (with_strides, transposed)


class OverloadChecker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that compares each functional operator on the device with its overloads that have a kernel there.

    Each operator is compared once; `differences` has one line for each overload and form that differs.
    """

    def __init__(self, tolerance: tuple[float, float] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tolerance = tolerance
        self.known: set[Any] = set()
        self.differences: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        functional = not func._schema.is_mutable and not any(item.alias_info for item in func._schema.returns)
        if functional and func not in self.known and is_on_device(result):
            self.known.add(func)
            for overload in out_overloads(func):
                for form in OUT_FORMS:
                    self.compare(
                        overload,
                        result,
                        lambda target, view, device=None: call_out(target, view, args, kwargs, result, device),
                        form,
                    )
            overload = inplace_overload(func)
            if overload and can_store(args[0], result):
                target = copy_of(args[0])
                self.compare(overload, result, lambda *_: overload(target, *args[1:], **kwargs))
        return result

    def compare(self, overload: Any, result: Any, call: Callable[..., Any], form: Any = None) -> None:
        """Compares the result of `call(overload, form)` with the functional one, and records a difference.

        An error of an out= overload is none if the CPU raises one of the same type.
        """
        name = f"{overload} {form_name(form)}" if form else overload
        try:
            ours = call(overload, form)
            device_under_test.synchronize()
        except Exception as error:
            if form is None or not raises(lambda: call(overload, form, "cpu"), type(error)):
                self.differences.append(f"{name}: {first_line(error)}")
            return
        values = torch.Tag.nondeterministic_seeded not in overload.tags
        mine = tensors_in(ours)
        # An in-place operator rounds its result to the dtype of the operand.
        expected = [one.detach().cpu().to(other.dtype) for one, other in zip(tensors_in(result), mine, strict=True)]
        found = difference(mine, expected, self.tolerance, values=values)
        if found:
            self.differences.append(f"{name}: {found}")


def is_on_device(result: Any) -> bool:
    """Returns True if there are tensors in a result, and all are strided and on the device under test."""
    tensors = tensors_in(result)
    return bool(tensors) and all(
        t.device.type == device_under_test.device() and t.layout == torch.strided for t in tensors
    )


def has_kernel(overload: Any) -> bool:
    """Returns True if the backend has registered a kernel for the overload."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "PrivateUse1")


def signature(arguments: Any) -> list[tuple[str, str]]:
    """Returns the names and types of a schema's arguments."""
    return [(argument.name, str(argument.type)) for argument in arguments]


def out_overloads(func: Any) -> Iterator[Any]:
    """Yields the overloads with a kernel on the device that accept the arguments of `func` and out= tensors."""
    packet = func.overloadpacket
    for name in packet.overloads():
        overload = getattr(packet, name)
        arguments = overload._schema.arguments
        inputs = [argument for argument in arguments if not argument.is_out]
        is_out_overload = len(inputs) < len(arguments) and signature(inputs) == signature(func._schema.arguments)
        if is_out_overload and has_kernel(overload):
            yield overload


def raises(call: Callable[[], Any], error: type[Exception]) -> bool:
    """Returns True if a call raises exactly this type of exception."""
    try:
        call()
    except Exception as found:
        return type(found) is error
    return False


def call_out(
    overload: Any, form: Any, args: Any, kwargs: Any, result: Any, device: str | None = None
) -> list[torch.Tensor]:
    """Calls an out= overload with outputs that lie inside of a larger memory, and returns the outputs.

    Raises AssertionError if the call writes to the memory around the outputs.
    """
    names = [argument.name for argument in overload._schema.arguments if argument.is_out]
    hosts = [form(tensor.detach().cpu()) for tensor in tensors_in(result)]
    outs = [copy_tensor(out, device or device_under_test.device(), {}) for out in hosts]
    if device:
        args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), (args, kwargs))
    if len(names) == len(outs):
        overload(*args, **kwargs, **dict(zip(names, outs, strict=True)))
    else:
        overload(*args, **kwargs, **{names[0]: outs})
    if not all(is_intact_around(out, before) for out, before in zip(outs, hosts, strict=True)):
        raise AssertionError("neighbors of the operand were written to")
    return outs


def inplace_overload(func: Any) -> Any:
    """Returns the in-place overload with the arguments of `func` and a kernel on the device, or None."""
    namespace, name = func._schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), f"{name}_", None)
    overload = getattr(packet, func._overloadname, None) if packet else None
    if overload and has_kernel(overload) and signature(overload._schema.arguments) == signature(func._schema.arguments):
        return overload
    return None


def can_store(target: Any, result: Any) -> bool:
    """Returns True if an in-place operator can store this result in its operand."""
    return (
        isinstance(target, torch.Tensor)
        and isinstance(result, torch.Tensor)
        and target.device.type == device_under_test.device()
        and target.shape == result.shape
        and torch.can_cast(result.dtype, target.dtype)
    )


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy on the same device."""
    return torch.empty_like(tensor).copy_(tensor)


def check_overloads(op: Any, dtype: torch.dtype, report: EntryReport) -> None:
    """Compares the overloads with the functional overload on the device, which other checks compare with the CPU."""
    gradient = differentiable(op, dtype)
    for sample in report.choose(samples_of(op, dtype, gradient), SAMPLES):
        computation = Computation(op, sample, gradient)
        args, kwargs = copy_inputs(op, inputs_of(sample), device_under_test.device())
        mode = OverloadChecker(report.tolerance)

        def compute(
            computation: Callable[..., Any] = computation, args: Any = args, kwargs: Any = kwargs, mode: Any = mode
        ) -> Any:
            with mode:
                return computation(args, kwargs)

        attempt(compute, device_under_test.device())
        if mode.differences:
            report.fail("overloads", mode.differences[0], sample)
            return
