# SPDX-License-Identifier: BSD-3-Clause
"""DLPack: sharing tensors of the device with other libraries, without a copy.

``@covers`` takes the keys of the rows of hooks.toml (openreg-doctor) that the test covers. A row is a hook, a name or a
registration that a backend provides and PyTorch uses.
"""

import pytest
import torch
from torch.utils import dlpack

from openreg_testing.conformance.harness import DeviceUnderTest, covers

EXTENSION = 12  # kDLExtDev, DLPack's number for all devices that it does not name
CPU = 1


@covers("registration.DLPack")
def test_a_tensor_tells_its_device(device: DeviceUnderTest) -> None:
    """Tensor.__dlpack_device__() returns DLPack's number for extension devices, and the index."""
    kind, index = device.tensor().__dlpack_device__()
    assert (int(kind), index) == (CPU if device.is_cpu else EXTENSION, 0)


@covers("registration.DLPack")
def test_a_capsule_shares_memory(device: DeviceUnderTest) -> None:
    """A tensor from a capsule of torch.utils.dlpack shares the memory of the original tensor."""
    x = device.tensor(1, 2, 3)
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))  # type: ignore[attr-defined]
    assert y.device == x.device
    y[0] = 9
    assert x.tolist() == [9, 2, 3]


@covers("registration.DLPack")
def test_a_tensor_is_taken_without_a_copy(device: DeviceUnderTest) -> None:
    """torch.from_dlpack(tensor) shares the tensor's memory."""
    x = device.tensor(1, 2, 3)
    y = torch.from_dlpack(x)  # type: ignore[attr-defined]
    assert y.device == x.device
    y[0] = 9
    assert x.tolist() == [9, 2, 3]


@covers("registration.DLPack")
def test_strides_are_kept(device: DeviceUnderTest) -> None:
    """torch.from_dlpack(tensor) keeps the sizes and strides of a view."""
    x = torch.arange(12.0).view(3, 4).to(device.first).t()[1:]
    y = torch.from_dlpack(x)  # type: ignore[attr-defined]
    assert y.shape == x.shape
    assert y.stride() == x.stride()
    assert torch.equal(y.cpu(), x.cpu())


@covers("registration.DLPack")
@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.uint8,
        torch.bool,
        torch.complex64,
    ],
    ids=lambda dtype: str(dtype).removeprefix("torch."),
)
def test_dtypes_are_kept(device: DeviceUnderTest, dtype: torch.dtype) -> None:
    """torch.from_dlpack(tensor) keeps every common dtype."""
    x = torch.tensor([0, 1, 1]).to(dtype).to(device.first)
    y = torch.from_dlpack(x)  # type: ignore[attr-defined]
    assert y.dtype == dtype
    assert torch.equal(y.cpu(), x.cpu())


@covers("registration.DLPack")
def test_memory_outlives_the_tensor(device: DeviceUnderTest) -> None:
    """Shared memory lives as long as the last tensor that uses it."""
    x = device.tensor(1, 2, 3)
    y = torch.from_dlpack(x)  # type: ignore[attr-defined]
    del x
    torch.full((3,), 8.0, device=device.first)
    assert y.tolist() == [1, 2, 3]
