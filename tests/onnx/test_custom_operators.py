# SPDX-License-Identifier: BSD-3-Clause
"""Custom operators of openreg-ops, and the composites that it overrides, are exported as ONNX operators."""

import pytest
import torch
from exports import DEVICE, Calls, operands
from torch import nn
from torch.export import Dim

import openreg_ops.onnx
from openreg_ops.functional import add_rms_norm, rotary_embedding, swiglu

TABLE = openreg_ops.onnx.translations()
BATCH = Dim("batch", min=1, max=64)
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-9, torch.float16: 2e-3}


CALLS = {
    "add_rms_norm": (lambda x, y, w: add_rms_norm(x, y, w, 1e-3), [(2, 3, 8), (2, 3, 8), (8,)]),
    "the sum of add_rms_norm": (lambda x, y, w: add_rms_norm(x, y, w)[1], [(2, 3, 8), (2, 3, 8), (8,)]),
    "custom_abs": (torch.ops.openreg.custom_abs, [(2, 3)]),
    "custom_autograd_fn_aliasing": (torch.ops.openreg.custom_autograd_fn_aliasing, [(2, 3)]),
    "custom_autograd_fn_returns_self": (torch.ops.openreg.custom_autograd_fn_returns_self, [(2, 3)]),
    "rotary_embedding": (rotary_embedding, [(2, 3, 8), (3, 4)]),
    "swiglu": (swiglu, [(2, 3, 8), (2, 3, 8)]),
}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_an_operator(check, name, dtype):
    function, shapes = CALLS[name]
    values = operands(*shapes, dtype=dtype)
    check(
        Calls(lambda *args: function(*args)), (values, {}), tolerance=TOLERANCE[dtype], custom_translation_table=TABLE
    )


def test_every_operator_that_gives_tensors_has_a_translation():
    namespace = torch.ops.openreg
    all_names = torch._C._dispatch_get_all_op_names()
    names = {name.removeprefix("openreg::") for name in all_names if name.startswith("openreg::")}
    schemas = {name: getattr(namespace, name).default._schema for name in names}
    functional = {
        name
        for name, schema in schemas.items()
        if schema.returns and not schema.is_mutable and all(str(each.type) == "Tensor" for each in schema.returns)
    }
    of_gradients = {name for name in functional if name.endswith("_backward")}
    assert functional - of_gradients == {operator._schema.name.removeprefix("openreg::") for operator in TABLE}


def test_a_model_of_them_with_dynamic_shapes(check):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.up, self.down = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 8)
            self.weight = nn.Parameter(torch.rand(8))

        def forward(self, x, angles):
            y = self.down(swiglu(self.gate(x), self.up(x)))
            normalized, total = add_rms_norm(x, y, self.weight)
            return rotary_embedding(normalized, angles) + total

    length = Dim("length", min=1, max=64)
    check(
        Block().to(DEVICE),
        (operands((2, 5, 8), (5, 4)), {}),
        [(operands((3, 7, 8), (7, 4)), {})],
        dynamic_shapes=({0: BATCH, 1: length}, {0: length}),
        custom_translation_table=TABLE,
    )


@pytest.mark.parametrize("opset", [18, 20, 23])
def test_opsets(check, opset):
    program = check(Calls(swiglu), (operands((2, 8), (2, 8)), {}), custom_translation_table=TABLE, opset_version=opset)
    assert program.model.opset_imports[""] == opset


# What the device overrides of PyTorch's composite operators, and recurrent cells that a backend brings itself.

OVERRIDDEN = {
    "linear": (lambda: nn.Linear(8, 4), [(2, 8)]),
    "rms_norm": (lambda: nn.RMSNorm(8), [(2, 8)]),
    "lstm": (lambda: nn.LSTM(8, 4, 2, bidirectional=True), [(5, 2, 8)]),
    "lstm without biases": (lambda: nn.LSTM(8, 4, bias=False), [(5, 2, 8)]),
    "gru": (lambda: nn.GRU(8, 4, batch_first=True), [(2, 5, 8)]),
    "rnn": (lambda: nn.RNN(8, 4), [(5, 2, 8)]),
    "lstm_cell": (lambda: nn.LSTMCell(8, 4), [(2, 8)]),
    "gru_cell": (lambda: nn.GRUCell(8, 4), [(2, 8)]),
    "gru_cell without biases": (lambda: nn.GRUCell(8, 4, bias=False), [(2, 8)]),
    "convolution": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), [(1, 2, 5, 5)]),
    "attention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), [(2, 5, 8)] * 3),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), [(2, 5, 8)]),
    "one_hot": (lambda: Calls(lambda x: nn.functional.one_hot(x.argmax(-1), 8)), [(2, 8)]),
    "isfinite": (lambda: Calls(lambda x: torch.isfinite(x) * 1), [(2, 8)]),
}


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_what_the_device_overrides(check, name):
    make, shapes = OVERRIDDEN[name]
    check(make().to(DEVICE).eval(), (operands(*shapes), {}))
