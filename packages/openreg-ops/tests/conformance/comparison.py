# SPDX-License-Identifier: BSD-3-Clause
"""Whether two results are the same, within the tolerance that PyTorch's own tests grant the entry."""

import torch
from torch.testing._comparison import default_tolerances
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo
from torch.utils import _pytree as pytree

from .entries import name_of
from .exceptions import TOLERANCES
from .outcome import DEVICE
from .transfer import tensors_in

# PyTorch compares a GPU with the CPU in these tests; an entry may widen its tolerance for them.
STANDARD_TESTS = ("test_compare_cpu", "test_noncontiguous_samples", "test_out", "test_variant_consistency_eager")
# Granted to short dtypes: an operator that is made of others is rounded after each of them.
SHORT = {torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 8e-3)}
# Granted where the reference was computed in a wider dtype: every step of ours was rounded, none of its.
ROUNDED = {torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2), torch.complex64: (1e-5, 1e-5)}


def tolerance_of(op, dtype):
    """Relative and absolute tolerance: what the table grants, at least PyTorch's default for the dtype."""
    widest = SHORT.get(dtype) or default_tolerances(dtype)
    for item in op.decorators:
        if not isinstance(item, DecorateInfo) or item.cls_name not in (None, "TestCommon"):
            continue
        if item.test_name not in (None, *STANDARD_TESTS) or (item.dtypes is not None and dtype not in item.dtypes):
            continue
        for decorator in item.decorators:
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                granted = decorator.d[dtype]
                widest = tuple(map(max, widest, (granted.rtol, granted.atol)))
    _, granted = TOLERANCES.get(op.full_name, ("", {}))
    return tuple(map(max, widest, granted.get(name_of(dtype), widest)))


def difference(ours, theirs, tolerance=None, *, values=True, narrow=None, host=()):
    """What distinguishes our result from the reference, in one line, or None.

    `narrow` is the dtype whose place a wider one took in the reference; `host` are tensors that may be on the CPU.
    """
    mine, reference = pytree.tree_leaves(ours), pytree.tree_leaves(theirs)
    if len(mine) != len(reference):
        return f"{len(mine)} results, not {len(reference)}"
    for one, other in zip(mine, reference, strict=True):
        if isinstance(one, torch.Tensor) != isinstance(other, torch.Tensor):
            return f"a {type(one).__name__}, not a {type(other).__name__}"
        found = (
            tensor_difference(one, other, tolerance, values, narrow, host)
            if isinstance(one, torch.Tensor)
            else value_difference(one, other, tolerance, values)
        )
        if found:
            return found
    return None


def tensor_difference(one, other, tolerance, values, narrow, host):
    if one.device.type != DEVICE and not any(one is tensor for tensor in host):
        return f"the result is on {one.device}"
    if one.shape != other.shape:
        return f"shape {tuple(one.shape)}, not {tuple(other.shape)}"
    if narrow is None and one.dtype != other.dtype:
        return f"dtype {one.dtype}, not {other.dtype}"
    if one.layout != other.layout:
        return f"layout {one.layout}, not {other.layout}"
    if not values:
        return None
    one, other = one.detach().cpu(), other.detach()
    if narrow is not None:
        other = other.to(one.dtype)
        tolerance = tuple(map(max, tolerance, ROUNDED.get(one.dtype, (0, 0))))
    return close(one, other, tolerance)


def value_difference(one, other, tolerance, values):
    if type(one) is not type(other):
        return f"a {type(one).__name__}, not a {type(other).__name__}"
    if isinstance(one, (bool, int, float, complex)):
        return close(one, other, tolerance) if values else None
    if isinstance(one, torch.device):
        return None if one.type == DEVICE else f"the result names {one}"
    return None if one == other else f"{one!r}, not {other!r}"


def close(one, other, tolerance):
    rtol, atol = tolerance or (0, 0)
    if isinstance(one, torch.Tensor):
        exact = not (one.is_floating_point() or one.is_complex())
        rtol, atol = (0, 0) if exact else map(max, (rtol, atol), default_tolerances(one, other))
    try:
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return "; ".join(lines[:3])[:300]
    return None


def is_on_one_device(values):
    return len({tensor.device.type for tensor in tensors_in(values)}) < 2
