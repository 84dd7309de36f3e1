# SPDX-License-Identifier: BSD-3-Clause
"""Names models and operators of the workloads, for the scripts that do not import torch."""

MODELS = ("MLP", "convnet", "encoder", "decoder", "LSTM")
SMALL_OPERATORS = (
    *("add", "add a number", "add in place", "sub", "mul", "mul by a number", "div", "neg", "abs", "exp"),
    *("sqrt", "tanh", "sigmoid", "relu", "gelu", "clamp", "square", "maximum", "less than", "where"),
    *("sum", "mean", "argmax", "softmax", "cat", "clone", "copy", "fill", "index", "matmul"),
)
SMALL = tuple(f"{name}, 4 elements" for name in SMALL_OPERATORS)  # the names of their workloads
ITEM = "item() of a complete number"
