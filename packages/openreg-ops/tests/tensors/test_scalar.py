# SPDX-License-Identifier: BSD-3-Clause
"""Reading one element on the host waits for the kernels before it and gives the right value."""

import pytest
import torch
from parity import DEVICE, check_failure

pytestmark = pytest.mark.no_fallback

NUMBERS = {
    torch.uint8: 200,
    torch.int8: -100,
    torch.int16: -30000,
    torch.int32: -(2**31),
    torch.int64: 2**62 + 1,
    torch.uint16: 60000,
    torch.uint32: 2**32 - 1,
    torch.uint64: 2**63 + 5,
    torch.bool: True,
    torch.float16: 1.5,
    torch.bfloat16: -2.25,
    torch.float32: 3.1415927410125732,
    torch.float64: 2.718281828459045,
    torch.complex64: 1 + 2j,
    torch.complex128: -3.5j,
    torch.float8_e4m3fn: 1.75,
    torch.float8_e5m2: -0.5,
}
if hasattr(torch, "bcomplex32"):  # since PyTorch 2.14
    NUMBERS[torch.bcomplex32] = 1 - 2j


@pytest.mark.covers("registration.the minimal set of operators")
@pytest.mark.filterwarnings("ignore:BComplex32 support is experimental")
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_every_dtype(dtype):
    x = torch.tensor([0, NUMBERS[dtype]], dtype=dtype).to(DEVICE)
    number = x[1].item()
    assert number == NUMBERS[dtype]
    assert type(number) is type(NUMBERS[dtype])


def test_item_waits_for_the_kernels_before_it(gate):
    x = torch.zeros(1, device=DEVICE)
    gate.close()
    x.fill_(4)
    gate.open_soon()
    assert x.item() == 4
    assert gate.is_open


def test_item_waits_for_the_current_stream_of_the_tensors_device(gate):
    x = torch.zeros(1, device="openreg:1")
    gate.close(torch.openreg.current_stream(1))
    x.fill_(4)
    assert torch.openreg.current_device() == 0
    gate.open_soon()
    assert x.item() == 4
    assert gate.is_open


def test_lazy_bits_are_resolved():
    assert torch.tensor(1 + 2j, device=DEVICE).conj().item() == 1 - 2j
    assert torch.tensor(1 + 2j, device=DEVICE).conj().imag.item() == -2


def test_numbers_for_python():
    x = torch.tensor([3.0], device=DEVICE)
    assert (float(x), int(x), bool(x), x.tolist()) == (3.0, 3, True, [3.0])
    assert f"{x[0]:.1f}" == "3.0"


def test_only_one_element_can_be_read():
    check_failure(torch.Tensor.item, torch.zeros(2))
    check_failure(torch.Tensor.item, torch.zeros(0))
    with pytest.raises(RuntimeError, match="0 elements"):
        torch.ops.aten._local_scalar_dense(torch.zeros(0, device=DEVICE))
