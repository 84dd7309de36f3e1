# SPDX-License-Identifier: BSD-3-Clause
"""Exercises of what a backend registers with PyTorch's compiler, whose import takes seconds.

An exercise is a call that fails if the backend lacks a row of the hook table (hooks.toml). EXERCISES has them by the
row's key.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import torch

from .device import ProbedDevice


def _interface(device: ProbedDevice) -> object:
    from torch._dynamo.device_interface import get_interface_for_device

    return get_interface_for_device(device.name)


def _members(*names: str) -> Callable[[ProbedDevice], None]:
    """Returns an exercise that raises NotImplementedError unless the device's interface overrides these members.

    Most members of the base class raise when they are called, and the others return a default, which may be wrong for
    the device.
    """

    def check(device: ProbedDevice) -> None:
        from torch._dynamo.device_interface import DeviceInterface

        interface = _interface(device)
        missing = [name for name in names if _get(interface, name) is _get(DeviceInterface, name)]
        if missing:
            raise NotImplementedError(
                f"{interface} inherits members of DeviceInterface that raise or return a default: {', '.join(missing)}"
            )

    return check


def _get(interface: object, name: str) -> object:
    """Returns a member, or the function of a class method. Returns None if the member does not exist.

    Dots in the name lead into nested classes. Each access to a class method makes another object, so that only the
    functions can be compared.
    """
    try:
        member = attrgetter(name)(interface)
    except AttributeError:
        return None
    return getattr(member, "__func__", member)


def _random_states(device: ProbedDevice) -> None:
    from torch._functorch._aot_autograd.utils import supports_graphsafe_rng

    if not supports_graphsafe_rng(device.first):
        raise RuntimeError(f"register_graphsafe_rng_device_type({device.name!r}) was not called")


def _code_generator(device: ProbedDevice) -> None:
    from torch._inductor.codegen.common import get_scheduling_for_device, init_backend_registration

    init_backend_registration()
    if get_scheduling_for_device(device.name) is None:
        raise NotImplementedError(f"register_backend_for_device({device.name!r}, ...) was not called")


def _compile(device: ProbedDevice) -> None:
    operand = device.tensor()
    compiled = torch.compile(lambda tensor: tensor + tensor, backend="aot_eager")
    if compiled(operand).tolist() != (operand + operand).tolist():
        raise RuntimeError("a compiled addition returns other values than an eager one")


def _decompositions(device: ProbedDevice) -> None:
    """Raises RuntimeError if run_decompositions() leaves aten::linear in a program.

    Of the composite operators, aten::linear is the one that backends override most often.
    """
    values = device.tensor()
    program = torch.export.export(_Linear(), (values.reshape(1, 2), values.reshape(1, 2))).run_decompositions()
    if torch.ops.aten.linear.default in {node.target for node in program.graph.nodes}:
        raise RuntimeError(
            "aten::linear, for which the device has a kernel, remains in a program after run_decompositions()"
        )


class _Linear(torch.nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, weight)


# The names of the table's rows about DeviceInterface, each a list of its members.
_STREAMS = "device, Event, Stream, stream, current_stream, set_stream, _set_stream_by_id, get_raw_stream, synchronize"
_DEVICES = "current_device, set_device, exchange_device, maybe_exchange_device, device_count, is_available"
_WORKERS = (
    "Worker.set_device, Worker.current_device, Worker.get_device_properties, get_compute_capability, "
    "is_bf16_supported, is_dtype_supported, memory_allocated, is_triton_capable"
)
_CODE = "is_gpu, get_cache_system_info"

EXERCISES: dict[str, Callable[[ProbedDevice], object]] = {
    "device_interface.register_interface_for_device": _interface,
    **{f"device_interface.{row}": _members(*row.split(", ")) for row in (_STREAMS, _DEVICES, _WORKERS, _CODE)},
    "registration.register_graphsafe_rng_device_type": _random_states,
    "registration.register_backend_for_device": _code_generator,
    "registration.backends eager and aot_eager, torch.export, FakeTensor": _compile,
    "registration.decompositions of composite operators that the device overrides": _decompositions,
}
