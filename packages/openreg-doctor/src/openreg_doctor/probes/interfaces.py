# SPDX-License-Identifier: BSD-3-Clause
"""Exercises of C++ interfaces: a Python call for each virtual function that one reaches.

EXERCISES has them by the key of their row in the hook table (hooks.toml). The module ``unreachable`` lists the rows of
the other functions, each with the reason. An interface that is not registered is one fault, not one per function, and
some calls of its functions end the process. So for each group of rows, which is one interface, a call that needs only
the registration runs first.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from .device import ProbedDevice, has_kernel
from .request import CannotCheck

Exercise = Callable[[ProbedDevice], object]

C = torch._C

# By group: a call that fails if the interface is not registered.
REGISTRATION_CALLS: dict[str, Exercise] = {
    "accelerator_hooks": lambda _: C._accelerator_hooks_device_count(),
    "private_use1_hooks": lambda _: C._accelerator_hooks_device_count(),
    "guard": lambda _: C._accelerator_getDeviceIndex(),
    "allocator": lambda device: device.storage(),
    "device_allocator": lambda _: C._accelerator_isAllocatorInitialized(),
    "host_allocator": lambda _: torch.accelerator.empty_host_cache(),
    "caching_host_allocator": lambda _: torch.accelerator.empty_host_cache(),
    "generator": lambda device: torch.Generator(device.first),
    "graph": lambda _: torch.accelerator.Graph(),
}


def _available(device: ProbedDevice) -> None:
    if C._get_accelerator() != torch.device(device.name):
        raise RuntimeError(f"torch._C._get_accelerator() does not return {device.name}: isAvailable() returns false")


def _device_count(device: ProbedDevice) -> None:
    count, expected = C._accelerator_hooks_device_count(), getattr(device.module, "device_count", lambda: 1)()
    if count != expected:
        raise RuntimeError(f"deviceCount() returns {count}, but device_count() of the device's module {expected}")


def _guard_device_count(device: ProbedDevice) -> None:
    index = C._accelerator_getDeviceIndex()
    if index < 0:
        raise RuntimeError(f"the device guard returns {index} as the current device; expected the index of a device")
    _device_count(device)


def _backward(device: ProbedDevice) -> None:
    leaf = device.tensor().requires_grad_()
    try:
        (leaf * 2).backward(torch.ones(2).to(device.first))  # type: ignore[no-untyped-call]
    except Exception as error:
        if "rimary" in str(error):  # hasPrimaryContext is missing, which is what this exercise looks for
            raise
        raise CannotCheck(
            "needs a backward pass, which fails for another reason: see registration.a backward pass"
        ) from error


def _random_numbers(device: ProbedDevice) -> None:
    if not has_kernel("aten::uniform_"):
        raise CannotCheck("needs a kernel of aten::uniform_, which draws random numbers on the device")
    device.tensor().uniform_()


def _pinned(_: ProbedDevice) -> None:
    if not torch.zeros(1).pin_memory().is_pinned():
        raise RuntimeError("isPinnedPtr() returns false for memory that pin_memory() returned")


def _release_pinned(device: ProbedDevice) -> None:
    _pinned(device)
    torch.accelerator.empty_host_cache()


def _resize(device: ProbedDevice) -> None:
    storage = device.storage()
    storage.resize_(16)
    if storage.nbytes() != 16:
        raise RuntimeError(f"a storage resized to 16 bytes has {storage.nbytes()}")


def _stream(device: ProbedDevice) -> torch.Stream:
    return torch.Stream(device=device.first)


def _event(device: ProbedDevice, timing: bool = False) -> torch.Event:
    event = torch.Event(device.first, enable_timing=timing)
    event.record(torch.accelerator.current_stream())
    return event


def _elapsed(device: ProbedDevice) -> None:
    first, second = _event(device, timing=True), _event(device, timing=True)
    second.synchronize()
    first.elapsed_time(second)


def _within_stream(device: ProbedDevice) -> None:
    with _stream(device):
        pass


def _generator(device: ProbedDevice) -> torch.Generator:
    return torch.Generator(device.first)


def _captured(device: ProbedDevice) -> torch.accelerator.Graph:
    graph = torch.accelerator.Graph()
    with _stream(device):
        graph.capture_begin()
        graph.capture_end()
    return graph


def _replay(device: ProbedDevice) -> None:
    _captured(device).replay()


def _set_state(device: ProbedDevice) -> None:
    generator = _generator(device)
    generator.set_state(generator.get_state())


def _set_offset(device: ProbedDevice) -> None:
    _generator(device).set_offset(4)


def _graphsafe_set_state(device: ProbedDevice) -> None:
    generator = _generator(device)
    generator.graphsafe_set_state(generator.graphsafe_get_state())


def _record_stream(device: ProbedDevice) -> None:
    if not has_kernel("aten::record_stream"):
        raise CannotCheck("needs a kernel of aten::record_stream")
    device.tensor().record_stream(torch.accelerator.current_stream())


EXERCISES: dict[str, Exercise] = {
    "accelerator_hooks.isAvailable": _available,
    "accelerator_hooks.hasPrimaryContext": _backward,
    "accelerator_hooks.deviceCount": _device_count,
    "accelerator_hooks.setCurrentDevice": lambda _: C._accelerator_hooks_set_current_device(0),
    "accelerator_hooks.getCurrentDevice": lambda _: C._accelerator_hooks_get_current_device(),
    "accelerator_hooks.exchangeDevice": lambda _: C._accelerator_hooks_exchange_device(0),
    "accelerator_hooks.maybeExchangeDevice": lambda _: C._accelerator_hooks_maybe_exchange_device(-1),
    "accelerator_hooks.isPinnedPtr": _pinned,
    "accelerator_hooks.getPinnedMemoryAllocator": lambda _: torch.zeros(1).pin_memory(),
    "accelerator_hooks.getDefaultGenerator": _random_numbers,
    "accelerator_hooks.getNewGenerator": _generator,
    "private_use1_hooks.resizePrivateUse1Bytes": _resize,
    "guard.type": lambda _: C._accelerator_getDeviceIndex(),
    "guard.exchangeDevice": lambda _: C._accelerator_exchangeDevice(0),
    "guard.getDevice": lambda _: C._accelerator_getDeviceIndex(),
    "guard.setDevice": lambda _: C._accelerator_setDeviceIndex(0),
    "guard.getStream": lambda _: torch.accelerator.current_stream(),
    "guard.getNewStream": _stream,
    "guard.exchangeStream": _within_stream,
    "guard.getStreamNativeHandle": lambda device: _stream(device).native_handle,  # type: ignore[attr-defined]
    "guard.record": _event,
    "guard.block": lambda device: _event(device).wait(torch.accelerator.current_stream()),
    "guard.queryEvent": lambda device: _event(device).query(),
    "guard.deviceCount": _guard_device_count,
    "guard.getDeviceCapability": lambda device: torch.accelerator.get_device_capability(device.first),
    "guard.queryStream": lambda _: torch.accelerator.current_stream().query(),
    "guard.synchronizeStream": lambda _: torch.accelerator.current_stream().synchronize(),
    "guard.isStreamCapturing": lambda _: torch.accelerator.current_stream().is_capturing(),
    "guard.synchronizeEvent": lambda device: _event(device).synchronize(),
    "guard.synchronizeDevice": lambda _: torch.accelerator.synchronize(),
    "guard.elapsedTime": _elapsed,
    "allocator.allocate": lambda device: device.storage(),
    "device_allocator.initialized": lambda _: C._accelerator_isAllocatorInitialized(),
    "device_allocator.emptyCache": lambda _: torch.accelerator.empty_cache(),
    "device_allocator.recordStream": _record_stream,
    "device_allocator.getDeviceStats": lambda _: torch.accelerator.memory_stats(),
    "device_allocator.resetAccumulatedStats": lambda _: torch.accelerator.reset_accumulated_memory_stats(),
    "device_allocator.resetPeakStats": lambda _: torch.accelerator.reset_peak_memory_stats(),
    "device_allocator.getMemoryInfo": lambda _: torch.accelerator.get_memory_info(),
    "host_allocator.empty_cache": lambda _: torch.accelerator.empty_host_cache(),
    "caching_host_allocator.allocate_host_memory": lambda _: torch.zeros(1).pin_memory(),
    "caching_host_allocator.free_block": _release_pinned,
    "generator.set_current_seed": lambda device: _generator(device).manual_seed(1),
    "generator.set_offset": _set_offset,
    "generator.get_offset": lambda device: _generator(device).get_offset(),
    "generator.current_seed": lambda device: _generator(device).initial_seed(),
    "generator.seed": lambda device: _generator(device).seed(),
    "generator.set_state": _set_state,
    "generator.get_state": lambda device: _generator(device).get_state(),
    "generator.graphsafe_set_state": _graphsafe_set_state,
    "generator.graphsafe_get_state": lambda device: _generator(device).graphsafe_get_state(),
    "generator.philox_state": lambda device: _generator(device).philox_state(4),  # type: ignore[attr-defined]  # since 2.14
    "generator.clone_impl": lambda device: _generator(device).clone_state(),
    "graph.capture_begin": _captured,
    "graph.capture_end": _captured,
    "graph.instantiate": _replay,
    "graph.replay": _replay,
    "graph.reset": lambda device: _captured(device).reset(),
    "graph.pool": lambda device: _captured(device).pool(),
    "graph.enable_debug_mode": lambda _: torch.accelerator.Graph().enable_debug_mode(),
}
