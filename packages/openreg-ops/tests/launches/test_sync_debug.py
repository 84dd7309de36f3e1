# SPDX-License-Identifier: BSD-3-Clause
"""The sync debug mode reports operators that make the host wait, and allows asynchronous ones."""

import warnings

import pytest
import torch
from parity import DEVICE


@pytest.fixture(autouse=True)
def default_mode():
    yield
    torch.openreg.set_sync_debug_mode("default")


def fall_back(x):
    with torch.openreg.fallback_operators("aten::flip"):
        x.flip(0)


WAITS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x[0] > 0),
    "cpu": lambda x: x.cpu(),
    "reading into pageable memory": lambda x: torch.empty(4).copy_(x, non_blocking=True),
    "blocking copy from pageable memory": lambda x: torch.ones(4).to(DEVICE),
    "numbers of Python": lambda x: torch.tensor([1.0, 2.0], device=DEVICE),
    "blocking copy to pinned memory": lambda x: torch.empty(4).pin_memory().copy_(x),
    "shape that depends on data": lambda x: torch.unique(x),
    "fallback": lambda x: fall_back(x),
    "repr": repr,
}


@pytest.mark.covers("module.set_sync_debug_mode")
@pytest.mark.parametrize("name", WAITS)
def test_what_makes_the_host_wait_is_refused(name):
    x = torch.ones(4, device=DEVICE)
    torch.openreg.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match="waits"):
        WAITS[name](x)


@pytest.mark.parametrize("name", WAITS)
def test_what_makes_the_host_wait_is_warned_of(name):
    x = torch.ones(4, device=DEVICE)
    torch.openreg.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="waits"):
        WAITS[name](x)


def test_a_copy_that_waits_for_its_kernel_too_is_warned_of_once():
    x = torch.zeros(4, 4, device=DEVICE).view(torch.bits8)  # of which the kernel may know no copy
    torch.openreg.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x[:, 0].cpu()
    assert len([warning for warning in caught if "waits" in str(warning.message)]) == 1


def test_a_refused_fallback_draws_no_random_numbers():
    x = torch.ones(4, device=DEVICE)
    state = torch.openreg.get_rng_state()
    torch.openreg.set_sync_debug_mode("error")
    with torch.openreg.fallback_operators("aten::normal_"), pytest.raises(RuntimeError, match="waits"):
        x.normal_()
    torch.openreg.set_sync_debug_mode("default")
    assert torch.equal(torch.openreg.get_rng_state(), state)


@pytest.mark.covers("module.set_sync_debug_mode")
def test_what_lets_the_host_go_on_is_allowed():
    x = torch.ones(4, 4, device=DEVICE, requires_grad=True)
    pinned = torch.ones(4, 4).pin_memory()
    torch.openreg.set_sync_debug_mode("error")
    y = (x @ pinned.to(DEVICE, non_blocking=True)).relu().sum()
    y.backward()
    torch.empty(4, 4).pin_memory().copy_(x.grad, non_blocking=True)
    torch.ones(4).to(DEVICE, non_blocking=True)
    torch.randn(3, device=DEVICE)
    torch.openreg.synchronize()
