# SPDX-License-Identifier: BSD-3-Clause
"""The device guard: the current device of each thread, which operators and backward passes do not change.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses. The device under test may be the CPU; tests with the fixture
``accelerator`` are then skipped.
"""

import threading

import pytest
import torch

from openreg_testing.conformance.harness import DeviceUnderTest, covers


@covers("guard.exchangeDevice", "guard.getDevice")
def test_a_context_makes_a_device_current(accelerator: DeviceUnderTest) -> None:
    """`with torch.accelerator.device_index(i)` makes device i current, and restores the old one."""
    before = torch.accelerator.current_device_index()
    with torch.accelerator.device_index(accelerator.second.index):
        assert torch.accelerator.current_device_index() == 1
        assert torch.empty(1, device=accelerator.name).device == accelerator.second
    assert torch.accelerator.current_device_index() == before


@covers("guard.exchangeDevice")
def test_an_exception_gives_the_device_back(accelerator: DeviceUnderTest) -> None:
    """The old device is current again when an exception leaves the context."""
    second = accelerator.second
    with pytest.raises(ZeroDivisionError), torch.accelerator.device_index(second.index):
        raise ZeroDivisionError
    assert torch.accelerator.current_device_index() == 0


@covers("guard.setDevice")
def test_setting_a_device_holds(accelerator: DeviceUnderTest) -> None:
    """torch.accelerator.set_device_index() makes a device current until the next change."""
    torch.accelerator.set_device_index(accelerator.second)
    assert torch.accelerator.current_device_index() == 1
    assert torch.empty(1, device=accelerator.name).device.index == 1
    torch.accelerator.set_device_index(0)
    assert torch.accelerator.current_device_index() == 0


@covers("guard.setDevice")
def test_a_thread_has_its_own_current_device(accelerator: DeviceUnderTest) -> None:
    """Each thread has its own current device, which other threads do not change."""
    second, seen = accelerator.second, []

    def work() -> None:
        torch.accelerator.set_device_index(second)
        seen.append(torch.accelerator.current_device_index())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [1]
    assert torch.accelerator.current_device_index() == 0


@covers("guard.exchangeDevice")
def test_an_operator_runs_where_its_operands_are(accelerator: DeviceUnderTest) -> None:
    """An operator runs on the device of its operands, and does not change the current device."""
    x = accelerator.tensor(1, 2, device=accelerator.second)
    y = x + x
    assert y.device == accelerator.second
    assert torch.accelerator.current_device_index() == 0
    assert y.tolist() == [2, 4]


@covers("guard.exchangeDevice")
def test_two_devices_do_not_mix(accelerator: DeviceUnderTest) -> None:
    """An operator whose operands are on two devices raises RuntimeError, and both devices stay usable."""
    x, y = accelerator.tensor(1, 2), accelerator.tensor(3, 4, device=accelerator.second)
    with pytest.raises(RuntimeError):
        x + y
    assert (x + x).tolist() == [2, 4]
    assert (y + y).tolist() == [6, 8]


@covers("guard.exchangeDevice")
def test_a_copy_goes_from_device_to_device(accelerator: DeviceUnderTest) -> None:
    """A tensor keeps its numbers when it is copied to another device, whichever device is current."""
    x = accelerator.tensor(1, 2, 3)
    y = x.to(accelerator.second)
    assert y.device == accelerator.second
    assert y.tolist() == [1, 2, 3]
    with torch.accelerator.device_index(1):
        assert y.to(accelerator.first).tolist() == [1, 2, 3]


@covers("accelerator_hooks.exchangeDevice", "accelerator_hooks.setCurrentDevice", "accelerator_hooks.getCurrentDevice")
def test_the_hooks_see_the_same_device(accelerator: DeviceUnderTest) -> None:
    """The hooks and the guard get and set one and the same current device."""
    last = accelerator.count - 1
    torch._C._accelerator_hooks_set_current_device(last)
    assert torch._C._accelerator_hooks_get_current_device() == last
    assert torch.accelerator.current_device_index() == last
    assert torch._C._accelerator_hooks_exchange_device(0) == last
    assert torch.accelerator.current_device_index() == 0


@covers("accelerator_hooks.maybeExchangeDevice")
@pytest.mark.usefixtures("accelerator")
def test_an_exchange_with_no_device_changes_nothing() -> None:
    """maybe_exchange_device(-1) does not change the current device, as a guard for no device does."""
    torch._C._accelerator_hooks_maybe_exchange_device(-1)
    assert torch.accelerator.current_device_index() == 0


@covers("registration.a backward pass", "accelerator_hooks.hasPrimaryContext")
def test_a_backward_pass_gives_gradients(device: DeviceUnderTest) -> None:
    """backward() runs on the device, and the gradients are on the device."""
    x = device.tensor(1, 2, 3).requires_grad_()
    (x * x).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert x.grad.device == device.first
    assert x.grad.tolist() == [2, 4, 6]


@covers("registration.a backward pass")
def test_a_model_trains(device: DeviceUnderTest) -> None:
    """Steps of SGD on the device change the parameters as on the CPU."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    here = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    here.load_state_dict(model.state_dict())
    here.to(device.first)
    data = torch.randn(16, 4)
    for net, x in ((model, data), (here, data.to(device.first))):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
    for one, other in zip(here.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.detach().cpu(), other.detach(), rtol=1e-4, atol=1e-5)


@covers("guard.setDevice", "registration.a backward pass")
def test_a_backward_pass_of_another_device_leaves_the_current_one(accelerator: DeviceUnderTest) -> None:
    """Autograd's thread changes its own current device for a gradient, not that of the calling thread."""
    x = accelerator.tensor(1, 2, device=accelerator.second).requires_grad_()
    (x * 3).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]
    assert torch.accelerator.current_device_index() == 0


@covers("registration.a backward pass")
def test_gradients_cross_devices(accelerator: DeviceUnderTest) -> None:
    """In a graph over a device and the CPU, the gradients are on the devices of their leaves."""
    x, y = torch.ones(2, requires_grad=True), accelerator.tensor(2, 3).requires_grad_()
    (x.to(accelerator.first) * y).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert y.grad is not None
    assert x.grad.tolist() == [2, 3]
    assert x.grad.device.type == "cpu"
    assert y.grad.tolist() == [1, 1]


@covers("guard.synchronizeDevice")
def test_a_device_can_be_waited_for(accelerator: DeviceUnderTest) -> None:
    """torch.accelerator.synchronize() returns when all tasks of all streams of the device are complete."""
    x = torch.ones(1 << 16).to(accelerator.first)
    for _ in range(20):
        x = x * 1.5 - 0.5
    torch.accelerator.synchronize()
    assert torch.accelerator.current_stream().query(), "tasks are pending after torch.accelerator.synchronize()"
    assert (x.cpu() == 1).all()
