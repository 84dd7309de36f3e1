# SPDX-License-Identifier: BSD-3-Clause
"""Observes an operator's autocast rule: which overload the rule calls in the end, with which dtypes.

A rule is the operator's kernel for AutocastPrivateUse1. It calls the operator again, which reaches the autograd kernel.
During the observation another kernel replaces the autograd kernel, records its arguments and raises. Tensors have no
data (FakeTensor). So neither kernels nor meaningful arguments are needed, and nothing is computed.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch

from .device import ProbedDevice, has_kernel
from .error_text import first_line
from .request import CannotCheck

# The dtypes of an operator's tensors, repeated if it has more tensors.
_CASES = {
    "float32": (torch.float32,),
    "float16": (torch.float16,),
    "mixed": (torch.float16, torch.float32),
}
# A value that the dispatcher accepts, by the type's name in a schema.
_VALUES: dict[str, Any] = {
    "bool": True,
    "str": "any",
    "int": 1,
    "SymInt": 1,
    "float": 0.5,
    "number": 0.5,
    "ScalarType": torch.float64,
    "List[int]": [1],
    "List[SymInt]": [1],
    "List[float]": [0.5],
    "List[bool]": [True],
}


class _ReachedError(Exception):
    """An exception of the kernel that replaces an autograd kernel.

    ``called`` is the overload, ``types`` has the dtypes of its tensors, and ``dtypes`` its arguments that are dtypes.
    """

    def __init__(self, called: str, values: list[Any]) -> None:
        super().__init__(called)
        self.called = called
        self.types = [str(value.dtype) for value in values if isinstance(value, torch.Tensor)]
        self.dtypes = [str(value) for value in values if isinstance(value, torch.dtype)]


def observe(device: ProbedDevice, name: str) -> dict[str, dict[str, Any]]:
    """Returns the result of a call under autocast to float16, by case of _CASES; empty without a rule.

    A result has ``given``, the dtypes of the call's tensors. If the rule called the operator, it has ``called``,
    ``types`` and ``dtypes``, as in ``_ReachedError``. If the rule raised, it has ``error``. Raises CannotCheck if no
    arguments can be made.
    """
    if not has_kernel(name, "AutocastPrivateUse1"):
        return {}
    from torch._subclasses.fake_tensor import FakeTensorMode

    namespace, _, full = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), full.partition(".")[0])
    operator = getattr(packet, full.partition(".")[2] or "default")
    # A rule may call another overload than its operator: those of `norm` without an argument `dtype` do.
    with _recording(namespace, [getattr(packet, overload) for overload in packet.overloads()]), FakeTensorMode():
        return {case: _call(device, operator, types) for case, types in _CASES.items()}


@contextmanager
def _recording(namespace: str, operators: list[Any]) -> Iterator[None]:
    """Replaces the autograd kernels of these operators by recording ones, until the context ends."""
    # PyTorch warns if the backend has an autograd kernel, which is restored at the end of the context.
    with warnings.catch_warnings(), torch.library._scoped_library(namespace, "IMPL") as library:
        warnings.simplefilter("ignore")
        for operator in operators:
            library.impl(operator, _recorder(operator._schema), "AutogradPrivateUse1", allow_override=True)
        yield


def _recorder(schema: Any) -> Callable[..., NoReturn]:
    called = f"{schema.name}.{schema.overload_name}".removesuffix(".")

    def kernel(*args: Any, **kwargs: Any) -> NoReturn:
        raise _ReachedError(called, list(_flat([*args, *kwargs.values()])))

    return kernel


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


def _call(device: ProbedDevice, operator: Any, types: tuple[torch.dtype, ...]) -> dict[str, Any]:
    endless = itertools.cycle(types)
    made: list[str] = []

    def tensor() -> torch.Tensor:
        result = torch.empty(1, dtype=next(endless), device=device.first)
        made.append(str(result.dtype))
        return result

    arguments = {
        argument.name: _value(str(argument.type), tensor)
        for argument in operator._schema.arguments
        if not argument.has_default_value()
    }
    if not made:
        raise CannotCheck("the operator takes no tensor, so that no rule applies")
    try:
        with _autocast(device.name):
            operator(**arguments)
    except _ReachedError as reached:
        return {"given": made, "called": reached.called, "types": reached.types, "dtypes": reached.dtypes}
    except Exception as error:
        return {"given": made, "error": first_line(error)}
    return {"given": made}


def _value(kind: str, tensor: Callable[[], torch.Tensor]) -> Any:
    if "Tensor" in kind:
        return [tensor(), tensor()] if kind.startswith("List") else tensor()
    if kind.startswith("Optional["):
        return None
    if kind in _VALUES:
        return _VALUES[kind]
    raise CannotCheck(f"no value of type {kind} is known for a call of the operator")


@contextmanager
def _autocast(device: str) -> Iterator[None]:
    """Enables autocast to float16. torch.autocast would disable itself if the backend does not list the dtype."""
    before = torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)
    torch.set_autocast_dtype(device, torch.float16)
    torch.set_autocast_enabled(device, True)
    try:
        yield
    finally:
        torch.set_autocast_dtype(device, before[0])
        torch.set_autocast_enabled(device, before[1])
