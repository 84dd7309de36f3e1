# SPDX-License-Identifier: BSD-3-Clause
"""Captures and replays the launches of a compiled graph, for ``torch.compile(mode="reduce-overhead")``.

The generated module wraps its function with ``graphify()``. For each combination of sizes and stream, the first call
runs the function, the second captures it into a device graph (``torch.openreg.Graph``), and further calls replay that.
PyTorch's own recordings, ``torch/_inductor/cudagraph_trees.py``, are for CUDA alone up to torch 2.15, and a backend
cannot register another device with them.

A recording is a device graph with the addresses of its inputs. An input whose address
differs from that of the first call is copied into a buffer before each replay; other inputs are not copied.
Results are not copied: they are in the graph's memory. A graph is not replayed while a storage of its last results is
still referenced.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from openreg_runtime import openreg

_log = logging.getLogger(__name__)

# The most recordings of one compiled graph. If there are as many, further calls run without one.
_MOST_RECORDINGS = 8
# The most combinations of sizes and stream with a call history. Calls with further ones run without a recording.
_MOST_KEYS = 64

# The function of a generated module: it takes the inputs and returns the outputs.
CompiledFunction = Callable[[list[Any]], Any]


@dataclass
class _InputAlias:
    """An output that is an input or a view of one. ``number`` is the index of the input.

    ``distance`` is the number of bytes from the first element of the input to that of the view, because the input may
    begin anywhere in its storage, and the view may have another dtype.
    """

    number: int
    is_itself: bool
    dtype: torch.dtype
    size: torch.Size
    stride: tuple[int, ...]
    distance: int

    def resolve(self, inputs: Sequence[Any]) -> Tensor:
        base: Tensor = inputs[self.number]
        if self.is_itself:
            return base
        offset = (_first_byte(base) + self.distance) // self.dtype.itemsize
        view = torch.empty(0, dtype=self.dtype, device=base.device)
        return view.set_(base.untyped_storage(), offset, self.size, self.stride)


@dataclass
class _GraphOutput:
    """An output in the graph's memory, or one that is no tensor."""

    value: Any

    def resolve(self, inputs: Sequence[Any]) -> Any:  # noqa: ARG002
        return self.value.detach() if isinstance(self.value, Tensor) else self.value


def _first_byte(tensor: Tensor) -> int:
    """Returns the number of the byte of its storage at which a tensor begins."""
    return int(tensor.storage_offset()) * tensor.element_size()


def _output(value: Any, inputs: Sequence[Any]) -> _InputAlias | _GraphOutput:
    if isinstance(value, Tensor):
        for number, base in enumerate(inputs):
            if isinstance(base, Tensor) and base.untyped_storage()._cdata == value.untyped_storage()._cdata:
                distance = _first_byte(value) - _first_byte(base)
                return _InputAlias(number, value is base, value.dtype, value.size(), value.stride(), distance)
    return _GraphOutput(value)


def _distinct_elements(tensor: Tensor) -> Tensor:
    """Returns the elements of a tensor without the repetitions of ``expand()``, into which ``copy_()`` is rejected."""
    for dim, (size, stride) in enumerate(zip(tensor.size(), tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


class _Recording:
    """A device graph captured from one call, with the input addresses that it reads and its outputs.

    ``changing`` are the numbers of the inputs that are copied into buffers before each replay. The graph reads the
    other tensors at ``addresses``.
    """

    def __init__(
        self, call: CompiledFunction, inputs: list[Any], addresses: dict[int, int], changing: set[int], device: int
    ) -> None:
        captured = list(inputs)
        for number in changing:
            # The generated code requires the strides of the input; empty_like() keeps only those of dense tensors.
            like: Tensor = inputs[number]
            captured[number] = torch.empty_strided(like.size(), like.stride(), dtype=like.dtype, device=like.device)
        self._copied = {number: _distinct_elements(captured[number]) for number in sorted(changing)}
        self._addresses = {number: address for number, address in addresses.items() if number not in changing}
        self._graph = openreg.Graph()
        with openreg.device(device), openreg.graph(self._graph):
            results = call(list(captured))
        self._outputs = [_output(value, captured) for value in results]
        del captured, results
        ours = [one.value for one in self._outputs if isinstance(one, _GraphOutput) and isinstance(one.value, Tensor)]
        storages = {value.untyped_storage()._cdata for value in ours}
        # Any higher use count means that a result is referenced outside of this object.
        self._uses_of_ours = {storage: torch._C._storage_Use_Count(storage) for storage in storages}

    def matches(self, addresses: dict[int, int]) -> bool:
        """Returns True if the inputs that are not copied still have the addresses that the graph reads."""
        return all(addresses[number] == address for number, address in self._addresses.items())

    def is_in_use(self) -> bool:
        """Returns True if a result of the last replay, or a view of one, is still referenced elsewhere."""
        return any(torch._C._storage_Use_Count(key) > uses for key, uses in self._uses_of_ours.items())

    def replay(self, inputs: Sequence[Any]) -> list[Any]:
        """Replays the graph on the current stream and returns its results, which the next replay overwrites."""
        if self._copied:
            sources = [_distinct_elements(inputs[number]) for number in self._copied]
            torch._foreach_copy_(list(self._copied.values()), sources)
        # The graph reads new tensors at the addresses of the captured ones, which matches() has compared.
        self._graph.replay()  # openreg-sanitizer: ignore[graph-input]
        return [output.resolve(inputs) for output in self._outputs]


@dataclass
class _CallHistory:
    """The calls with one combination of sizes and stream."""

    addresses: dict[int, int]  # number of an input: its address in the first call
    changing: set[int] = field(default_factory=set)  # numbers of the inputs that have had another address since
    recordings: list[_Recording] = field(default_factory=list)


class _GraphedFunction:
    """The function of a generated module, captured and replayed.

    Thread-safe: while one thread is in a call, calls of other threads run without a recording.
    """

    def __init__(self, call: CompiledFunction, device: int, mutated: frozenset[int]) -> None:
        self._call = call
        self._device = device
        self._mutated = mutated
        self._lock = threading.Lock()
        self._calls: dict[Any, _CallHistory] = {}
        self._is_disabled = False

    def __call__(self, inputs: list[Any]) -> Any:
        if self._is_disabled or self._is_capturing() or not self._lock.acquire(blocking=False):
            return self._call(inputs)
        try:
            recording = self._recording(inputs)
            if recording is None:
                return self._call(inputs)
            replayed = list(inputs)
            inputs.clear()  # the boxed calling convention: the callee releases the inputs
            return recording.replay(replayed)
        finally:
            self._lock.release()

    def _is_capturing(self) -> bool:
        """Returns True if the program captures the stream of the call, whose device need not be current."""
        with openreg.device(self._device):
            return openreg.is_current_stream_capturing()

    def _recording(self, inputs: list[Any]) -> _Recording | None:
        """Returns a recording that can be replayed now, or None if the call has to run without one."""
        key = (
            openreg.current_stream(self._device),
            *(value for value in inputs if not isinstance(value, Tensor)),
        )
        addresses = {number: value.data_ptr() for number, value in enumerate(inputs) if isinstance(value, Tensor)}
        calls = self._calls.get(key)
        if calls is None:
            if len(self._calls) < _MOST_KEYS:
                self._calls[key] = _CallHistory(addresses)
            return None
        moved = {number for number, address in addresses.items() if calls.addresses[number] != address}
        if moved & self._mutated:
            return None  # the function writes to this input, so a copy of it would not do
        calls.changing |= moved
        # A recording that reads a former address of an input cannot be replayed any more.
        calls.recordings = [recording for recording in calls.recordings if recording.matches(addresses)]
        for recording in calls.recordings:
            if not recording.is_in_use():
                return recording
        if sum(len(one.recordings) for one in self._calls.values()) >= _MOST_RECORDINGS:
            return None
        try:
            recording = _Recording(self._call, inputs, addresses, calls.changing, self._device)
        except torch.OutOfMemoryError as error:
            _log.info("a call of a compiled graph runs without a device graph, because its capture failed: %s", error)
            return None  # a later call may find enough memory
        except (RuntimeError, AssertionError) as error:  # generated code checks sizes and strides by assertions
            _log.info("a compiled graph runs without a device graph, because its capture failed: %s", error)
            self._is_disabled = True
            return None
        calls.recordings.append(recording)
        return recording


def graphify(call: CompiledFunction, device: int, mutated: Sequence[int]) -> CompiledFunction:
    """Returns a function that captures and replays ``call``, which uses one device.

    ``mutated`` are the numbers of the inputs that it writes to.
    """
    return _GraphedFunction(call, device, frozenset(mutated))
