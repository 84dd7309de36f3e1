# SPDX-License-Identifier: BSD-3-Clause
"""Emulates autocast on ``meta``, which PyTorch's autocast does not support.

While :func:`emulated` is entered, ``torch.autocast`` of any device only records its dtype. :func:`cast`, which the mode
``fused.Fused`` calls for each function, then casts the operands as on an accelerator. Matrix products use the narrow
dtype, functions that lose precision use float32, and a parameter is cast once per outermost block. So a script that
uses autocast for its device runs on meta.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree

# The names of functions and tensor methods: NARROW of those whose operands are cast to the narrow dtype (float16 or
# bfloat16), WIDE of those whose operands are cast to float32.
NARROW = frozenset(
    [
        "matmul",
        "mm",
        "bmm",
        "mv",
        "addmm",
        "addbmm",
        "baddbmm",
        "addmv",
        "addr",
        "linear",
        "bilinear",
        "einsum",
        "chain_matmul",
        "multi_dot",
        "vecdot",
        "prelu",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_tbc",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "convolution",
        "scaled_dot_product_attention",
        "lstm",
        "gru",
        "rnn_tanh",
        "rnn_relu",
        "lstm_cell",
        "gru_cell",
        "rnn_tanh_cell",
        "rnn_relu_cell",
    ]
)
WIDE = frozenset(
    [
        "acos",
        "asin",
        "cosh",
        "sinh",
        "tan",
        "erfinv",
        "exp",
        "expm1",
        "log",
        "log10",
        "log2",
        "log1p",
        "reciprocal",
        "rsqrt",
        "pow",
        "softplus",
        "layer_norm",
        "group_norm",
        "norm",
        "cosine_similarity",
        "nll_loss",
        "cross_entropy",
        "cross_entropy_loss",
        "hinge_embedding_loss",
        "kl_div",
        "l1_loss",
        "mse_loss",
        "smooth_l1_loss",
        "huber_loss",
        "margin_ranking_loss",
        "multilabel_margin_loss",
        "soft_margin_loss",
        "triplet_margin_loss",
        "multi_margin_loss",
        "binary_cross_entropy_with_logits",
        "poisson_nll_loss",
        "cosine_embedding_loss",
        "dist",
        "pdist",
        "cdist",
        "renorm",
        "logsumexp",
        "softmax",
        "log_softmax",
        "prod",
        "cumprod",
        "cumsum",
        "sum",
    ]
)


class _Blocks:
    """The state of the emulation.

    ``depth`` counts nested calls of :func:`emulated`. ``dtypes`` has the dtype of each open autocast block, or None for
    a disabled one. ``parameters`` maps (id, dtype) to a parameter and its cast copy.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.dtypes: list[torch.dtype | None] = []
        self.parameters: dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]] = {}


_blocks = _Blocks()


def cast(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments in the dtype that the innermost autocast block requires for the function.

    Returns them unchanged outside of blocks, in a disabled block, and for a function that autocast does not affect.
    """
    narrow = _blocks.dtypes[-1] if _blocks.dtypes else None
    if narrow is None:
        return args, dict(kwargs)
    name = _function_name(function)
    if name in NARROW:
        dtype = narrow
    elif name in WIDE:
        dtype = torch.float32
    else:
        return args, dict(kwargs)
    changed: tuple[tuple[Any, ...], dict[str, Any]] = _pytree.tree_map_only(
        Tensor, lambda tensor: _cast_tensor(tensor, dtype), (args, dict(kwargs))
    )
    return changed


def _function_name(function: Any) -> str:
    """Returns the name of a function, and "matmul" or "pow" for the Python operators such as ``__rmatmul__``."""
    name = str(getattr(function, "__name__", ""))
    return name.strip("_").removeprefix("r") if name in ("__matmul__", "__rmatmul__", "__pow__", "__rpow__") else name


def _cast_tensor(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns a floating-point tensor on meta in a dtype; a parameter is cast once. Returns others unchanged."""
    if tensor.device.type != "meta" or tensor.dtype == dtype or not tensor.is_floating_point():
        return tensor
    if tensor.dtype == torch.float64:
        return tensor
    if not (tensor.is_leaf and tensor.requires_grad):
        return tensor.to(dtype)
    key = (id(tensor), dtype)
    if key not in _blocks.parameters:
        _blocks.parameters[key] = (
            tensor,
            tensor.to(dtype),
        )  # a reference to the parameter, so that its id stays unique
    return _blocks.parameters[key][1]


# The next three functions replace methods of torch.autocast. `block` is the object, one autocast block.


def _initialize(
    block: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
) -> None:
    del cache_enabled
    default = torch.bfloat16 if device_type == "cpu" else torch.float16
    block.device, block.fast_dtype, block._enabled = device_type, dtype or default, enabled


def _enter(block: Any) -> Any:
    _blocks.dtypes.append(block.fast_dtype if getattr(block, "_enabled", True) else None)
    return block


def _exit(block: Any, *details: object) -> None:
    del block, details
    _blocks.dtypes.pop()
    if not _blocks.dtypes:
        _blocks.parameters.clear()


@contextmanager
def emulated() -> Iterator[None]:
    """Replaces ``torch.autocast`` of every device by the emulation of this module. May be nested. Not thread-safe."""
    kind: Any = torch.amp.autocast_mode.autocast
    originals = {name: getattr(kind, name) for name in ("__init__", "__enter__", "__exit__")}
    if _blocks.depth == 0:
        kind.__init__, kind.__enter__, kind.__exit__ = _initialize, _enter, _exit
    _blocks.depth += 1
    try:
        yield
    finally:
        _blocks.depth -= 1
        if _blocks.depth == 0:
            for name, original in originals.items():
                setattr(kind, name, original)
            _blocks.dtypes.clear()
            _blocks.parameters.clear()
