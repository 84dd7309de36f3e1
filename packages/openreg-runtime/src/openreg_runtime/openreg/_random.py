# SPDX-License-Identifier: BSD-3-Clause
"""Random number generators, one per device.

A state is a CPU tensor of 16 bytes: seed, then offset. The numbers depend only on the state, not on threads or the
order of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import torch

from openreg_runtime import _C
from openreg_runtime.openreg._device import DeviceLike, current_device, device_count, device_index


class _DefaultGenerators(Sequence[torch.Generator]):
    """The default generators by device index. They are created on first use, so that an import initializes nothing."""

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
            raise IndexError(
                f"default_generators: The device index is out of range: {index}, with {len(self)} openreg devices; "
                "give the index of one of them"
            )
        return _C._get_default_generator(index % len(self))

    def __iter__(self) -> Iterator[torch.Generator]:
        return (self[i] for i in range(len(self)))


default_generators = _DefaultGenerators()


def get_generator(device: torch.device) -> torch.Generator:
    """Returns the default generator of a device. ``torch/_functorch/_aot_autograd/utils.py`` calls this."""
    return default_generators[device_index(device)]


def get_rng_state(device: DeviceLike = "openreg") -> torch.Tensor:
    """Returns the state of a device's default generator: a CPU tensor of dtype uint8 and shape (16,)."""
    return default_generators[device_index(device)].get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """Returns the states of the default generators of all devices, in order."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "openreg") -> None:
    """Sets the state of a device's default generator to a result of :func:`get_rng_state`."""
    default_generators[device_index(device)].set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices, in order. Raises ValueError unless there is one state per device."""
    states = list(new_states)
    if len(states) != device_count():
        raise ValueError(
            f"set_rng_state_all: got {len(states)} states for {device_count()} openreg devices; give one per device"
        )
    for generator, state in zip(default_generators, states, strict=True):
        generator.set_state(state)


def manual_seed(seed: int) -> None:
    """Seeds the default generator of the current device."""
    default_generators[current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the default generators of all devices. ``torch.manual_seed`` calls this."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seeds the default generator of the current device with a random number."""
    default_generators[current_device()].seed()


def seed_all() -> None:
    """Seeds the default generators of all devices with one random number."""
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    """Returns the seed of the current device's default generator."""
    return default_generators[current_device()].initial_seed()
