# SPDX-License-Identifier: BSD-3-Clause
"""Records what a program calls: each operator with its work and module, and the memory that its tensors take.

On ``meta`` nothing is computed and no memory is needed, so a model of any size takes seconds.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.module_tracker import ModuleTracker

from openreg_predict.fused import NAMES, fused, run_on_meta
from openreg_predict.work import NOTHING, Work, describe, name_of, tensors

# Allocators of devices round up to this.
GRANULE = 512
# The host waits for what they read.
_VALUE_READERS = ("aten::_local_scalar_dense", "aten::equal")


class TraceError(RuntimeError):
    """The program cannot be recorded, with the operator and the way out."""


@dataclass(frozen=True)
class Call:
    """An operator that was called: its work, the module that called it, and whether in the backward pass.

    ``is_on_host`` where all tensors were the CPU's, ``leaves_device`` where the result alone is, and ``waits`` where
    the host waits for it.
    """

    name: str
    work: Work
    module: str
    is_backward: bool
    is_on_host: bool = False
    leaves_device: bool = False
    waits: bool = False


@dataclass
class Program:
    """What was recorded. Bytes are of the device's tensors; the peak is that of the recorded part."""

    calls: list[Call] = field(default_factory=list)
    peak: int = 0
    kept: int = 0
    is_training: bool = False
    parameters: int = 0  # bytes of those that have gradients
    notes: list[str] = field(default_factory=list)  # what a reader has to know of how it was recorded

    def without_rule(self) -> list[str]:
        """Operators that no rule describes, as often as they were called."""
        return [call.name for call in self.calls if not call.work.has_rule]


class Memory:
    """Bytes of living storages of a device type, as a caching allocator counts them."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._sizes: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.now = 0
        self.peak = 0

    def see(self, tensor: Tensor) -> None:
        """Counts the storage of a tensor, once, until it dies."""
        if tensor.device.type != self._device or tensor.layout != torch.strided:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        size = -(-storage.nbytes() // GRANULE) * GRANULE
        known = self._sizes.get(key)
        if known is not None:
            self._add(size - known[1])  # it may have been resized
            self._sizes[key] = (known[0], size)
            return
        self._sizes[key] = (weakref.ref(storage, lambda _: self._forget(key)), size)
        self._add(size)

    def _forget(self, key: int) -> None:
        _, size = self._sizes.pop(key)
        self._add(-size)

    def _add(self, size: int) -> None:
        self.now += size
        self.peak = max(self.peak, self.now)


class Recorder(TorchDispatchMode):
    """Notes every operator below autograd while it is entered, on all threads that autograd uses.

    ``assume`` answers programs that ask for the value of a tensor which has none; without it they are refused.
    """

    def __init__(self, memory: Memory | None = None, assume: float | None = None) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.parameters: dict[int, int] = {}
        self.memory = memory
        self._assume = assume
        self._tracker = ModuleTracker()

    def __enter__(self) -> Recorder:
        self._tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        super().__exit__(*details)
        self._tracker.__exit__(*details)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs the operator and notes it."""
        kwargs = kwargs or {}
        name = name_of(func)
        given = tensors((args, kwargs))
        is_meta = any(tensor.device.type == "meta" for tensor in given)
        number = len(self.calls)
        self.calls.append(Call(name, NOTHING, "", False))  # its place, whatever other threads call meanwhile
        self.begin(number, func, args, kwargs)
        try:
            if is_meta and name in _VALUE_READERS:
                result: Any = self._answer(name, given)
            elif is_meta and _leaves_meta(name, given, kwargs):
                result = self._copy_to_host(name, given[0])
            else:
                result = _run(func, name, args, kwargs, is_meta)
        finally:
            self.end(number)
        self.calls[number] = self.describe(func, args, kwargs, result)
        self.described(number)
        if self.memory is not None:
            for tensor in (*given, *tensors(result)):
                self.memory.see(tensor)
                if isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad:
                    self.parameters[id(tensor)] = tensor.numel() * tensor.element_size()
        return result

    def begin(self, number: int, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A call is about to run, on this thread; for subclasses."""

    def end(self, number: int) -> None:
        """It has run, or raised."""

    def described(self, number: int) -> None:
        """Its place in ``calls`` says what it did."""

    def describe(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Call:
        """The call of an operator."""
        name = name_of(func)
        given, made = tensors((args, kwargs)), tensors(result)
        before, after = ({tensor.device.type for tensor in side} for side in (given, made))
        is_on_host = bool(given or made) and (before | after) <= {"cpu"}
        reads_values = name in _VALUE_READERS and not is_on_host
        leaves = reads_values or (after == {"cpu"} and before != {"cpu"})
        if name == "aten::copy_":  # the target is the first of the operands
            leaves = given[0].device.type == "cpu" and before != {"cpu"}
        waits = reads_values or (
            leaves and not kwargs.get("non_blocking", name == "aten::copy_" and args[2:3] == (True,))
        )
        work = describe(func, args, kwargs, result)
        return Call(NAMES.get(name, name), work, self._module(), bool(self._tracker.is_bw), is_on_host, leaves, waits)

    def _module(self) -> str:
        return max(self._tracker.parents, key=lambda name: (name != "Global", len(name)), default="Global")

    def _answer(self, name: str, given: list[Tensor]) -> Any:
        if self._assume is None:
            raise TraceError(_no_values(name, given[0]))
        return bool(self._assume) if given[0].dtype == torch.bool or name == "aten::equal" else self._assume

    def _copy_to_host(self, name: str, source: Tensor) -> Tensor:
        """Numbers of a list, say, which programs read from a tensor."""
        if self._assume is None:
            raise TraceError(_no_values(name, source))
        return torch.full(source.shape, self._assume, dtype=source.dtype, device="cpu")


def _no_values(name: str, tensor: Tensor) -> str:
    return (
        f"{name} needs the values of a tensor of the shape {tuple(tensor.shape)}, and on meta there are none. Leave "
        ".item(), .tolist(), float() and print() of tensors out of the step, pass a number that replaces all of them "
        "(--assume 1.0), or run the program on the device itself (--on openreg)"
    )


def _leaves_meta(name: str, given: list[Tensor], kwargs: Mapping[str, Any]) -> bool:
    target = kwargs.get("device")
    return name == "aten::_to_copy" and target is not None and torch.device(target).type == "cpu" and given[0].is_meta


def _run(func: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_meta: bool) -> Any:
    try:
        known = run_on_meta(name, args) if is_meta else None
        return func(*args, **kwargs) if known is None else known
    except (NotImplementedError, RuntimeError) as error:
        if not is_meta:
            raise
        text = str(error)
        on_device = "or run the program on the device itself (--on openreg)"
        if "nonzero" in text or "data-dependent" in text or "DynamicOutputShape" in type(error).__name__:
            raise TraceError(
                f"{name} cannot run on meta: the shape of its result depends on data. Take a form of fixed shape "
                f"(torch.where instead of a mask as index), {on_device}"
            ) from error
        if isinstance(error, NotImplementedError):
            raise TraceError(
                f"{name} cannot run on meta: no meta function is registered; register one with "
                f"torch.library.register_fake({name!r}), {on_device}"
            ) from error
        raise


@contextmanager
def recording(device: str = "meta", assume: float | None = None) -> Iterator[tuple[Recorder, Memory]]:
    """Records what runs inside, tensors of ``device`` being those of the chip."""
    memory = Memory(device)
    recorder = Recorder(memory, assume)
    with fused(), _optimizers_of_lists(), recorder:
        yield recorder, memory


@contextmanager
def _optimizers_of_lists() -> Iterator[None]:
    """Lets optimizers take parameters of meta in lists, and with ``fused=True`` as one kernel, as on accelerators."""
    names = ("_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices")
    # Modules of optimizers have names of their own for these functions.
    places = [
        (module, name, getattr(module, name))
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith(("torch.optim", "torch.utils._foreach_utils"))
        for name in names
        if hasattr(module, name)
    ]
    for module, name, original in places:
        setattr(module, name, lambda original=original: [*original(), "meta"])
    try:
        yield
    finally:
        for module, name, original in places:
            setattr(module, name, original)


def trace(step: Callable[[], object], assume: float | None = None, warm_up: int = 1) -> Program:
    """The program of one call of ``step``, whose tensors are on ``meta``.

    The calls before it make what a first step makes: gradients, and the state of an optimizer. Storages that exist
    already count when an operator meets them.
    """
    with recording("meta", assume) as (recorder, memory):
        for _ in range(warm_up):
            step()
        recorder.calls.clear()
        memory.peak = memory.now
        step()
    return collect(recorder, memory)


def collect(recorder: Recorder, memory: Memory) -> Program:
    """The program that a recorder has."""
    calls = list(recorder.calls)
    is_training = any(call.is_backward for call in calls)
    return Program(calls, memory.peak, memory.now, is_training, sum(recorder.parameters.values()))
