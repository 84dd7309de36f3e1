# SPDX-License-Identifier: BSD-3-Clause
"""nn.LSTM launches the CPU's kernel once per layer and direction, with the CPU's bits. test_rnn.py compares all
recurrent networks."""

import copy

import pytest
import torch
from parity import DEVICE, assert_same, gradients, launches_of, move_all, tensors_in
from torch import nn

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch was built without oneDNN"),
]

LSTM = 2  # oneDNN's number of the kind of cells
NO_BFLOAT16 = not torch.ops.mkldnn._is_mkldnn_bf16_supported()
DTYPES = [
    torch.float32,
    pytest.param(
        torch.bfloat16,
        marks=pytest.mark.skipif(NO_BFLOAT16, reason="oneDNN has a layer of bfloat16 where there is AVX-512"),
    ),
]


def pair(*sizes, **options):
    """A network on the device and its copy on the CPU."""
    network = nn.LSTM(*sizes, **options)
    return copy.deepcopy(network).to(DEVICE), network


def without_onednn():
    return torch.backends.mkldnn.flags(enabled=False, allow_tf32=None)


def layer_operands(steps=6, batch=3, width=5, hidden=4, dtype=torch.float32):
    """Input, two matrices, two biases and two states of one layer, on the CPU."""
    gates, state = 4 * hidden, (batch, hidden)
    sizes = [(steps, batch, width), (gates, width), (gates, hidden), (gates,), (gates,), state, state]
    return [torch.randn(size).mul(0.5).to(dtype) for size in sizes]


def layer(operands, **changed):
    options = {"mode": LSTM, "hidden_size": operands[5].size(1), "batch_sizes": [], **changed}
    return torch.ops.aten.mkldnn_rnn_layer(
        *operands, False, options["batch_sizes"], options["mode"], options["hidden_size"], 1, True, False, False, True
    )


def layer_backward(operands, results, grads, workspace):
    hidden = operands[5].size(1)
    return torch.ops.aten.mkldnn_rnn_layer_backward(
        *operands, *results, *grads, False, LSTM, hidden, 1, True, True, False, [], False, workspace
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_are_the_cpus_to_the_last_bit(dtype):
    ours, theirs = pair(20, 12, 2, bidirectional=True, dtype=dtype)
    x = torch.randn(9, 4, 20, dtype=dtype)
    expected, result = theirs(x), ours(x.to(DEVICE))
    assert_same(result, expected, rtol=0, atol=0)
    reference = gradients(expected, list(theirs.parameters()))
    assert_same(gradients(result, list(ours.parameters())), reference, strides=False, rtol=0, atol=0)


def test_gradients_reach_all_states():
    ours, theirs = pair(5, 4, 2, batch_first=True)
    inputs = [torch.randn(3, 6, 5), torch.randn(2, 3, 4), torch.randn(2, 3, 4)]
    for wanted in (0, 1):
        mine, reference = move_all(inputs, DEVICE), move_all(inputs, "cpu")
        for tensor in (*mine, *reference):
            tensor.requires_grad_()
        _, result = ours(mine[0], tuple(mine[1:]))
        _, expected = theirs(reference[0], tuple(reference[1:]))
        result, expected = result[wanted], expected[wanted]
        assert_same(gradients(result, mine), gradients(expected, reference), strides=False)


def test_gradients_of_gradients_are_the_cpus():
    def second(network, x):
        output = tensors_in(network(x))[0]
        (first,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), [x, *network.parameters()], allow_unused=True)

    ours, theirs = pair(3, 2)
    x = torch.randn(4, 2, 3)
    expected = second(theirs, x.clone().requires_grad_())
    assert_same(second(ours, x.to(DEVICE).requires_grad_()), expected, strides=False, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients_nothing_is_kept(mode):
    operands = layer_operands()
    with mode():
        *expected, _ = layer(operands)
        *result, workspace = layer(move_all(operands, DEVICE))
        assert_same(result, expected, rtol=0, atol=0)
    assert workspace is None or workspace.numel() == 0


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (7, 3, 200, 5), (3, 2, 5, 250), (40, 17, 33, 65)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_forward_keeps_has_room(sizes, dtype):
    *_, kept = layer(layer_operands(*sizes, dtype=dtype))
    *_, workspace = layer(move_all(layer_operands(*sizes, dtype=dtype), DEVICE))
    count = int(workspace[:8].cpu().view(torch.int64))
    assert count == kept.numel()  # 0 where it had none
    assert workspace.numel() >= 64 + count


def test_backward_computes_anew_what_forward_did_not_keep():
    operands = layer_operands()
    *results, kept = layer(operands)
    grads = [torch.randn_like(result) for result in results]
    expected = layer_backward(operands, results, grads, kept)
    mine = [move_all(each, DEVICE) for each in (operands, results, grads)]
    nothing = torch.zeros(64, dtype=torch.uint8, device=DEVICE)
    assert_same(layer_backward(*mine, nothing), expected, strides=False, rtol=0, atol=0)


def test_backward_without_gradients_gives_none():
    operands = move_all(layer_operands(), DEVICE)
    *results, workspace = layer(operands)
    assert tensors_in(layer_backward(operands, results, [None] * 3, workspace)) == []


def test_the_switch_of_onednn_holds_here_too():
    network, _ = pair(5, 4)
    x = torch.randn(6, 3, 5, device=DEVICE)
    with without_onednn():
        by_steps, step_by_step = network(x), launches_of(lambda: network(x))
    assert launches_of(lambda: network(x)) < step_by_step
    assert_same(by_steps, [each.cpu() for each in tensors_in(network(x))], strides=False)


def test_weights_with_other_strides():
    ours, theirs = pair(4, 4, bias=False)
    for network in (ours, theirs):
        for parameter in network.parameters():
            parameter.data = parameter.data.t().contiguous().t()
    x = torch.randn(6, 3, 4)
    with without_onednn():
        expected = theirs(x)
    assert_same(ours(x.to(DEVICE)), expected, strides=False, rtol=1e-4, atol=1e-5)


def test_mistakes_are_reported_on_the_calling_line():
    operands = move_all(layer_operands(), DEVICE)
    with pytest.raises(RuntimeError, match="LSTM"):
        layer(operands, mode=3)
    with pytest.raises(RuntimeError, match="LSTM"):
        layer(operands, batch_sizes=[3, 3])
    with pytest.raises(RuntimeError, match="states of"):
        layer([*operands[:6], operands[6][:2]])
    with pytest.raises(RuntimeError, match="weights for 16 gates"):
        layer([operands[0], operands[1][:8], *operands[2:]])
    with pytest.raises(RuntimeError, match="same device"):
        layer([*operands[:6], operands[6].to("openreg:1")])
    *results, _ = layer(operands)
    with pytest.raises(RuntimeError, match=r"workspace .*aten::mkldnn_rnn_layer"):
        layer_backward(operands, results, results, torch.zeros(8, dtype=torch.uint8, device=DEVICE))


def test_the_composite_form_tells_an_input_of_the_wrong_width():
    network, _ = pair(5, 4)
    x, states = torch.zeros(6, 3, 7, device=DEVICE), [torch.zeros(1, 3, 4, device=DEVICE)] * 2
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch.lstm(x, states, list(network.parameters()), True, 1, 0.0, False, False, False)
