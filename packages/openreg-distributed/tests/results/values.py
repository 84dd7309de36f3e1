# SPDX-License-Identifier: BSD-3-Clause
"""Values that each rank can compute for every rank, and the layouts that tensors get in memory."""

from __future__ import annotations

import zlib

import numpy as np
import torch

FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
COMPLEX = ["complex64", "complex128"]
EVERY = [*FLOATS, *INTEGERS, *COMPLEX, "bool", "complex32"]

LAYOUTS = ["contiguous", "transposed", "strided", "offset", "number", "empty"]


def exact(shape: tuple[int, ...], dtype: str, rank: int, what: str = "") -> np.ndarray:
    """Small numbers, of which sums and products of four ranks are exact in every dtype that holds them."""
    random = np.random.default_rng([rank, *shape, zlib.crc32((dtype + what).encode())])
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype in COMPLEX or dtype == "complex32":
        return random.integers(-3, 4, shape) + 1j * random.integers(-3, 4, shape)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return random.integers(-2, 3, shape).astype(float)


def shape_of(layout: str) -> tuple[int, ...]:
    """Of the tensors of a layout."""
    return {"number": (), "empty": (0, 3)}.get(layout, (4, 6))


def laid_out(array: np.ndarray, dtype: str, layout: str) -> torch.Tensor:
    """A tensor on the current device with these values."""
    target = getattr(torch, dtype)
    if dtype in INTEGERS or dtype == "bool":
        source = torch.from_numpy(np.array(array, order="C"))
    elif np.iscomplexobj(array):
        source = torch.from_numpy(np.asarray(array, dtype=np.complex128)).to(target)
    else:
        source = torch.from_numpy(np.asarray(array, dtype=np.float64)).to(target)
    shape = source.shape
    if layout == "transposed":
        result = torch.empty(shape[::-1], dtype=target, device="openreg").t()
    elif layout == "strided":
        result = torch.empty((shape[0] * 2, shape[1] * 3), dtype=target, device="openreg")[::2, ::3]
    elif layout == "offset":
        count = source.numel()
        result = torch.empty(count + 5, dtype=target, device="openreg")[5:].view(shape)
    else:
        result = torch.empty(shape, dtype=target, device="openreg")
    return result.copy_(source.to("openreg"))


def read(tensor: torch.Tensor) -> np.ndarray:
    """The values, as NumPy has them; float64 for dtypes that it has not."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.complex32:
        return tensor.to(torch.complex64).numpy()
    if tensor.dtype in (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        return tensor.to(torch.float64).numpy()
    return tensor.numpy()


def as_read(array: np.ndarray, dtype: str) -> np.ndarray:
    """The array in the dtype that ``read`` gives for it."""
    if dtype in INTEGERS or dtype == "bool":
        return array.astype(dtype)
    if np.iscomplexobj(array):
        return array.astype("complex64" if dtype == "complex32" else dtype)
    return array.astype("float32" if dtype == "float32" else "float64")


def placed(array: np.ndarray, dtype: str, order: list[int], steps: list[int], offset: int) -> torch.Tensor:
    """A tensor with these values whose dimensions lie in memory in an order, with gaps, behind an offset."""
    source = laid_out(array, dtype, "contiguous")
    room = [source.shape[i] * steps[i] for i in order]
    count = int(np.prod(room, dtype=int))
    memory = torch.zeros(count + offset, dtype=source.dtype, device="openreg")[offset:].view(room)
    apart = memory[tuple(slice(None, None, steps[i]) for i in order)]
    return apart.permute(np.argsort(order).tolist()).copy_(source)
