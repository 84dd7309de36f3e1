# SPDX-License-Identifier: BSD-3-Clause
"""Calls an operator with small operands made from its schema, to see what it calls and what autocast does to it.

Only operators of numbers and tensors are called: what takes text may mean a file.
"""

from __future__ import annotations

from typing import Any

import torch

from .device import Device

# Shapes of all tensor operands, tried in this order.
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


def run(device: Device, name: str) -> dict[str, Any]:
    """``calls``: the operators that it called on the device, in order. ``autocast``: result types by operand type.

    ``error`` says why nothing could be called; a caller that asks about such an operator has to call it itself.
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
    return {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}


def _arguments(operator: Any, device: Device, shape: tuple[int, ...], dtype: torch.dtype) -> dict[str, Any]:
    """Values for the arguments that have no default. Raises ValueError for types that have no harmless value."""
    return {
        argument.name: _value(str(argument.type), device, shape, dtype)
        for argument in operator._schema.arguments
        if not argument.has_default_value()
    }


def _value(kind: str, device: Device, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
    if kind.startswith("Optional["):
        return None
    if kind == "Tensor":
        return torch.ones(shape, dtype=dtype).to(device.first)
    if kind == "List[Tensor]":
        return [torch.ones(shape, dtype=dtype).to(device.first) for _ in range(2)]
    if kind in _SCALARS:
        return _SCALARS[kind]
    raise ValueError(f"no small value of type {kind} to call it with")


def _called(operator: Any, arguments: dict[str, Any], name: str) -> list[str]:
    """The operators that the call led to directly."""
    torch.ones(1).add_(1)  # what PyTorch does once is not part of the call
    with torch.autograd.profiler.profile(use_kineto=False) as profile:
        operator(**arguments)
    base = name.partition(".")[0]
    events = [event for event in profile.function_events or [] if "::" in event.name]
    roots = [event for event in events if event.cpu_parent is None]
    inner = [event for event in events if event.cpu_parent is not None and event.name != base]
    return list(dict.fromkeys(event.name for event in [*inner, *roots] if event.name != base))


def _autocast(operator: Any, device: Device, shape: tuple[int, ...]) -> dict[str, str]:
    """Type of the operands -> type of the result under autocast to float16; empty where it cannot be tried."""
    result = {}
    for dtype in (torch.float32, torch.float16):
        try:
            arguments = _arguments(operator, device, shape, dtype)
            with torch.autocast(device.name, dtype=torch.float16):
                output = operator(**arguments)
        except Exception as error:
            result[str(dtype)] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            continue
        tensors = output if isinstance(output, (list, tuple)) else [output]  # some operators give a number
        result[str(dtype)] = ", ".join(str(t.dtype) for t in tensors if isinstance(t, torch.Tensor))
    return result
