# SPDX-License-Identifier: BSD-3-Clause
"""Factory functions create tensors of the requested dtype, layout, memory format and device."""

import pytest
import torch

pytestmark = pytest.mark.no_fallback

DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]
DTYPES += [torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
DTYPES += [torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype):
    x = torch.empty(2, 3, dtype=dtype, device="openreg")
    assert (x.dtype, x.shape, x.stride()) == (dtype, (2, 3), (3, 1))
    assert x.untyped_storage().nbytes() == 6 * x.element_size()
    assert torch.tensor([1, 0]).to(dtype).to("openreg").cpu().tolist() == [1, 0]


def test_the_default_dtype_is_pytorchs():
    assert torch.empty(1, device="openreg").dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.empty(1, device="openreg").dtype == torch.float64
        assert torch.empty_strided((1,), (1,), device="openreg").dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("memory_format", "shape"),
    [
        (torch.contiguous_format, (2, 3, 4, 5)),
        (torch.channels_last, (2, 3, 4, 5)),
        (torch.channels_last_3d, (2, 3, 4, 5, 6)),
    ],
    ids=str,
)
def test_memory_formats(memory_format, shape):
    x = torch.empty(shape, device="openreg", memory_format=memory_format)
    assert x.stride() == torch.empty(shape, memory_format=memory_format).stride()
    assert x.is_contiguous(memory_format=memory_format)
    assert torch.empty_like(x).stride() == x.stride()


def test_strides_are_taken_as_given():
    x = torch.empty_strided((2, 3), (1, 4), device="openreg")
    assert x.stride() == (1, 4)
    assert x.untyped_storage().nbytes() == 4 * (1 + 1 + 2 * 4)


def test_no_elements_and_no_dimensions():
    assert torch.empty(0, device="openreg").untyped_storage().nbytes() == 0
    assert torch.empty(3, 0, 2, device="openreg").shape == (3, 0, 2)
    x = torch.empty((), device="openreg")
    assert (x.dim(), x.untyped_storage().nbytes()) == (0, 4)


@pytest.mark.covers("registration.the minimal set of operators")
def test_every_factory_makes_its_tensor_here():
    like = torch.ones(2, 3)
    factories = {
        "zeros": torch.zeros(2, 3, device="openreg"),
        "ones": torch.ones(2, 3, device="openreg"),
        "full": torch.full((2, 3), 7.0, device="openreg"),
        "tensor": torch.tensor([[1.0, 2, 3], [4, 5, 6]], device="openreg"),
        "as_tensor": torch.as_tensor(like, device="openreg"),
        "arange": torch.arange(6.0, device="openreg").view(2, 3),
        "zeros_like": torch.zeros_like(like, device="openreg"),
        "new_full": torch.empty(1, device="openreg").new_full((2, 3), 2.0),
        "rand": torch.rand(2, 3, device="openreg"),
    }
    for name, x in factories.items():
        assert (x.device, x.shape) == (torch.device("openreg:0"), (2, 3)), name
    assert factories["full"].cpu().tolist() == [[7.0] * 3] * 2
    assert factories["tensor"].cpu().tolist() == [[1.0, 2, 3], [4, 5, 6]]


def test_the_device_argument_and_the_current_device():
    assert torch.empty(1, device="openreg").device.index == 0
    assert torch.empty(1, device="openreg:1").device.index == 1
    assert torch.empty(1, device=1).device == torch.device("openreg:1")
    with torch.openreg.device(1):
        assert torch.empty(1, device="openreg").device.index == 1
        assert torch.empty(1, device="openreg:0").device.index == 0
    with torch.device("openreg:1"):
        assert torch.zeros(2).device.index == 1
    assert torch.openreg.current_device() == 0


@pytest.mark.parametrize("index", [2, 7, 100])
@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.empty(2, device=device),
        lambda device: torch.empty_strided((2,), (1,), device=device),
        lambda device: torch.zeros(2, device=device),
        lambda device: torch.ones(2).to(device),
        lambda device: torch.arange(3, device=device),
    ],
)
def test_a_device_that_is_not_there(make, index):
    with pytest.raises(RuntimeError, match="out of range") as error:
        make(f"openreg:{index}")
    assert str(index) in str(error.value)
    assert torch.openreg.current_device() == 0


def test_a_layout_that_it_does_not_make():
    with pytest.raises(NotImplementedError, match=r"aten::empty: .*Jagged.*torch\.nested"):
        torch.empty(2, 2, layout=torch.jagged, device="openreg")


def test_device_memory_cannot_be_pinned():
    for make in (torch.empty, torch.zeros):
        with pytest.raises(RuntimeError, match="CPU"):
            make(2, device="openreg", pin_memory=True)
    with pytest.raises(RuntimeError, match="CPU"):
        torch.empty_strided((2,), (1,), device="openreg", pin_memory=True)


def test_a_negative_size():
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.empty(-1, device="openreg")


def test_deterministic_fill_is_pytorchs():
    torch.use_deterministic_algorithms(True)
    try:
        filled = [torch.empty(3, device="openreg"), torch.ones(2, device="openreg").resize_(4)]
        numbers = torch.empty_strided((2,), (1,), dtype=torch.int8, device="openreg")
    finally:
        torch.use_deterministic_algorithms(False)
    assert filled[0].isnan().all().item()
    assert filled[1].isnan().cpu().tolist() == [False, False, True, True]
    assert numbers.cpu().tolist() == [127, 127]
