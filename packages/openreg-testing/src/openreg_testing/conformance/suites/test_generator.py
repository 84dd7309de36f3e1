# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: seeds repeat them, states can be saved and restored, and generators are independent.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` are then skipped.
"""

from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from openreg_testing.conformance.harness import DeviceUnderTest, covers


def numbers(device: DeviceUnderTest, generator: torch.Generator | None = None, count: int = 20) -> list[float]:
    """Draws numbers on the device, with its default generator unless one is given."""
    drawn: list[float] = torch.rand(count, device=device.first, generator=generator).tolist()
    return drawn


@covers("module.manual_seed_all", "accelerator_hooks.getDefaultGenerator")
def test_the_global_seed_repeats_numbers(device: DeviceUnderTest) -> None:
    """torch.manual_seed() seeds the device: equal seeds produce equal numbers, different seeds different ones."""
    torch.manual_seed(7)
    first, second = numbers(device), numbers(device)
    torch.manual_seed(7)
    assert numbers(device) == first
    assert first != second
    torch.manual_seed(8)
    assert numbers(device) != first


@covers("accelerator_hooks.getDefaultGenerator")
def test_numbers_are_spread(device: DeviceUnderTest) -> None:
    """torch.rand draws uniformly from 0 to 1, torch.randn from the standard normal distribution."""
    uniform, normal = torch.rand(20_000, device=device.first).cpu(), torch.randn(20_000, device=device.first).cpu()
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(float(uniform.mean()) - 0.5) < 0.02
    assert abs(float(normal.mean())) < 0.05
    assert abs(float(normal.std()) - 1) < 0.05


@covers("accelerator_hooks.getNewGenerator", "generator.set_current_seed", "generator.current_seed")
def test_a_generator_is_its_own(device: DeviceUnderTest) -> None:
    """A torch.Generator(device) repeats its numbers by its seed, and does not change the default generator."""
    one, other = (torch.Generator(device.first).manual_seed(5) for _ in range(2))
    torch.manual_seed(1)
    expected = numbers(device)
    torch.manual_seed(1)
    assert numbers(device, one) == numbers(device, other)
    assert one.initial_seed() == 5
    assert numbers(device) == expected, "drawing from a generator changed the default generator"


@covers("generator.get_state", "generator.set_state")
def test_a_state_can_be_kept(device: DeviceUnderTest) -> None:
    """set_state(get_state()) repeats the numbers that followed; the state is a tensor of bytes on the CPU."""
    generator = torch.Generator(device.first).manual_seed(3)
    numbers(device, generator)
    state = generator.get_state()
    assert state.device.type == "cpu"
    assert state.dtype == torch.uint8
    expected = numbers(device, generator)
    generator.set_state(state)
    assert numbers(device, generator) == expected


@covers("generator.clone_impl")
def test_a_generator_can_be_cloned(device: DeviceUnderTest) -> None:
    """clone_state() returns an independent generator that continues at the state of the original."""
    generator = torch.Generator(device.first).manual_seed(3)
    numbers(device, generator)
    clone = generator.clone_state()
    assert numbers(device, clone) == numbers(device, generator)


@covers("generator.seed")
def test_a_seed_can_be_drawn(device: DeviceUnderTest) -> None:
    """Generator.seed() sets a random seed and returns it."""
    generator = torch.Generator(device.first)
    seed = generator.seed()
    assert generator.initial_seed() == seed
    first = numbers(device, generator)
    assert numbers(device, generator.manual_seed(seed)) == first


@covers("generator.set_offset", "generator.get_offset")
def test_an_offset_moves_the_numbers(accelerator: DeviceUnderTest) -> None:
    """set_offset() of an earlier offset repeats the numbers that followed; a seed sets the offset to zero."""
    generator = torch.Generator(accelerator.first).manual_seed(3)
    assert generator.get_offset() == 0
    expected = numbers(accelerator, generator)
    moved = generator.get_offset()
    assert moved > 0, "numbers were drawn, but the offset did not change"
    generator.set_offset(0)
    assert numbers(accelerator, generator) == expected
    assert generator.get_offset() == moved


@covers("generator.graphsafe_get_state", "generator.graphsafe_set_state")
def test_a_state_can_be_shared(accelerator: DeviceUnderTest) -> None:
    """graphsafe_set_state() makes a generator use the state of another one."""
    one = torch.Generator(accelerator.first).manual_seed(3)
    other = torch.Generator(accelerator.first).manual_seed(4)
    other.graphsafe_set_state(one.graphsafe_get_state())
    numbers(accelerator, one)
    assert other.get_offset() == one.get_offset()


@covers("module.get_rng_state", "module.set_rng_state")
@pytest.mark.parametrize("form", ["nothing", "index", "string", "device"])
def test_the_module_keeps_states(accelerator: DeviceUnderTest, form: str) -> None:
    """torch.<device>.get_rng_state() and set_rng_state() accept no device, an index, a string and a torch.device."""
    given: dict[str, list[Any]] = {"index": [0], "string": [f"{accelerator.name}:0"], "device": [accelerator.first]}
    where = given.get(form, [])
    state = accelerator.module.get_rng_state(*where)
    expected = numbers(accelerator)
    accelerator.module.set_rng_state(state, *where)
    assert numbers(accelerator) == expected


@covers("module.get_rng_state", "module.device_count")
def test_fork_rng_leaves_no_trace(accelerator: DeviceUnderTest) -> None:
    """Numbers drawn inside of torch.random.fork_rng(device_type=...) do not change those that follow."""
    torch.manual_seed(5)
    expected = numbers(accelerator)
    torch.manual_seed(5)
    with torch.random.fork_rng(devices=[0], device_type=accelerator.name):
        numbers(accelerator)
    assert numbers(accelerator) == expected


@covers("module._initialized", "module.get_rng_state")
def test_a_checkpoint_draws_the_same_numbers(accelerator: DeviceUnderTest) -> None:
    """torch.utils.checkpoint recomputes the forward pass with the same dropout mask."""
    x = torch.ones(1000, device=accelerator.first, requires_grad=True)
    y = checkpoint(lambda value: torch.nn.functional.dropout(value * 2, 0.5), x, use_reentrant=False)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad.cpu(), y.detach().cpu()), "dropout drew other numbers when the checkpoint recomputed"


@covers("accelerator_hooks.getDefaultGenerator")
def test_each_device_has_its_own_numbers(accelerator: DeviceUnderTest) -> None:
    """Numbers drawn on one device do not change those of another one."""
    second = accelerator.second
    torch.manual_seed(5)
    expected = torch.rand(10, device=second).tolist()
    torch.manual_seed(5)
    numbers(accelerator)
    assert torch.rand(10, device=second).tolist() == expected


@covers("accelerator_hooks.getNewGenerator")
def test_a_generator_of_the_cpu_is_refused(accelerator: DeviceUnderTest) -> None:
    """An operator on the device with a generator of the CPU raises RuntimeError."""
    with pytest.raises(RuntimeError):
        torch.rand(3, device=accelerator.first, generator=torch.Generator())
