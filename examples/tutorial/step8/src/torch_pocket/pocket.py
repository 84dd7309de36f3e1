# SPDX-License-Identifier: BSD-3-Clause
"""The module torch.pocket: functions that PyTorch and its users call by these names."""

import atexit
import contextlib
import os
import struct

import torch
from torch import Event, Stream  # noqa: F401 - of any device; the guard makes ours
from torch.accelerator import current_device_index as current_device
from torch.accelerator import memory_allocated, synchronize  # noqa: F401
from torch.accelerator import set_device_index as set_device  # noqa: F401

from torch_pocket import _C
from torch_pocket.fallback import fallback_stats, refuse_fallbacks, reset_fallback_stats  # noqa: F401

# The process must not end while kernels run, and a child of fork() cannot use the threads of its parent.
atexit.register(_C.synchronize_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: (_C.mark_forked(), atexit.unregister(_C.synchronize_all)))


def is_available() -> bool:
    """Returns True if the device can be used."""
    return True


def device_count() -> int:
    """Returns the number of devices."""
    return torch._C._accelerator_hooks_device_count()


_initialized = True  # torch.utils.checkpoint looks here before it saves the random state


def is_initialized() -> bool:
    """Returns True if the device was used before; it needs no preparation."""
    return _initialized


def _is_in_bad_fork() -> bool:
    return _C.is_forked()


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices."""
    for index in range(device_count()):
        _C.set_random_state(index, seed % (1 << 64), 0)


def _index(device: "torch.device | str | int | None") -> int:
    if isinstance(device, (str, torch.device)):
        device = torch.device(device).index
    return current_device() if device is None else device


def get_rng_state(device: "torch.device | str | int" = "pocket") -> torch.Tensor:
    """Returns the state of a device's generator: seed and number of draws, 16 bytes."""
    return torch.tensor(list(struct.pack("=QQ", *_C.get_random_state(_index(device)))), dtype=torch.uint8)


def set_rng_state(state: torch.Tensor, device: "torch.device | str | int" = "pocket") -> None:
    """Sets a device's generator to a state that get_rng_state() returned."""
    if state.dtype != torch.uint8 or state.numel() != 16:
        raise ValueError(f"set_rng_state: expected 16 bytes of get_rng_state, got {state.numel()} of {state.dtype}")
    _C.set_random_state(_index(device), *struct.unpack("=QQ", bytes(state.tolist())))


def current_stream(device: "torch.device | str | int | None" = None) -> torch.Stream:
    """Returns the stream on which a device enqueues launches."""
    return torch.accelerator.current_stream(_index(device))


def stream(stream: "torch.Stream | None") -> contextlib.AbstractContextManager:
    """Returns the stream as a context: `with torch.pocket.stream(s)` makes it current. None changes nothing."""
    return contextlib.nullcontext() if stream is None else stream


class device(torch.accelerator.device_index):
    """A context in which a device is current: `with torch.pocket.device(1)`. None changes nothing."""

    def __init__(self, device: "torch.device | str | int | None"):
        if isinstance(device, (str, torch.device)):
            device = torch.device(device).index
        super().__init__(device)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Returns the dtypes that torch.autocast("pocket") may use."""
    return [torch.float16, torch.bfloat16]


def __getattr__(name: str) -> type:
    """Returns the classes that Inductor looks up here. They import Inductor, which `import torch` must not do."""
    if name in ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen"):
        from torch_pocket import compiler

        return getattr(compiler, name)
    raise AttributeError(f"module 'torch.pocket' has no attribute {name!r}")
