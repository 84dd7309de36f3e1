# SPDX-License-Identifier: BSD-3-Clause
"""Compares two results of an operator within the tolerance that PyTorch's own tests use for its OpInfo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.testing._comparison import default_tolerances
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo
from torch.utils import _pytree as pytree

from . import device_under_test
from .entries import name_of
from .transfer import tensors_in

# In these tests PyTorch compares a GPU with the CPU; an entry of the table may widen its tolerance for them.
STANDARD_TESTS = ("test_compare_cpu", "test_noncontiguous_samples", "test_out", "test_variant_consistency_eager")
# Minimal tolerances of short dtypes, because a composite operator rounds after each of its operators.
SHORT = {torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 8e-3)}
# Minimal tolerances if the reference was computed in a wider dtype: only the device rounds after every step.
ROUNDED = {torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2), torch.complex64: (1e-5, 1e-5)}


def wider(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Returns the larger relative and the larger absolute tolerance."""
    return max(one[0], other[0]), max(one[1], other[1])


def tolerance_of(op: Any, dtype: torch.dtype) -> tuple[float, float]:
    """Returns (relative, absolute) tolerance: the largest of the OpInfo's, the manifest's and the dtype's default."""
    widest = SHORT.get(dtype) or default_tolerances(dtype)
    for item in op.decorators:
        if not isinstance(item, DecorateInfo) or item.cls_name not in (None, "TestCommon"):
            continue
        if item.test_name not in (None, *STANDARD_TESTS) or (item.dtypes is not None and dtype not in item.dtypes):
            continue
        for decorator in item.decorators:
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                granted = decorator.d[dtype]
                widest = wider(widest, (granted.rtol, granted.atol))
    granted = device_under_test.manifest().operator(op.full_name).tolerances
    return wider(widest, granted.get(name_of(dtype), widest))


def difference(
    ours: Any,
    theirs: Any,
    tolerance: tuple[float, float] | None = None,
    *,
    values: bool = True,
    narrow: torch.dtype | None = None,
    may_be_on_cpu: Sequence[torch.Tensor] = (),
) -> str | None:
    """Returns the difference between the device's result and the reference in one line, or None.

    Without `values`, the numbers are not compared. `narrow` is the dtype of the call if the reference was computed
    in a wider one. `may_be_on_cpu` contains the tensors of the device's result that need not be on the device.
    """
    mine, reference = pytree.tree_leaves(ours), pytree.tree_leaves(theirs)
    if len(mine) != len(reference):
        return f"{len(mine)} results, not {len(reference)}"
    for one, other in zip(mine, reference, strict=True):
        if isinstance(one, torch.Tensor) != isinstance(other, torch.Tensor):
            return f"a {type(one).__name__}, not a {type(other).__name__}"
        found = (
            tensor_difference(one, other, tolerance, values, narrow, may_be_on_cpu)
            if isinstance(one, torch.Tensor)
            else value_difference(one, other, tolerance, values)
        )
        if found:
            return found
    return None


def tensor_difference(
    one: Any,
    other: Any,
    tolerance: tuple[float, float] | None,
    values: bool,
    narrow: torch.dtype | None,
    may_be_on_cpu: Sequence[torch.Tensor],
) -> str | None:
    """Returns the difference of device, shape, dtype, layout or numbers between two tensors, or None."""
    if one.device.type != device_under_test.device() and not any(one is tensor for tensor in may_be_on_cpu):
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
        tolerance = wider(tolerance or (0, 0), ROUNDED.get(one.dtype, (0, 0)))
    return close(one, other, tolerance)


def value_difference(one: Any, other: Any, tolerance: tuple[float, float] | None, values: bool) -> str | None:
    """Returns the difference between two values that are no tensors, or None."""
    if type(one) is not type(other):
        return f"a {type(one).__name__}, not a {type(other).__name__}"
    if isinstance(one, (bool, int, float, complex)):
        return close(one, other, tolerance) if values else None
    if isinstance(one, torch.device):
        return None if one.type == device_under_test.device() else f"the result names {one}"
    return None if one == other else f"{one!r}, not {other!r}"


def close(one: Any, other: Any, tolerance: tuple[float, float] | None) -> str | None:
    """Returns the difference of two tensors or numbers beyond the tolerance, or None. Integer tensors must be equal."""
    rtol, atol = tolerance or (0, 0)
    if isinstance(one, torch.Tensor):
        exact = not (one.is_floating_point() or one.is_complex())
        rtol, atol = (0, 0) if exact else map(max, (rtol, atol), default_tolerances(one, other))
        if one.dtype == other.dtype == torch.bool and one.layout == other.layout == torch.strided:
            # As bytes, because a bool that was never written may be neither 0 nor 1, and == then returns anything.
            one, other = one.view(torch.uint8), other.view(torch.uint8)
    try:
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return "; ".join(lines[:3])[:300]
    return None


def is_on_one_device(values: Any) -> bool:
    """Returns True unless the tensors in nested values are on different types of devices."""
    return len({tensor.device.type for tensor in tensors_in(values)}) < 2
