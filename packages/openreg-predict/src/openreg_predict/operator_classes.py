# SPDX-License-Identifier: BSD-3-Clause
"""Determines the class, the launches and the FLOP per element of operators from their names.

A class, such as "elementwise", groups operators that reach the same fraction of a chip's peaks (CLASSES of
description.py). work.py has rules for the operators whose work these numbers do not determine, such as matrix products.
"""

from __future__ import annotations

import re
from typing import Any

import torch

# Operators without a kernel launch: they return a view, allocate, or read metadata.
_FREE = re.compile(
    r"aten::(_unsafe_view|_reshape_alias|empty\w*|new_empty\w*|detach_?|alias|lift\w*|is_\w+|"
    r"_version|set_|resize_|record_stream|_has_compatible_shallow_copy_type|_nested_\w*view\w*|sym_\w+|"
    r"_efficientzerotensor|transpose_|t_|squeeze_|unsqueeze_|as_strided_|swap(axes|dims)_|unsafe_split\w*|pin_memory|_pin_memory|_fused_sdp_choice|result_type|item)"
    r"|c10d::barrier|_c10d_functional::(wait_tensor|_wrap_tensor_autograd)|prim::device"
)
# The first pattern that matches the name determines the class.
_CLASSES = [
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"aten::_?(fused_(adam|adamw|sgd|adagrad)\w*|foreach_\w+|amp_\w+)", "optimizer"),
        (r"aten::(_log_softmax|_softmax|_safe_softmax|logsumexp|_masked_softmax)\w*", "softmax"),
        (r"aten::_?(native_|cudnn_|miopen_|fused_)?(layer|batch|group|rms|instance)_norm\w*", "normalization"),
        (r"(aten::_(native_batch_norm|batch_norm)|openreg_predict::rms_norm)\w*", "normalization"),
        (r"aten::(native_dropout|bernoulli|normal|uniform|rand|exponential|multinomial|geometric)\w*", "random"),
        (r"aten::(randn|randint|randperm|log_normal|cauchy|random)\w*", "random"),
        (r"aten::(native_dropout_backward|_fused_dropout)", "elementwise"),
        (r"aten::(embedding|index|gather|scatter|put|take|select_scatter|slice_scatter|masked_)\w*", "embedding"),
        (r"aten::(_unsafe_index|_index_put|_embedding_bag)\w*", "embedding"),
        (
            r"aten::_?(adaptive_avg_pool|adaptive_max_pool|avg_pool|max_pool|upsample|fractional_max_pool)\w*",
            "pooling",
        ),
        (
            (
                r"aten::(sum|mean|max|min|equal|amax|amin|aminmax|argmax|argmin|prod|any|all|var|std|norm|linalg_vector_norm|"
                r"cumsum|cumprod|topk|sort|nll_loss|cross_entropy|mse_loss|median|count_nonzero|nansum|var_mean|std_mean|"
                r"logcumsumexp|cummax|cummin|kthvalue|mode|bincount|histc|unique|_unique2|unique_dim|trace|"
                r"binary_cross_entropy|smooth_l1_loss|huber_loss|kl_div|l1_loss|multi_margin_loss|soft_margin_loss)\w*"
            ),
            "reduction",
        ),
        (
            (
                r"aten::(clone|contiguous|cat|stack|fill|zero|zeros|ones|full|arange|linspace|copy|constant_pad|flip|"
                r"roll|repeat|tril|triu|eye|scalar_tensor|new_zeros|new_ones|new_full|zeros_like|ones_like|full_like|"
                r"reflection_pad|replication_pad|im2col|col2im|pixel_shuffle|masked_select|nonzero|unfold_backward|"
                r"slice_backward|select_backward|diagonal_backward|as_strided_scatter|tril_indices|triu_indices|view_copy|"
                r"pixel_unshuffle|split_with_sizes_copy|diag_embed|complex|logspace)\w*"
            ),
            "copy",
        ),
        (r"aten::_?(thnn_fused_(lstm|gru)_cell)\w*", "elementwise"),
    )
]
_FILLS = re.compile(
    r"aten::(fill_|zero_|normal_|uniform_|bernoulli_|random_|exponential_|log_normal_|cauchy_|geometric_|copy_|"
    r"_foreach_zero_|_foreach_copy_|arange|full|ones|zeros|linspace|eye|rand\w*)"
)


def is_free(function: Any, name: str) -> bool:
    """Returns True if a call launches no kernel."""
    return bool(function.is_view) or _FREE.fullmatch(name) is not None


def only_fills(name: str) -> bool:
    """Returns True if the operator overwrites the tensors that it updates without reading them."""
    return _FILLS.fullmatch(name) is not None


def class_of(function: Any, name: str) -> str | None:
    """Returns the class of an operator, or None for an unknown operator."""
    for pattern, kind in _CLASSES:
        if pattern.fullmatch(name):
            return kind
    if torch.Tag.pointwise in function.tags:
        return "elementwise"
    base = name.removesuffix("_")
    if _POINTWISE.fullmatch(base):
        return "elementwise"
    return None


# Pointwise operators without PyTorch's tag.
_POINTWISE = re.compile(
    r"aten::(\w+_backward|where|add|addcmul|addcdiv|lerp|masked_fill|bitwise_\w+|logical_\w+|_conj\w*|polar|"
    r"isin|clamp\w*|heaviside|nan_to_num|glu|silu|gelu|mish|_prelu_kernel|_weight_norm_interface)"
)


def kernels_of(name: str, operands: int) -> int:
    """Returns the number of kernels that a call launches. One kernel over lists of tensors takes up to 100 of them."""
    if name.startswith(("aten::_foreach", "aten::_fused", "aten::_amp_foreach")):
        return max(1, -(-operands // 100))
    return 1


# Approximate FLOP per element of functions that are computed by polynomials. All others have 1.
_POLYNOMIAL = 20
_POLYNOMIALS = re.compile(
    r"aten::_?(foreach_)?(exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|tanh|sigmoid|gelu|silu|mish|erf|erfc|erfinv|"
    r"softplus|elu|celu|pow|atan2?|asin|acos|sinh|cosh|softmax|log_softmax|logsumexp|log_sigmoid_forward|lgamma|"
    r"thnn_fused_lstm_cell|thnn_fused_gru_cell)(_backward|_backward_data)?_?"
)


def flops_per_element(name: str) -> int:
    """Returns the approximate FLOP of an operator per element."""
    return _POLYNOMIAL if _POLYNOMIALS.fullmatch(name) else 1
