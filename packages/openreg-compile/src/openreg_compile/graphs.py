# SPDX-License-Identifier: BSD-3-Clause
"""Device graphs for ``torch.compile(mode="reduce-overhead")``: a compiled graph's launches, recorded and replayed.

The generated module wraps its function with ``graphify()``. The first call runs it, the second records it, further ones
replay. Nothing is copied but inputs that come at another address than in the call before; results are not copied at
all: they stand in the recording's own memory, and as long as one of them is alive, seen by its storage, that recording
does not run.
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

# Of one compiled graph: with more, calls run without a recording.
_MOST_RECORDINGS = 8
# Combinations of sizes and stream of which anything is remembered.
_MOST_KEYS = 64

Call = Callable[[list[Any]], Any]


@dataclass
class _InputAlias:
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
class _GraphOutput:
    """An output in the recording's memory, or one that is no tensor."""

    value: Any

    def take(self, inputs: Sequence[Any]) -> Any:  # noqa: ARG002
        return self.value.detach() if isinstance(self.value, Tensor) else self.value


def _result(value: Any, inputs: Sequence[Any]) -> _InputAlias | _GraphOutput:
    if isinstance(value, Tensor):
        for number, given in enumerate(inputs):
            if isinstance(given, Tensor) and given.untyped_storage()._cdata == value.untyped_storage()._cdata:
                return _InputAlias(number, value is given, value.size(), value.stride(), value.storage_offset())
    return _GraphOutput(value)


class _Recording:
    """A graph with the addresses that it reads and the results that it writes."""

    def __init__(
        self, call: Call, inputs: list[Any], addresses: dict[int, int], changing: set[int], device: int
    ) -> None:
        self._copied = {number: torch.empty_like(inputs[number]) for number in sorted(changing)}
        given = [self._copied.get(number, value) for number, value in enumerate(inputs)]
        self._addresses = {number: address for number, address in addresses.items() if number not in changing}
        self._graph = openreg.Graph()
        with openreg.device(device), openreg.graph(self._graph):
            results = call(list(given))
        self._results = [_result(value, given) for value in results]
        del given, results
        ours = [one.value for one in self._results if isinstance(one, _GraphOutput) and isinstance(one.value, Tensor)]
        storages = {value.untyped_storage()._cdata for value in ours}
        self._uses_of_ours = {storage: torch._C._storage_Use_Count(storage) for storage in storages}

    def reads_where(self, addresses: dict[int, int]) -> bool:
        """Whether the inputs that are read where they lie still lie there."""
        return all(addresses[number] == address for number, address in self._addresses.items())

    def is_in_use(self) -> bool:
        """Returns True if a result of the last replay, or a view of one, is still referenced elsewhere."""
        return any(torch._C._storage_Use_Count(key) > uses for key, uses in self._uses_of_ours.items())

    def replay(self, inputs: Sequence[Any]) -> list[Any]:
        """Runs it on the current stream, and gives its results."""
        if self._copied:
            torch._foreach_copy_(list(self._copied.values()), [inputs[number] for number in self._copied])
        self._graph.replay()
        return [result.take(inputs) for result in self._results]


@dataclass
class _CallHistory:
    """What is known of calls with the same sizes on the same stream."""

    addresses: dict[int, int]  # of the first one's inputs, by their numbers
    changing: set[int] = field(default_factory=set)  # inputs that have come from elsewhere since
    recordings: list[_Recording] = field(default_factory=list)


class _GraphedFunction:
    """The function of a generated module; safe to be called by several threads."""

    def __init__(self, call: Call, device: int, mutated: frozenset[int]) -> None:
        self._call = call
        self._device = device
        self._mutated = mutated
        self._lock = threading.Lock()
        self._calls: dict[Any, _CallHistory] = {}
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
        calls = self._calls.get(key)
        if calls is None:
            if len(self._calls) < _MOST_KEYS:
                self._calls[key] = _CallHistory(addresses)
            return None
        calls.changing |= {number for number, address in addresses.items() if calls.addresses[number] != address}
        if calls.changing & self._mutated:
            return None  # what it writes to has to be where the caller looks
        # One that reads where an input lay before cannot be used again.
        calls.recordings = [recording for recording in calls.recordings if recording.reads_where(addresses)]
        for recording in calls.recordings:
            if not recording.is_in_use():
                return recording
        if sum(len(one.recordings) for one in self._calls.values()) >= _MOST_RECORDINGS:
            return None
        try:
            recording = _Recording(self._call, inputs, addresses, calls.changing, self._device)
        except RuntimeError as error:
            _log.info("a compiled graph runs without a device graph: %s", error)
            self._is_refused = True
            return None
        calls.recordings.append(recording)
        return recording


def graphify(call: Call, device: int, mutated: Sequence[int]) -> Call:
    """The same function, recorded and replayed: on one device, with the numbers of the inputs that it writes to."""
    return _GraphedFunction(call, device, frozenset(mutated))
