# SPDX-License-Identifier: BSD-3-Clause
"""torch.export decomposes operators that this device computes by one kernel, as it does for the CPU."""

import pytest
import torch
from parity import DEVICE
from torch import nn

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.:FutureWarning"),
    pytest.mark.filterwarnings("ignore:The tensor attributes? self._flat_weights"),
]

aten = torch.ops.aten
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


class Attention(nn.Module):
    """Of a tensor to another one."""

    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, query, key):
        return nn.functional.scaled_dot_product_attention(query, key, key, **self.options)


QUERY, KEY = (2, 4, 5, 8), (2, 4, 7, 8)
MODULES = {
    "linear": (lambda: nn.Linear(8, 4), [(2, 8)]),
    "linear without a bias": (lambda: nn.Linear(8, 4, bias=False), [(2, 3, 8)]),
    "rms_norm": (lambda: nn.RMSNorm(8), [(2, 8)]),
    "lstm": (lambda: nn.LSTM(8, 4, 2, bidirectional=True), [(5, 2, 8)]),
    "lstm without biases": (lambda: nn.LSTM(8, 4, bias=False), [(5, 2, 8)]),
    "gru": (lambda: nn.GRU(8, 4), [(5, 2, 8)]),
    "lstm_cell": (lambda: nn.LSTMCell(8, 4), [(2, 8)]),
    "gru_cell": (lambda: nn.GRUCell(8, 4), [(2, 8)]),
    "gru_cell without biases": (lambda: nn.GRUCell(8, 4, bias=False), [(2, 8)]),
    "attention": (Attention, [QUERY, KEY]),
    "causal attention": (lambda: Attention(is_causal=True, scale=0.3), [QUERY, KEY]),
    "attention with shared keys": (lambda: Attention(enable_gqa=True), [QUERY, (2, 2, 7, 8)]),
    "attention with a mask": (lambda: Attention(attn_mask=torch.randn(5, 7, device=DEVICE)), [QUERY, KEY]),
    "an encoder's layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), [(2, 5, 8)]),
}
OURS = {
    *(aten.linear.default, aten.rms_norm.default, aten._fused_rms_norm.default, aten.lstm.input, aten.gru.input),
    *(aten.lstm_cell.default, aten._thnn_fused_lstm_cell.default),
    *(aten.gru_cell.default, aten._thnn_fused_gru_cell.default),
    *(aten.scaled_dot_product_attention.default, aten._scaled_dot_product_fused_attention_overrideable.default),
}


def operators(program):
    return {node.target for node in program.graph.nodes if node.op == "call_function"}


def first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.covers("registration.decompositions of composite operators that the device overrides")
@pytest.mark.parametrize("name", MODULES)
def test_a_program_is_taken_apart_and_computes_the_same(name):
    make, shapes = MODULES[name]
    module, inputs = make().to(DEVICE), tuple(torch.randn(shape, device=DEVICE) for shape in shapes)
    with torch.no_grad():
        program = torch.export.export(module, inputs)
        assert operators(program) & OURS
        apart = program.run_decompositions()
    assert not operators(apart) & OURS
    torch.testing.assert_close(first(apart.module()(*inputs)), first(module(*inputs)), **CLOSE)


def test_an_operator_that_is_to_stay_stays():
    module, x = nn.Linear(8, 4).to(DEVICE), torch.randn(2, 8, device=DEVICE)
    table = torch.export.default_decompositions()
    del table[aten.linear.default]
    program = torch.export.export(module, (x,))
    assert aten.linear.default in operators(program.run_decompositions(table))
    assert aten.linear.default in operators(program.run_decompositions({}))


def test_attention_with_dropout_stays():
    module = Attention(dropout_p=0.5)
    inputs = tuple(torch.randn(shape, device=DEVICE) for shape in (QUERY, KEY))
    apart = torch.export.export(module, inputs).run_decompositions()
    assert aten._scaled_dot_product_fused_attention_overrideable.default in operators(apart)


def test_what_a_cell_gives_besides_its_state_is_what_the_kernel_gives():
    """A backward pass that is in the graph, too, reads it."""
    from openreg_ops import _export

    cells = ((4, aten._thnn_fused_lstm_cell, _export._lstm_cell), (3, aten._thnn_fused_gru_cell, _export._gru_cell))
    for count, cell, rule in cells:
        gates = [torch.randn(2, count * 4, device=DEVICE) for _ in range(2)]
        state = torch.randn(2, 4, device=DEVICE)
        for biases in ((), [torch.randn(count * 4, device=DEVICE) for _ in range(2)]):
            for one, other in zip(rule(*gates, state, *biases), cell(*gates, state, *biases), strict=True):
                torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("masked", "scale"),
    [("causal", None), ("causal", 0.3), ("bool", None), ("float", None), ("nothing", None), ("nothing", 0.0)],
)
def test_what_attention_keeps_for_a_backward_pass_is_what_the_kernel_keeps(masked, scale, dtype):
    from openreg_ops import _export

    query, key = (torch.randn(shape, device=DEVICE, dtype=dtype) for shape in (QUERY, (2, 2, 7, 8)))
    numbers = torch.randn(5, 7, device=DEVICE, dtype=dtype)
    mask = {"bool": numbers > -0.5, "float": numbers}.get(masked)
    operands = (query, key, key, mask, 0.0, masked == "causal")
    expected = aten._scaled_dot_product_fused_attention_overrideable(*operands, scale=scale)
    found = _export._attention(*operands, scale=scale)
    for one, other in zip(found[:2], expected[:2], strict=True):
        torch.testing.assert_close(one, other, **CLOSE)
    assert found[4:6] == expected[4:6]
