# SPDX-License-Identifier: BSD-3-Clause
"""Creates classes such as ``torch.openreg.FloatTensor``, the counterpart of ``torch.cuda.FloatTensor``.

``tensor.type()`` returns their names. PyTorch creates such classes only for its own devices. ``tensor.type(...)`` and
``module.type(...)`` accept a class, and find its dtype by ``tp_name`` in the C structure of the class. So the first
argument of ``type()`` is the full dotted name, such as ``torch.openreg.FloatTensor``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

_MODULE = "torch.openreg"

# The prefixes of class names that do not follow from the name of the dtype.
_NAMES = {
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "bfloat16": "BFloat16",
    "bcomplex32": "BComplex32",
    "complex32": "ComplexHalf",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


class TensorType(type):
    """The metaclass of these classes.

    Calling a class returns a tensor. isinstance() is true for tensors of its dtype and layout on the device.
    """

    dtype: torch.dtype
    layout: torch.layout
    is_cuda: bool
    is_sparse: bool

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        return cls.__qualname__

    def __repr__(cls) -> str:
        return f"<class '{_MODULE}.{cls.__qualname__}'>"

    def __getattr__(cls, name: str) -> Any:
        # As for torch.FloatTensor, attributes such as `add` are those of torch.Tensor.
        return getattr(torch.Tensor, name)

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, torch.Tensor):
            return False
        return (instance.device.type, instance.dtype, instance.layout) == ("openreg", cls.dtype, cls.layout)

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Returns a tensor of sizes, values or a storage on the current device, as ``torch.FloatTensor(...)`` does."""
        return torch.empty(0, dtype=cls.dtype, device="openreg").new(*args, **kwargs)


def _name_of(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    spelled = f"UI{name[2:]}" if name.startswith("uint") else f"{name[0].upper()}{name[1:]}"
    return f"{_NAMES.get(name, spelled)}Tensor"


@cache
def _dtypes() -> dict[str, torch.dtype]:
    """Returns the dtypes of strided tensors by the name of their class, without those of quantized tensors."""
    found = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    return {_name_of(dtype): dtype for dtype in found if not str(dtype).startswith("torch.q")}


def tensor_type(name: str) -> TensorType | None:
    """Returns the class of this name, or None if no dtype has it."""
    dtype = _dtypes().get(name) if name.endswith("Tensor") else None
    if dtype is None:
        return None
    attributes = {"dtype": dtype, "layout": torch.strided, "is_cuda": False, "is_sparse": False}
    return TensorType(f"{_MODULE}.{name}", (), {"__module__": _MODULE, "__qualname__": name, **attributes})
