# SPDX-License-Identifier: BSD-3-Clause
"""Device graphs for ``torch.compile(mode="reduce-overhead")``: a compiled graph's launches, recorded and replayed.

The generated module wraps its function with ``replayed()``. The first call runs it, the second records it, further ones
replay. Nothing is copied but inputs that come at another address than in the call before; results are not copied at
all: they stand in the recording's own memory, and as long as one of them is alive, seen by its storage, that recording
does not run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from openreg_runtime import openreg

_log = logging.getLogger(__name__)

# Of one compiled graph: with more, calls run without a recording.
_MOST_RECORDINGS = 8
# Combinations of sizes and stream of which anything is remembered.
_MOST_KEYS = 64

Call = Callable[[list[Any]], Any]


@dataclass
class _OfInput:
    """An output that is an input, or a view of one."""

    number: int
    is_itself: bool
    size: torch.Size
    stride: tuple[int, ...]
    offset: int | torch.SymInt

    def take(self, inputs: Sequence[Any]) -> Tensor:
        given: Tensor = inputs[self.number]
        return given if self.is_itself else given.as_strided(self.size, self.stride, self.offset)


@dataclass
class _InMemory:
    """An output in the recording's memory, or one that is no tensor."""

    value: Any

    def take(self, inputs: Sequence[Any]) -> Any:  # noqa: ARG002
        return self.value.detach() if isinstance(self.value, Tensor) else self.value


def _result(value: Any, inputs: Sequence[Any]) -> _OfInput | _InMemory:
    if isinstance(value, Tensor):
        for number, given in enumerate(inputs):
            if isinstance(given, Tensor) and given.untyped_storage()._cdata == value.untyped_storage()._cdata:
                return _OfInput(number, value is given, value.size(), value.stride(), value.storage_offset())
    return _InMemory(value)


class _Recording:
    """A graph with the addresses that it reads and the results that it writes."""

    def __init__(self, call: Call, inputs: list[Any], changing: set[int], device: int) -> None:
        self._copied = {number: torch.empty_like(inputs[number]) for number in sorted(changing)}
        given = [self._copied.get(number, value) for number, value in enumerate(inputs)]
        self._addresses = {
            number: value.data_ptr()
            for number, value in enumerate(inputs)
            if isinstance(value, Tensor) and number not in changing
        }
        self._graph = openreg.Graph()
        with openreg.device(device), openreg.graph(self._graph):
            results = call(list(given))
        self._results = [_result(value, given) for value in results]
        del given, results
        ours = [one.value for one in self._results if isinstance(one, _InMemory) and isinstance(one.value, Tensor)]
        storages = {value.untyped_storage()._cdata for value in ours}
        self._uses_of_ours = {storage: torch._C._storage_Use_Count(storage) for storage in storages}

    def moved(self, inputs: Sequence[Any]) -> set[int]:
        """The inputs that are read where they lie, and now lie elsewhere."""
        return {number for number, address in self._addresses.items() if inputs[number].data_ptr() != address}

    def is_in_use(self) -> bool:
        """Whether somebody still has a result of the last replay, or a view of one."""
        return any(torch._C._storage_Use_Count(key) > uses for key, uses in self._uses_of_ours.items())

    def replay(self, inputs: Sequence[Any]) -> list[Any]:
        """Runs it on the current stream, and gives its results."""
        if self._copied:
            torch._foreach_copy_(list(self._copied.values()), [inputs[number] for number in self._copied])
        self._graph.replay()
        return [result.take(inputs) for result in self._results]


class _Replayed:
    """The function of a generated module; safe to be called by several threads."""

    def __init__(self, call: Call, device: int, mutated: frozenset[int]) -> None:
        self._call = call
        self._device = device
        self._mutated = mutated
        self._lock = threading.Lock()
        self._seen: dict[Any, dict[int, int]] = {}  # addresses of the first call
        self._changing: dict[Any, set[int]] = {}
        self._recordings: dict[Any, list[_Recording]] = {}
        self._is_refused = False

    def __call__(self, inputs: list[Any]) -> Any:
        if self._is_refused or openreg.is_current_stream_capturing() or not self._lock.acquire(blocking=False):
            return self._call(inputs)
        try:
            recording = self._recording(inputs)
            if recording is None:
                return self._call(inputs)
            given = list(inputs)
            inputs.clear()
            return recording.replay(given)
        finally:
            self._lock.release()

    def _recording(self, inputs: list[Any]) -> _Recording | None:
        """One that can be replayed now; None where the call has to run as it is."""
        key = (
            openreg.current_stream(self._device),
            *(value for value in inputs if not isinstance(value, Tensor)),
        )
        addresses = {number: value.data_ptr() for number, value in enumerate(inputs) if isinstance(value, Tensor)}
        if key not in self._seen:
            if len(self._seen) < _MOST_KEYS:
                self._seen[key] = addresses
            return None
        before = self._seen[key]
        changing = self._changing.setdefault(key, set())
        changing |= {number for number, address in addresses.items() if before[number] != address}
        if changing & self._mutated:
            return None  # what it writes to has to be where the caller looks
        recordings = self._recordings.setdefault(key, [])
        # One that reads where an input lay before cannot be used again.
        recordings[:] = [recording for recording in recordings if not recording.moved(inputs)]
        for recording in recordings:
            if not recording.is_in_use():
                return recording
        if sum(map(len, self._recordings.values())) >= _MOST_RECORDINGS:
            return None
        try:
            recordings.append(_Recording(self._call, inputs, changing, self._device))
        except RuntimeError as error:
            _log.info("a compiled graph runs without a device graph: %s", error)
            self._is_refused = True
            return None
        return recordings[-1]


def replayed(call: Call, device: int, mutated: Sequence[int]) -> Call:
    """The same function, recorded and replayed: on one device, with the numbers of the inputs that it writes to."""
    return _Replayed(call, device, frozenset(mutated))
