# SPDX-License-Identifier: BSD-3-Clause
"""Autocast casts a float32 parameter once, and keeps the cast until the outermost context ends."""

import gc

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

# In inference mode PyTorch does not take the second apart.
CASTS = (torch.ops.aten._to_copy.default, torch.ops.aten.to.dtype)


class Casts(TorchDispatchMode):
    """Counts the casts of one tensor."""

    def __init__(self, tensor):
        super().__init__()
        self.pointer, self.count = tensor.data_ptr(), 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function in CASTS and args[0].data_ptr() == self.pointer:
            self.count += 1
        return function(*args, **(kwargs or {}))


@pytest.fixture
def weight():
    return torch.rand(64, 64, device="openreg", requires_grad=True)


def casts(weight, uses, **options):
    """How often `weight` is cast while `uses` runs under autocast."""
    x = torch.ones(2, 64, device="openreg")
    with Casts(weight) as mode, torch.autocast("openreg", **options):
        uses(lambda: x @ weight)
    return mode.count


def thrice(product):
    for _ in range(3):
        product()


def test_a_weight_is_cast_once_in_a_context(weight):
    assert casts(weight, thrice) == 1


def test_a_weight_is_cast_again_in_the_next_context(weight):
    assert [casts(weight, thrice) for _ in range(2)] == [1, 1]


def test_without_the_cache_a_weight_is_cast_for_every_product(weight):
    assert casts(weight, thrice, cache_enabled=False) == 3


def test_contexts_inside_share_the_cache(weight):
    def nested(product):
        product()
        with torch.autocast("openreg"):
            product()
        with torch.autocast("openreg", enabled=False):
            product()
        product()

    assert casts(weight, nested) == 1


def test_the_context_of_another_device_shares_the_cache_too(weight):
    def nested(product):
        product()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            product()
        product()

    assert casts(weight, nested) == 1


def test_only_float32_leaves_that_need_gradients_are_kept(weight):
    plain = weight.detach()
    view = weight[:]
    computed = weight * 2
    for tensor in (plain, view, computed):
        assert casts(tensor, thrice) == 3


def test_without_gradients_a_parameter_is_kept_too(weight):
    with torch.no_grad():
        assert casts(weight, thrice) == 1


def test_in_inference_mode_no_cast_is_kept_on_any_device(weight):
    def count(device):
        parameter = weight.detach().to(device).requires_grad_()
        x = torch.ones(2, 64, device=device)
        with torch.inference_mode(), Casts(parameter) as mode, torch.autocast(device, dtype=torch.bfloat16):
            thrice(lambda: x @ parameter)
        return mode.count

    assert count("openreg") == count("cpu") == 3


def test_the_gradient_of_every_use_reaches_the_weight_through_its_one_cast(weight):
    x = torch.ones(2, 64, device="openreg")
    with torch.autocast("openreg"):
        loss = sum((x @ weight).float().sum() for _ in range(3))
    loss.backward()
    assert weight.grad.dtype is torch.float32
    assert torch.equal(weight.grad.cpu(), torch.full((64, 64), 6.0))


def test_a_weight_changed_between_contexts_is_cast_anew(weight):
    x = torch.ones(1, 64, device="openreg")
    with torch.autocast("openreg"):
        before = (x @ weight).detach()
    with torch.no_grad():
        weight.zero_()
    with torch.autocast("openreg"):
        after = (x @ weight).detach()
    assert before.cpu().any()
    assert not after.cpu().any()


def test_the_memory_of_the_casts_is_free_after_the_outermost_context(weight):
    def allocated():
        gc.collect()
        torch.openreg.synchronize()
        return torch.openreg.memory_allocated()

    x = torch.ones(2, 64, device="openreg")
    before = allocated()
    with torch.autocast("openreg"):
        with torch.autocast("openreg"):
            (x @ weight).detach()
        kept = allocated() - before
    assert kept >= weight.numel() * 2
    assert allocated() == before
