# SPDX-License-Identifier: BSD-3-Clause
"""An assertion about data on the device does not wait. A false one is reported at the next wait."""

import pytest
import torch
from parity import DEVICE, is_busy

pytestmark = pytest.mark.no_fallback


def test_a_true_assertion_does_not_wait(gate):
    x = torch.ones((), device=DEVICE)
    gate.close()
    torch._assert_async(x)
    torch._assert_async(x > 0, "must be positive")
    assert is_busy()


@pytest.mark.parametrize(("arguments", "text"), [((), "nonzero"), (("mine: zero",), "mine: zero")])
def test_a_false_assertion_is_found_at_the_next_wait(arguments, text):
    torch._assert_async(torch.zeros(1, device=DEVICE), *arguments)
    with pytest.raises(torch.AcceleratorError, match=text):
        torch.openreg.synchronize()
    torch.openreg.reset_device()


def test_an_assertion_in_a_programs_flow_of_data_passes_its_token_on(gate):
    check = torch.ops.aten._functional_assert_async.msg
    token = torch.tensor([2.0, 3.0], device=DEVICE)
    passed = check(token.sum() > 0, "must be positive", token)
    assert passed.tolist() == [2, 3]
    assert passed.data_ptr() != token.data_ptr()
    gate.close()  # or the copy of the token may already meet the failure
    check(token.sum() < 0, "must be negative", token)
    gate.open()
    with pytest.raises(torch.AcceleratorError, match="must be negative"):
        torch.openreg.synchronize()
    torch.openreg.reset_device()


def test_only_one_value_can_be_asserted():
    with pytest.raises(RuntimeError, match=r"more than one"):
        torch._assert_async(torch.ones(2, device=DEVICE))
    with pytest.raises(RuntimeError, match=r"no values"):
        torch._assert_async(torch.ones(0, device=DEVICE))
