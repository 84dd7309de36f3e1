# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch saves and restores the generator states of the devices, so that the same numbers are drawn again."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

DEVICES = ["openreg:0", "openreg:1"]


def draw(device="openreg"):
    return torch.rand(8, device=device).cpu()


@pytest.mark.covers("module.get_rng_state", "module.set_rng_state")
@pytest.mark.parametrize("device", DEVICES)
def test_a_forked_state_ends_with_its_block(device):
    torch.manual_seed(1)
    expected = draw(device)
    torch.manual_seed(1)
    with torch.random.fork_rng(device_type="openreg", devices=[torch.device(device).index]):
        torch.manual_seed(2)
        draw(device)
    assert torch.equal(draw(device), expected)


@pytest.mark.filterwarnings("ignore:.*fork_rng:UserWarning")  # advises to name the devices
def test_all_devices_are_forked_unless_some_are_named():
    torch.manual_seed(1)
    expected = [draw(device) for device in DEVICES]
    torch.manual_seed(1)
    with torch.random.fork_rng(device_type="openreg"):
        for device in DEVICES:
            draw(device)
    assert all(torch.equal(draw(device), numbers) for device, numbers in zip(DEVICES, expected, strict=True))


@pytest.mark.covers("module.device", "module.get_rng_state")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_drops_the_same_elements_when_it_computes_again(use_reentrant, device):
    torch.manual_seed(4)
    x = torch.ones(2000, device=device, requires_grad=True)
    y = checkpoint(lambda value: functional.dropout(value * 3).sin(), x, use_reentrant=use_reentrant)
    draw(device)  # moves the state on before the second computation
    y.sum().backward()
    dropped = (y == 0).cpu()
    assert 700 < dropped.sum() < 1300
    assert torch.equal(dropped, (x.grad == 0).cpu())


@pytest.mark.covers("module.set_rng_state")
def test_a_checkpoint_leaves_the_state_as_if_there_were_none():
    layers = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4), nn.Dropout(0.5)).to("openreg")
    x = torch.ones(3, 4, device="openreg", requires_grad=True)
    after = []
    for run in (layers, lambda value: checkpoint_sequential(layers, 2, value, use_reentrant=False)):
        torch.manual_seed(6)
        run(x).sum().backward()
        after.append(draw())
    assert torch.equal(*after)


def test_without_saved_states_a_checkpoint_drops_other_elements():
    x = torch.ones(2000, device="openreg", requires_grad=True)
    y = checkpoint(lambda value: functional.dropout(value).sin(), x, use_reentrant=False, preserve_rng_state=False)
    y.sum().backward()
    assert not torch.equal((y == 0).cpu(), (x.grad == 0).cpu())


@pytest.mark.covers("module._initialized")
def test_pytorch_notices_when_a_checkpoint_is_the_first_use_of_the_device(python_with_dynamo):
    result = python_with_dynamo("""
import torch
from torch.utils.checkpoint import checkpoint
x = torch.ones(1000, requires_grad=True)
try:
    checkpoint(lambda value: torch.nn.functional.dropout(value.to("openreg")), x, use_reentrant=False)
except RuntimeError as error:
    assert "initialized in the forward pass" in str(error)
else:
    raise AssertionError("its state could not have been saved")
y = checkpoint(lambda value: torch.nn.functional.dropout(value.to("openreg")), x, use_reentrant=False)
""")
    assert result.returncode == 0, result.stderr
