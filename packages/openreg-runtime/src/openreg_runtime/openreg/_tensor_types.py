# SPDX-License-Identifier: BSD-3-Clause
"""``torch.openreg.FloatTensor`` and the like, which ``tensor.type()`` names (source: ``torch.cuda.FloatTensor``).

PyTorch makes such classes for its own devices when it is imported, before it knows of this one. Whatever takes a class,
``tensor.type(...)`` and ``module.type(...)``, reads its name in C, and so the name of these has dots.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

_MODULE = "torch.openreg"

# Names that are older than dtypes, and those that C++ spells in another way.
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
    """The type of these classes. They have no objects: a call makes a tensor, and isinstance() looks at the tensor."""

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
        # torch.FloatTensor.add is the method of every tensor.
        return getattr(torch.Tensor, name)

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, torch.Tensor):
            return False
        return (instance.device.type, instance.dtype, instance.layout) == ("openreg", cls.dtype, cls.layout)

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        """A tensor of sizes, values or a storage, as ``torch.FloatTensor`` makes it, on the current device."""
        return torch.empty(0, dtype=cls.dtype, device="openreg").new(*args, **kwargs)


def _name_of(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    spelled = f"UI{name[2:]}" if name.startswith("uint") else f"{name[0].upper()}{name[1:]}"
    return f"{_NAMES.get(name, spelled)}Tensor"


@cache
def _dtypes() -> dict[str, torch.dtype]:
    """The dtypes that a strided tensor may have, by the name of their class; not those of quantized tensors."""
    found = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    return {_name_of(dtype): dtype for dtype in found if not str(dtype).startswith("torch.q")}


def tensor_type(name: str) -> TensorType | None:
    """The class of this name; None if no dtype has it."""
    dtype = _dtypes().get(name) if name.endswith("Tensor") else None
    if dtype is None:
        return None
    attributes = {"dtype": dtype, "layout": torch.strided, "is_cuda": False, "is_sparse": False}
    return TensorType(f"{_MODULE}.{name}", (), {"__module__": _MODULE, "__qualname__": name, **attributes})
