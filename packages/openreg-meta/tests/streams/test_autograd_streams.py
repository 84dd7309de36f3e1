# SPDX-License-Identifier: BSD-3-Clause
"""Backward passes over several streams are ordered by the device's events, as PyTorch's engine requires."""

import pytest
import torch

# PyTorch says so where a leaf is used on another stream than the one it was made on, as these tests do on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream:UserWarning")

SIZE = 1 << 16


@pytest.fixture(autouse=True)
def quiet_devices():
    yield
    for device in range(2):
        torch.openreg.synchronize(device)


class HeldBackward(torch.autograd.Function):
    """The identity whose gradient is held by a gate, without keeping the host."""

    @staticmethod
    def forward(ctx, x, gate):
        ctx.gate = gate
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.gate.close()
        return gradient * 1, None


@pytest.mark.covers("accelerator_hooks.hasPrimaryContext", "guard.getStream", "registration.a backward pass")
@pytest.mark.parametrize("device", [0, 1])
def test_a_backward_pass_runs_on_the_streams_of_the_forward_pass(device):
    x = torch.ones(8, device=f"openreg:{device}", requires_grad=True)
    stream = torch.openreg.Stream(device)
    stream.wait_stream(torch.openreg.current_stream(device))
    with torch.openreg.stream(stream):
        y = x.exp().sum()
    torch.openreg.synchronize(device)
    before = torch.openreg.stream_stats(stream).launches
    y.backward()
    torch.openreg.synchronize(device)
    assert torch.openreg.stream_stats(stream).launches > before


def test_a_backward_pass_leaves_the_current_streams_as_they_were():
    x = torch.ones(8, device="openreg", requires_grad=True)
    torch.openreg.synchronize()
    current = torch.openreg.Stream()
    with torch.openreg.stream(torch.openreg.Stream()):
        y = x.exp().sum()
    with torch.openreg.stream(current):
        y.backward()
        assert torch.openreg.current_stream() == current
    torch.openreg.synchronize()


@pytest.mark.covers("guard.block")
def test_gradients_of_two_streams_are_added_after_both(gate):
    x = torch.ones(SIZE, device="openreg", requires_grad=True)
    home = torch.openreg.current_stream()
    parts = []
    for number in range(2):
        stream = torch.openreg.Stream()
        stream.wait_stream(home)
        with torch.openreg.stream(stream):
            parts.append(HeldBackward.apply(x, gate) * (number + 1))
        home.wait_stream(stream)
    (parts[0] + parts[1]).sum().backward()
    assert not home.query()  # it waits for the gradients, the host does not
    gate.open()
    assert x.grad.cpu().unique().tolist() == [3]


def test_the_stream_that_called_backward_waits_for_the_gradients(gate):
    x = torch.ones(SIZE, device="openreg", requires_grad=True)
    stream = torch.openreg.Stream()
    stream.wait_stream(torch.openreg.current_stream())
    with torch.openreg.stream(stream):
        y = HeldBackward.apply(x, gate).sum()
    y.backward()
    doubled = x.grad * 2
    gate.open()
    assert doubled.cpu().unique().tolist() == [2]


@pytest.mark.covers("guard.recordDataPtrOnStream")
def test_a_gradient_that_crosses_streams_is_not_reused_too_early(gate):
    x = torch.ones(SIZE, device="openreg", requires_grad=True)
    torch.openreg.synchronize()
    fast, slow = torch.openreg.Stream(priority=-3), torch.openreg.Stream(priority=0)
    with torch.openreg.stream(slow):
        y = HeldBackward.apply(x, gate)
    fast.wait_stream(slow)
    with torch.openreg.stream(fast):
        z = (y * 3).sum()
    z.backward()  # the gradient 3 comes from memory of `fast`, and `slow` has yet to read it
    assert not slow.query()
    with torch.openreg.stream(fast):
        rubbish = [torch.full((SIZE,), 100.0, device="openreg") for _ in range(4)]
    gate.open()  # the engine serves `fast` first
    assert x.grad.cpu().unique().tolist() == [3]
    del rubbish
