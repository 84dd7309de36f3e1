# SPDX-License-Identifier: BSD-3-Clause
"""Tries an operator: calls it with small operands made from its schema, and records which operators it calls.

Also records the dtypes of its results under autocast. Operators with a string argument are not called, because the
string may be the name of a file.
"""

from __future__ import annotations

from typing import Any

import torch

from .device import ProbedDevice
from .error_text import first_line

# The shape of all tensor operands; these are tried in order.
_SHAPES = ((2, 2), (2,), (1, 2, 4, 4))
_SCALARS: dict[str, Any] = {
    "int": 0,
    "SymInt": 0,
    "float": 0.5,
    "number": 1,
    "bool": False,
    "List[int]": [2],
    "List[SymInt]": [2],
    "Device": None,
    "ScalarType": torch.float32,
}


def run(device: ProbedDevice, name: str) -> dict[str, Any]:
    """Calls the operator with the first shape that it accepts.

    Returns ``calls``, the other operators that ran during the call, nested ones first. Also returns the ``shape``, and
    ``autocast``, the result's dtype by operand dtype. If the operator accepts no shape, returns ``error``, the first
    exception; the report then only says that no call could be tried.
    """
    packet, _, overload = name.partition("::")[2].partition(".")
    operator = getattr(getattr(getattr(torch.ops, name.partition("::")[0]), packet), overload or "default")
    error: Exception | None = None
    for shape in _SHAPES:
        try:
            arguments = _arguments(operator, device, shape, torch.float32)
            calls = _called(operator, arguments, name)
        except Exception as caught:
            error = error or caught
            continue
        return {"calls": calls, "shape": list(shape), "autocast": _autocast(operator, device, shape)}
    assert error is not None  # of the first shape
    return {"error": first_line(error)}


def _arguments(operator: Any, device: ProbedDevice, shape: tuple[int, ...], dtype: torch.dtype) -> dict[str, Any]:
    """Returns values for the arguments without default. Raises ValueError for types that have no harmless value."""
    return {
        argument.name: _value(str(argument.type), device, shape, dtype)
        for argument in operator._schema.arguments
        if not argument.has_default_value()
    }


def _value(kind: str, device: ProbedDevice, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
    if kind.startswith("Optional["):
        return None
    if kind == "Tensor":
        return torch.ones(shape, dtype=dtype).to(device.first)
    if kind == "List[Tensor]":
        return [torch.ones(shape, dtype=dtype).to(device.first) for _ in range(2)]
    if kind in _SCALARS:
        return _SCALARS[kind]
    raise ValueError(f"no small value of type {kind} is known for a call of the operator")


def _called(operator: Any, arguments: dict[str, Any], name: str) -> list[str]:
    """Returns the names of the other operators that ran during the call, nested ones first."""
    torch.ones(1).add_(1)  # keeps PyTorch's one-time initialization out of the profile
    with torch.autograd.profiler.profile(use_kineto=False) as profile:
        operator(**arguments)
    base = name.partition(".")[0]
    events = [event for event in profile.function_events or [] if "::" in event.name]
    roots = [event for event in events if event.cpu_parent is None]
    inner = [event for event in events if event.cpu_parent is not None and event.name != base]
    return list(dict.fromkeys(event.name for event in [*inner, *roots] if event.name != base))


def _autocast(operator: Any, device: ProbedDevice, shape: tuple[int, ...]) -> dict[str, str]:
    """Returns the result's dtype under autocast to float16, or the error of the call, by dtype of the operands."""
    result = {}
    for dtype in (torch.float32, torch.float16):
        try:
            arguments = _arguments(operator, device, shape, dtype)
            with torch.autocast(device.name, dtype=torch.float16):
                output = operator(**arguments)
        except Exception as error:
            result[str(dtype)] = first_line(error)
            continue
        tensors = output if isinstance(output, (list, tuple)) else [output]  # some operators return a number
        result[str(dtype)] = ", ".join(str(t.dtype) for t in tensors if isinstance(t, torch.Tensor))
    return result
