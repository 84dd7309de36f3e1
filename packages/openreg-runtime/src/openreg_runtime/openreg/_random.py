# SPDX-License-Identifier: BSD-3-Clause
"""Random number generators, one per device.

A state is a CPU tensor of 16 bytes: seed, then offset. Numbers depend on the state alone, not on threads or schedules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, current_device, device_count, device_index


class _DefaultGenerators(Sequence[torch.Generator]):
    """The default generators of the devices, by index; made at first use, so that importing initializes nothing."""

    def __len__(self) -> int:
        return device_count()

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...

    @overload
    def __getitem__(self, index: slice) -> list[torch.Generator]: ...

    def __getitem__(self, index: int | slice) -> torch.Generator | list[torch.Generator]:
        if isinstance(index, slice):
            return [_C._get_default_generator(i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"The device index is out of range: {index}, with {len(self)} openreg devices")
        return _C._get_default_generator(index % len(self))

    def __iter__(self) -> Iterator[torch.Generator]:
        return (self[i] for i in range(len(self)))


default_generators = _DefaultGenerators()


def get_generator(device: torch.device) -> torch.Generator:
    """The default generator of a device (source: ``torch/_functorch/_aot_autograd/utils.py``)."""
    return default_generators[device_index(device)]


def get_rng_state(device: DeviceLike = "openreg") -> torch.Tensor:
    """State of a device's default generator: CPU tensor, uint8, shape (16,)."""
    return default_generators[device_index(device)].get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """:func:`get_rng_state` of every device."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "openreg") -> None:
    """Sets the state of a device's default generator; takes what :func:`get_rng_state` gave."""
    default_generators[device_index(device)].set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """:func:`set_rng_state` for every device, in order. Raises ValueError unless there is one state per device."""
    states = list(new_states)
    if len(states) != device_count():
        raise ValueError(f"got {len(states)} states for {device_count()} openreg devices; give one per device")
    for generator, state in zip(default_generators, states, strict=True):
        generator.set_state(state)


def manual_seed(seed: int) -> None:
    """Seeds the current device."""
    default_generators[current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds every device; ``torch.manual_seed`` calls it."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device with a random number."""
    default_generators[current_device()].seed()


def seed_all() -> None:
    """Seeds every device with the same random number."""
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    """The seed of the current device's default generator."""
    return default_generators[current_device()].initial_seed()
