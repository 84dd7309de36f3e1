# SPDX-License-Identifier: BSD-3-Clause
"""The classes that `tensor.type()` names, such as torch.openreg.FloatTensor, work like those of torch.cuda."""

import pickle
import warnings

import pytest
import torch

DTYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)


def name_of(dtype):
    """What a tensor of this dtype says; None where there are no such tensors on the device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex32 is experimental, and quantized dtypes are deprecated
        try:
            return torch.empty(2, dtype=dtype, device="openreg").type()
        except RuntimeError:  # PyTorch has no name for quantized ones of such a device
            return None


NAMES = {dtype: name_of(dtype) for dtype in DTYPES}


def type_of(dtype):
    return getattr(torch.openreg, NAMES[dtype].removeprefix("torch.openreg."))


@pytest.mark.covers("module.FloatTensor")
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if NAMES[dtype]], ids=str)
def test_what_a_tensor_names_as_its_type_exists(dtype):
    found = type_of(dtype)
    assert found is type_of(dtype)
    assert found.dtype == dtype
    assert f"{found.__module__}.{found.__name__}" == NAMES[dtype]
    assert repr(found) == f"<class '{NAMES[dtype]}'>"
    tensor = torch.empty(0, dtype=dtype, device="openreg:1")
    assert isinstance(tensor, found)
    assert not isinstance(tensor.cpu(), found)
    assert pickle.loads(pickle.dumps(found)) is found


def test_only_quantized_dtypes_have_none():
    assert {str(dtype).removeprefix("torch.") for dtype in DTYPES if NAMES[dtype] is None} == {
        "qint32",
        "qint8",
        "quint2x4",
        "quint4x2",
        "quint8",
    }


def test_the_device_has_the_names_that_torch_cuda_has():
    for name in (name for name in dir(torch.cuda) if name.endswith("Tensor")):
        on_cuda, here = getattr(torch.cuda, name), getattr(torch.openreg, name)
        assert (here.__name__, here.dtype, here.layout) == (on_cuda.__name__, on_cuda.dtype, on_cuda.layout)
        assert not here.is_cuda
        assert not here.is_sparse


def test_another_dtype_is_another_type():
    x = torch.ones(2, device="openreg")
    assert isinstance(x, torch.openreg.FloatTensor)
    assert isinstance(torch.nn.Parameter(x), torch.openreg.FloatTensor)
    assert not isinstance(x, torch.openreg.HalfTensor)
    assert not isinstance(x, torch.FloatTensor)
    assert not isinstance("x", torch.openreg.FloatTensor)
    assert not isinstance(x.cpu(), torch.openreg.FloatTensor)


@pytest.mark.covers("module.FloatTensor")
@pytest.mark.parametrize("wanted", ["torch.openreg.HalfTensor", torch.openreg.HalfTensor])
def test_tensors_and_modules_are_moved_and_converted(wanted):
    for x in (torch.arange(3.0), torch.arange(3.0, device="openreg:0")):
        y = x.type(wanted)
        assert y.type() == "torch.openreg.HalfTensor"
        assert y.cpu().tolist() == [0, 1, 2]
        assert y.type(wanted) is y
    assert torch.nn.Linear(2, 2).type(wanted).weight.type() == "torch.openreg.HalfTensor"


def test_a_call_makes_a_tensor_on_the_current_device():
    with torch.openreg.device(1):
        x = torch.openreg.LongTensor([1, 2])
    assert (str(x.device), x.dtype, x.tolist()) == ("openreg:1", torch.int64, [1, 2])
    assert torch.openreg.FloatTensor(2, 3).shape == (2, 3)
    assert torch.openreg.FloatTensor().numel() == 0
    assert torch.openreg.FloatTensor.add is torch.Tensor.add


def test_other_names_are_missing():
    for name in ("NoSuchTensor", "QInt8Tensor", "Tensor"):
        with pytest.raises(AttributeError, match=rf"torch\.openreg.*{name}"):
            getattr(torch.openreg, name)
