# SPDX-License-Identifier: BSD-3-Clause
"""Records a program: each operator call with its work (FLOP and bytes) and its nn.Module, and the tensors' memory.

The program usually runs on PyTorch's device ``meta``, where operators compute nothing and allocate no memory. So
recording takes seconds for a model of any size.
"""

from __future__ import annotations

import sys
import threading
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
from openreg_predict.work import NOTHING, OperatorWork, describe, name_of, tensors

# Device allocators round sizes up to a multiple of this number of bytes.
GRANULE = 512
# The operators that read values of a tensor on the host. The host waits for the tasks that compute the tensor.
_VALUE_READERS = ("aten::_local_scalar_dense", "aten::equal")


class TraceError(RuntimeError):
    """An error of a program that cannot be recorded. The message names the operator and a workaround."""


@dataclass(frozen=True)
class OperatorCall:
    """A recorded operator call.

    ``module`` is the name of the innermost module that made the call, or "Global". ``is_on_host`` is True if all
    tensors are on the CPU. ``leaves_device`` is True if values go from the device to the host, and ``waits`` if
    the host then waits for them.
    """

    name: str
    work: OperatorWork
    module: str
    is_backward: bool
    is_on_host: bool = False
    leaves_device: bool = False
    waits: bool = False


@dataclass
class Program:
    """A recorded program.

    ``peak`` is the highest number of bytes of device tensors while the program was recorded. ``kept`` is their number
    of bytes at its end.
    """

    calls: list[OperatorCall] = field(default_factory=list)
    peak: int = 0
    kept: int = 0
    is_training: bool = False
    parameters: int = 0  # bytes of the parameters that require gradients
    notes: list[str] = field(default_factory=list)  # limits of the recording, which reports print

    def without_rule(self) -> list[str]:
        """Returns the names of the unknown operators, whose work is counted as elementwise, one item per call."""
        return [call.name for call in self.calls if not call.work.is_known]


class Memory:
    """A count of the bytes of all live storages of one device type, rounded as a caching allocator rounds them.

    Thread-safe.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        # Reentrant: a collection of garbage during track() may free another storage.
        self._lock = threading.RLock()
        self._sizes: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.now = 0
        self.peak = 0

    def track(self, tensor: Tensor) -> None:
        """Counts the storage of a tensor until the storage is freed. A storage counts once, whatever views it has."""
        if tensor.device.type != self._device or tensor.layout != torch.strided:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        size = -(-storage.nbytes() // GRANULE) * GRANULE
        with self._lock:
            tracked = self._sizes.get(key)
            if tracked is not None:
                self._add(size - tracked[1])  # the storage may have been resized
                self._sizes[key] = (tracked[0], size)
                return
            self._sizes[key] = (weakref.ref(storage, lambda _: self._forget(key)), size)
            self._add(size)

    def _forget(self, key: int) -> None:
        with self._lock:
            _, size = self._sizes.pop(key)
            self._add(-size)

    def _add(self, size: int) -> None:
        self.now += size
        self.peak = max(self.peak, self.now)


class Recorder(TorchDispatchMode):
    """A dispatch mode that records every operator call below autograd, also on autograd's threads.

    Autograd has a thread for each device, so calls may be recorded at the same time.
    ``assume`` replaces each value that the program reads from a tensor on ``meta``. Without it such a read raises
    :class:`TraceError`. The index of a call is its position in ``calls``.
    """

    def __init__(self, memory: Memory | None = None, assume: float | None = None) -> None:
        super().__init__()
        self.calls: list[OperatorCall] = []
        self.parameters: dict[int, int] = {}
        self.memory = memory
        self._assume = assume
        self._tracker = ModuleTracker()
        self._lock = threading.Lock()  # of the next index

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
        """Runs the operator and records the call."""
        kwargs = kwargs or {}
        name = name_of(func)
        operands = tensors((args, kwargs))
        is_meta = any(tensor.device.type == "meta" for tensor in operands)
        with self._lock:
            index = len(self.calls)
            self.calls.append(OperatorCall(name, NOTHING, "", False))  # reserves the index while the operator runs
        self.before_call(index, func, args, kwargs)
        try:
            if is_meta and name in _VALUE_READERS:
                result: Any = self._assumed_value(name, operands)
            elif is_meta and _is_copy_to_host(name, operands, kwargs):
                result = self._assumed_copy(name, operands[0])
            else:
                result = _run(func, name, args, kwargs, is_meta)
        finally:
            self.after_call(index)
        self.calls[index] = self.describe(func, args, kwargs, result)
        self.after_describe(index)
        if self.memory is not None:
            for tensor in (*operands, *tensors(result)):
                self.memory.track(tensor)
                if isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad:
                    self.parameters[id(tensor)] = tensor.numel() * tensor.element_size()
        return result

    def before_call(self, index: int, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Runs on the calling thread before the operator of call ``index``. Subclasses override it."""

    def after_call(self, index: int) -> None:
        """Runs on the calling thread after the operator of call ``index`` has returned or raised."""

    def after_describe(self, index: int) -> None:
        """Runs after ``calls[index]`` contains the complete call; not if the operator raised."""

    def describe(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> OperatorCall:
        """Returns the record of an operator call with its arguments and result."""
        name = name_of(func)
        operands, results = tensors((args, kwargs)), tensors(result)
        before, after = ({tensor.device.type for tensor in side} for side in (operands, results))
        is_on_host = bool(operands or results) and (before | after) <= {"cpu"}
        reads_values = name in _VALUE_READERS and not is_on_host
        leaves = reads_values or (after == {"cpu"} and before != {"cpu"})
        if name == "aten::copy_":  # its first operand is the target
            leaves = operands[0].device.type == "cpu" and before != {"cpu"}
        waits = reads_values or (
            leaves and not kwargs.get("non_blocking", name == "aten::copy_" and args[2:3] == (True,))
        )
        work = describe(func, args, kwargs, result)
        # NAMES has the names that reports show for the operators of fused().
        return OperatorCall(
            NAMES.get(name, name), work, self._module(), bool(self._tracker.is_bw), is_on_host, leaves, waits
        )

    def _module(self) -> str:
        """Returns the innermost module that is running, which has the longest name, or "Global"."""
        return max(self._tracker.parents, key=lambda name: (name != "Global", len(name)), default="Global")

    def _assumed_value(self, name: str, operands: list[Tensor]) -> Any:
        """Returns ``assume`` as the result of an operator that reads a value. Raises TraceError if there is none."""
        if self._assume is None:
            raise TraceError(_missing_values(name, operands[0]))
        return bool(self._assume) if operands[0].dtype == torch.bool or name == "aten::equal" else self._assume

    def _assumed_copy(self, name: str, source: Tensor) -> Tensor:
        """Returns a CPU tensor filled with ``assume``, for a copy to the CPU such as that of ``tolist()``.

        Raises TraceError if there is no ``assume``.
        """
        if self._assume is None:
            raise TraceError(_missing_values(name, source))
        return torch.full(source.shape, self._assume, dtype=source.dtype, device="cpu")


def _missing_values(name: str, tensor: Tensor) -> str:
    """Returns the message for an operator that reads values of a tensor on meta."""
    return (
        f"{name} needs the values of a tensor of the shape {tuple(tensor.shape)}, but tensors on meta have no values. "
        "Remove .item(), .tolist(), float() and print() of tensors from the step, pass a number that replaces all of "
        "these values (--assume 1.0), or run the program on the device itself (--on openreg)"
    )


def _is_copy_to_host(name: str, operands: list[Tensor], kwargs: Mapping[str, Any]) -> bool:
    """Returns True if the operator copies a tensor from ``meta`` to the CPU, which has no values to copy."""
    target = kwargs.get("device")
    is_to_cpu = target is not None and torch.device(target).type == "cpu"
    return name == "aten::_to_copy" and is_to_cpu and operands[0].is_meta


def _run(func: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_meta: bool) -> Any:
    """Runs an operator. Raises TraceError if it cannot run on ``meta``."""
    try:
        result = run_on_meta(name, args) if is_meta else None  # None: PyTorch's own meta function runs
        return func(*args, **kwargs) if result is None else result
    except (NotImplementedError, RuntimeError) as error:
        if not is_meta:
            raise
        text = str(error)
        on_device = "or run the program on the device itself (--on openreg)"
        if "nonzero" in text or "data-dependent" in text or "DynamicOutputShape" in type(error).__name__:
            raise TraceError(
                f"{name} cannot run on meta: the shape of its result depends on data. Use an operator of fixed "
                f"shape (torch.where instead of a mask as index), {on_device}"
            ) from error
        if isinstance(error, NotImplementedError):
            raise TraceError(
                f"{name} cannot run on meta: no meta function is registered; register one with "
                f"torch.library.register_fake({name!r}), {on_device}"
            ) from error
        raise


@contextmanager
def recording(device: str = "meta", assume: float | None = None) -> Iterator[tuple[Recorder, Memory]]:
    """Records the operators that run in the context. ``memory`` counts the tensors of the device type ``device``."""
    memory = Memory(device)
    recorder = Recorder(memory, assume)
    # fused() keeps operators whole that accelerators run as one operator, but that PyTorch decomposes on meta.
    with fused(), _list_optimizers_on_meta(), recorder:
        yield recorder, memory


@contextmanager
def _list_optimizers_on_meta() -> Iterator[None]:
    """Makes optimizers use their foreach and fused implementations for parameters on meta, as on accelerators."""
    names = ("_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices")
    # Each optimizer module imports these functions under its own global name, so all of them are replaced.
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
    """Records one call of ``step``, whose tensors are on ``meta``, and returns the program.

    ``warm_up`` calls run before it, because the first step allocates gradients and the state of an optimizer. A storage
    allocated outside of ``step`` counts as soon as an operator uses it. Raises :class:`TraceError` for an operator that
    cannot run on ``meta``.
    """
    with recording("meta", assume) as (recorder, memory):
        for _ in range(warm_up):
            step()
        recorder.calls.clear()
        memory.peak = memory.now
        step()
    return collect(recorder, memory)


def collect(recorder: Recorder, memory: Memory) -> Program:
    """Returns the recorded calls and memory as a program."""
    calls = list(recorder.calls)
    is_training = any(call.is_backward for call in calls)
    return Program(calls, memory.peak, memory.now, is_training, sum(recorder.parameters.values()))
