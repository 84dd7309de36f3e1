# SPDX-License-Identifier: BSD-3-Clause
"""The operators of gradient scaling are right. openreg-meta tests training with them."""

import pytest
import torch
from parity import DEVICE

pytestmark = pytest.mark.no_fallback


def one(value=1.0, dtype=torch.float32, device=DEVICE):
    return torch.tensor([value], dtype=dtype, device=device)


@pytest.mark.covers("registration.aten::_amp_foreach_non_finite_check_and_unscale_ and aten::_amp_update_scale_")
@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan"), 4.0])
def test_gradients_are_unscaled_and_checked(bad):
    gradients = [torch.tensor([2.0, 8.0], device=DEVICE), torch.tensor([bad], device=DEVICE)]
    found = one(0.0)
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, one(0.5))
    assert found.item() == (0.0 if bad == 4.0 else 1.0)
    assert gradients[0].cpu().tolist() == [1, 4]


def test_what_was_found_before_stays():
    found = one(1.0)
    torch._amp_foreach_non_finite_check_and_unscale_([one(2.0)], found, one())
    assert found.item() == 1.0


def test_gradients_of_any_layout_and_floating_type():
    strided = torch.arange(12.0, device=DEVICE).view(3, 4).t()[::2]
    others = [one(2.0, dtype) for dtype in (torch.float16, torch.bfloat16, torch.float64)]
    expected = strided.cpu() / 2
    torch._amp_foreach_non_finite_check_and_unscale_([strided, *others, torch.empty(0, device=DEVICE)], one(), one(0.5))
    assert torch.equal(strided.cpu(), expected)
    assert [other.item() for other in others] == [1, 1, 1]


@pytest.mark.parametrize(("found", "expected"), [(1.0, 32.0), (0.0, 128.0)])
def test_the_scale_is_updated(found, expected):
    scale = torch.tensor(64.0, device=DEVICE)
    growth = torch.tensor(1, dtype=torch.int32, device=DEVICE)
    assert torch._amp_update_scale_(scale, growth, torch.tensor(found, device=DEVICE), 2.0, 0.5, 2) is scale
    assert (scale.item(), growth.item()) == (expected, 0)


def test_growth_stops_before_the_scale_becomes_infinite():
    scale = one(3e38)
    torch._amp_update_scale_(scale, one(0, torch.int32), one(0.0), 2.0, 0.5, 1)
    assert scale.item() == one(3e38, device="cpu").item()


MISTAKES = [
    (lambda: [[one()], torch.zeros(2, device=DEVICE), one()], r"found_inf must be .* shape \[2\]"),
    (lambda: [[one()], one(0, torch.int32), one()], "found_inf must be .* type Int"),
    (lambda: [[one()], one(), one(1.0, torch.float16)], "inv_scale must be .* type Half"),
    (lambda: [[one(1, torch.int32)], one(), one()], "gradient .*type Int; cast"),
    (lambda: [[one()], torch.zeros(()), one()], "openreg:0 and cpu.*Move the operand"),
    (lambda: [[one(), torch.ones(())], one(), one()], "openreg:0 and cpu.*Move the operand"),
]


@pytest.mark.parametrize(("args", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_wrong_argument_of_unscaling_is_refused_and_leaves_the_device_usable(args, message):
    with pytest.raises(RuntimeError, match=message):
        torch._amp_foreach_non_finite_check_and_unscale_(*args())
    torch.openreg.synchronize()
    assert one(3.0).item() == 3.0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (lambda: (torch.ones(2, device=DEVICE), one(0, torch.int32), one()), "the scale must be"),
        (lambda: (one(), one(), one()), "growth_tracker must be .* type Int, but"),
        (lambda: (one(), one(0, torch.int32), one(0, torch.int64)), "found_inf must be"),
        (lambda: (one(), torch.zeros((), dtype=torch.int32), one()), "Move the operand"),
    ],
    ids=["scale", "tracker", "found", "elsewhere"],
)
def test_a_wrong_argument_of_an_update_is_refused_and_leaves_the_device_usable(args, message):
    with pytest.raises(RuntimeError, match=message):
        torch._amp_update_scale_(*args(), 2.0, 0.5, 1)
    torch.openreg.synchronize()
    assert one(3.0).item() == 3.0
