# SPDX-License-Identifier: BSD-3-Clause
"""Every operator in PyTorch's lists of autocast rules for CUDA is treated alike on this device.

The tensors are fake ones, as no operators are installed here: types are right or wrong before a kernel would run. The
package openreg-meta compares the numbers.
"""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.autocast_test_lists import AutocastTestLists

import openreg_amp  # noqa: F401

LOWER = (torch.float16, torch.bfloat16)
# Operators that PyTorch cannot run with fake tensors; test_rules_of_cuda.py has their rules too.
WITHOUT_FAKES = {"cudnn_convolution", "cudnn_convolution_transpose", "gru_cell"}

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated:UserWarning"),
    pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim:UserWarning"),
]


@pytest.fixture(scope="module")
def lists():
    """With arguments on the CPU; tensors made afterwards are fake."""
    found = AutocastTestLists("cpu")
    with FakeTensorMode():
        yield found


def on_device(value, half):
    """A fake of the argument on the device, with `half` for the half-precision type of the lists."""
    if isinstance(value, torch.Tensor):
        dtype = half if value.dtype is torch.float16 else value.dtype
        return torch.empty(value.shape, dtype=dtype, device="openreg")
    return type(value)(on_device(item, half) for item in value) if isinstance(value, list | tuple) else value


def called(name):
    """An operator of the lists: a function, or a method of tensors."""
    owners = [torch.Tensor] if name.startswith("__") else [torch, torch._C._nn, torch._C._linalg]
    return next(getattr(owner, name) for owner in owners if hasattr(owner, name))


def types_of(result):
    return {item.dtype for item in (result if isinstance(result, tuple) else (result,))}


def wrong_types(entries, dtype, expected):
    """The operators of a list whose results have another type than `expected`, with the types they have."""
    wrong = {}
    assert len(entries) > 0
    for name, args, *options in entries:
        if name in WITHOUT_FAKES:
            continue
        kwargs = options[0] if options and isinstance(options[0], dict) else {}
        if name == "einsum":  # its entry has an equation for other arguments
            args = ("ij,jk->ik", *options[0])
        with torch.autocast("openreg", dtype=dtype):
            seen = types_of(called(name)(*on_device(args, dtype), **kwargs))
        if seen != {expected}:
            wrong[name] = seen
    return wrong


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_the_lists_of_lower_precision(lists, dtype):
    entries = lists.torch_fp16 + lists.nn_fp16 + lists.linalg_fp16 + lists.methods_fp16
    assert wrong_types(entries, dtype, dtype) == {}


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_the_lists_of_float32(lists, dtype):
    assert wrong_types(lists.torch_fp32 + lists.nn_fp32 + lists.methods_fp32, dtype, torch.float32) == {}


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_the_list_of_what_autocast_promotes(lists, dtype):
    assert wrong_types(lists.torch_need_autocast_promote, dtype, torch.float32) == {}


def test_the_list_of_what_is_refused(lists):
    assert lists.banned
    for name, args, module in lists.banned:
        with torch.autocast("openreg"), pytest.raises(RuntimeError, match=name):
            getattr(module, name)(*on_device(args, torch.float16))


@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_the_lists_of_what_operators_promote_themselves(lists, dtype):
    assert lists.torch_expect_builtin_promote
    assert lists.methods_expect_builtin_promote
    for name, args, expected in lists.torch_expect_builtin_promote + lists.methods_expect_builtin_promote:
        if name in ("equal", "__div__"):  # not a tensor; not a method of Python 3
            continue
        with torch.autocast("openreg", dtype=dtype):
            assert called(name)(*on_device(args, dtype)).dtype is expected, name
