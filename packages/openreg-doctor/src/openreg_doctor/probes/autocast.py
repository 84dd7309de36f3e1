# SPDX-License-Identifier: BSD-3-Clause
"""Observes what an operator's autocast rule does: which overload it calls in the end, with which types.

A rule calls the operator again, which gets to its autograd kernel. For the time of the observation that kernel is one
that notes what it gets and raises, and tensors have no data (FakeTensor): neither kernels nor sensible arguments are
needed, and nothing is computed.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch

from .device import Device, has_kernel
from .request import Unseen

# The types of an operator's tensors, repeated as often as it has tensors.
_CASES = {
    "float32": (torch.float32,),
    "float16": (torch.float16,),
    "mixed": (torch.float16, torch.float32),
}
# Any value that the dispatcher takes, by the type's name in a schema.
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
    """Raised in place of running an autograd kernel: ``called``, the overload, and ``types``, of what it was given."""

    def __init__(self, called: str, values: list[Any]) -> None:
        super().__init__(called)
        self.called = called
        self.types = [str(value.dtype) for value in values if isinstance(value, torch.Tensor)]
        self.dtypes = [str(value) for value in values if isinstance(value, torch.dtype)]


def observe(device: Device, name: str) -> dict[str, dict[str, Any]]:
    """Case of operands -> what a call under autocast to float16 came to; empty for an operator without a rule.

    That is ``called``, an overload, with ``types`` of its tensors and ``dtypes`` that were named to it; or ``error``,
    what the rule raised; or nothing, if the rule is content without the operator. ``given`` has the tensors' types of
    the call itself. Raises Unseen where no arguments can be made.
    """
    if not has_kernel(name, "AutocastPrivateUse1"):
        return {}
    from torch._subclasses.fake_tensor import FakeTensorMode

    namespace, _, full = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), full.partition(".")[0])
    operator = getattr(packet, full.partition(".")[2] or "default")
    # A rule may call another overload than its own: those of `norm` that have no argument `dtype` do.
    with _noting(namespace, [getattr(packet, overload) for overload in packet.overloads()]), FakeTensorMode():
        return {case: _call(device, operator, types) for case, types in _CASES.items()}


@contextmanager
def _noting(namespace: str, operators: list[Any]) -> Iterator[None]:
    """Puts kernels that note in place of the autograd kernels of these operators, and takes them away again."""
    # A backend may have an autograd kernel of its own, which comes back; until then PyTorch warns.
    with warnings.catch_warnings(), torch.library._scoped_library(namespace, "IMPL") as library:
        warnings.simplefilter("ignore")
        for operator in operators:
            library.impl(operator, _note(operator._schema), "AutogradPrivateUse1", allow_override=True)
        yield


def _note(schema: Any) -> Callable[..., NoReturn]:
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


def _call(device: Device, operator: Any, types: tuple[torch.dtype, ...]) -> dict[str, Any]:
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
        raise Unseen("it takes no tensor, without which no rule applies")
    try:
        with _autocast(device.name):
            operator(**arguments)
    except _ReachedError as note:
        return {"given": made, "called": note.called, "types": note.types, "dtypes": note.dtypes}
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else ""
        return {"given": made, "error": f"{type(error).__name__}: {text}"}
    return {"given": made}


def _value(kind: str, tensor: Callable[[], torch.Tensor]) -> Any:
    if "Tensor" in kind:
        return [tensor(), tensor()] if kind.startswith("List") else tensor()
    if kind.startswith("Optional["):
        return None
    if kind in _VALUES:
        return _VALUES[kind]
    raise Unseen(f"no value of type {kind} to call it with")


@contextmanager
def _autocast(device: str) -> Iterator[None]:
    """Autocast to float16; torch.autocast would disable itself where the backend does not list the type."""
    before = torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)
    torch.set_autocast_dtype(device, torch.float16)
    torch.set_autocast_enabled(device, True)
    try:
        yield
    finally:
        torch.set_autocast_dtype(device, before[0])
        torch.set_autocast_enabled(device, before[1])
