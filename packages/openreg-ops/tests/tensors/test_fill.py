# SPDX-License-Identifier: BSD-3-Clause
"""fill_, zero_ and masked_fill_ set the right elements, with values on the host or the device."""

import pytest
import torch
from parity import DEVICE, check

pytestmark = pytest.mark.no_fallback

DTYPES = [torch.uint8, torch.int64, torch.bool, torch.bfloat16, torch.float32, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", [lambda t: t, lambda t: t.t(), lambda t: t[:, ::2]], ids=["plain", "t", "slice"])
def test_fill_and_zero(dtype, layout):
    x = torch.ones(3, 4).to(dtype)
    for operation in (
        lambda t: layout(t).fill_(0),
        lambda t: layout(t).fill_(torch.tensor(1)),
        lambda t: layout(t).zero_(),
        lambda t: layout(t).masked_fill_(layout(t) == 1, 0),
        lambda t: layout(t).masked_fill(layout(t) == 1, torch.tensor(0).to(dtype)),
    ):
        check(operation, x)


def test_the_value_may_be_on_the_device():
    x = torch.zeros(3, device=DEVICE)
    assert x.fill_(torch.tensor(2.0, device=DEVICE)).cpu().tolist() == [2] * 3
    mask = torch.tensor([True, False, True], device=DEVICE)
    assert x.masked_fill_(mask, torch.tensor(5.0, device=DEVICE)).cpu().tolist() == [5, 2, 5]


def test_a_number_on_the_host_is_filled_with_one_of_the_device():
    number = torch.tensor(0.0)
    assert number.fill_(torch.tensor(2.0, device=DEVICE)).item() == 2


@pytest.mark.parametrize("value", [3, torch.tensor(3.0), torch.tensor(3.0, device=DEVICE)], ids=str)
def test_a_number_on_the_host_is_not_filled_under_a_mask_of_the_device(value):
    number = torch.tensor(0.0)
    with pytest.raises(RuntimeError, match="same device"):
        number.masked_fill_(torch.tensor(True, device=DEVICE), value)
    assert number.item() == 0


def test_a_value_on_the_host_may_change_after_the_launch(gate):
    x, value = torch.zeros(3, device=DEVICE), torch.tensor(2.0)
    gate.close()
    x.fill_(value)
    value.fill_(9)
    gate.open()
    assert x.cpu().tolist() == [2] * 3


def test_a_mask_is_broadcast():
    x = torch.zeros(2, 3, device=DEVICE)
    x.masked_fill_(torch.tensor([True, False, True], device=DEVICE), 1)
    assert x.cpu().tolist() == [[1, 0, 1]] * 2


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x.fill_(torch.ones(2)),
        lambda x: x.masked_fill_(torch.ones(4, device=DEVICE) > 0, 1),
        lambda x: x.masked_fill_(torch.ones(3, device=DEVICE), 1),
        lambda x: x.masked_fill_(torch.ones(3, device=DEVICE) > 0, torch.ones(3, device=DEVICE)),
        lambda x: x.masked_fill_(torch.ones(3) > 0, 1),
    ],
)
def test_mistakes_are_found_on_the_calling_line(operation):
    with pytest.raises(RuntimeError):
        operation(torch.zeros(3, device=DEVICE))
    torch.openreg.synchronize()
