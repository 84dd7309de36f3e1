# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent networks and their cells give the CPU's results and gradients."""

import copy

import pytest
import torch
from parity import DEVICE, assert_same, gradients, tensors_in
from torch import nn
from torch.nn.utils import rnn

pytestmark = pytest.mark.no_fallback

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
NETWORKS = {
    "LSTM": nn.LSTM,
    "GRU": nn.GRU,
    "RNN": nn.RNN,
    "RNN-relu": lambda *sizes, **options: nn.RNN(*sizes, nonlinearity="relu", **options),
}
CELLS = {
    "LSTM": nn.LSTMCell,
    "GRU": nn.GRUCell,
    "RNN": nn.RNNCell,
    "RNN-relu": lambda *sizes, **options: nn.RNNCell(*sizes, nonlinearity="relu", **options),
}


def compare(module, *inputs, run=None, tolerance=CLOSE):
    """Runs a module on both, forward and backward to its inputs and parameters."""
    run = run or (lambda net, *args: net(*args))
    ours = copy.deepcopy(module).to(DEVICE)
    theirs = [None if each is None else each.clone().requires_grad_() for each in inputs]
    mine = [None if each is None else each.detach().to(DEVICE).requires_grad_() for each in inputs]
    expected, result = run(module, *theirs), run(ours, *mine)
    assert_same(result, expected, strides=False, **tolerance)
    reference = gradients(expected, [*theirs, *module.parameters()])
    assert_same(gradients(result, [*mine, *ours.parameters()]), reference, strides=False, **tolerance)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"num_layers": 3},
        {"bidirectional": True, "num_layers": 2},
        {"batch_first": True},
        {"num_layers": 2, "dropout": 0.5, "eval": True},
    ],
    ids=str,
)
def test_networks(name, options):
    options = dict(options)
    training = not options.pop("eval", False)
    compare(NETWORKS[name](5, 4, **options).train(training), torch.randn(6, 3, 5))


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")  # of the CPU
@pytest.mark.parametrize("bidirectional", [False, True])
def test_projections(bidirectional):
    compare(nn.LSTM(5, 6, 2, proj_size=3, bidirectional=bidirectional), torch.randn(6, 3, 5))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_sequence_without_batch_and_given_states(name):
    network = NETWORKS[name](5, 4, 2)
    state = torch.randn(2, 4)
    if name == "LSTM":
        compare(network, torch.randn(6, 5), state, torch.randn(2, 4), run=lambda net, x, h, c: net(x, (h, c)))
    else:
        compare(network, torch.randn(6, 5), state)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences(name, bidirectional):
    lengths = torch.tensor([2, 6, 4])

    def run(network, x):
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, state = network(packed)
        padded, again = rnn.pad_packed_sequence(output)
        assert again.tolist() == lengths.tolist()
        return padded, state

    compare(NETWORKS[name](5, 4, 2, bidirectional=bidirectional), torch.randn(6, 3, 5), run=run)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("bias", [True, False])
def test_cells(name, bias):
    cell, x, h = CELLS[name](5, 4, bias=bias), torch.randn(3, 5), torch.randn(3, 4)
    compare(cell, x)
    if name == "LSTM":
        compare(cell, x, h, torch.randn(3, 4), run=lambda net, x, h, c: net(x, (h, c)))
    else:
        compare(cell, x, h)


@pytest.mark.parametrize("wanted", [0, 1])
def test_one_output_of_a_cell_alone(wanted):
    compare(nn.LSTMCell(5, 4), torch.randn(3, 5), run=lambda net, x: net(x)[wanted])


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_dtypes(name, dtype):
    tolerance = {} if dtype == torch.float64 else {"rtol": 0.05, "atol": 0.05}
    compare(NETWORKS[name](5, 4).to(dtype), torch.randn(6, 3, 5).to(dtype), tolerance=tolerance)


def test_an_empty_batch():
    compare(nn.LSTMCell(5, 4), torch.randn(0, 5))
    compare(nn.GRUCell(5, 4), torch.randn(0, 5))


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_gradients_of_gradients(name):
    cell = CELLS[name](3, 2).double()

    def second(net, x):
        output = net(x)
        (first,) = torch.autograd.grad(tensors_in(output)[0].square().sum(), x, create_graph=True)
        return first.square().sum()

    compare(cell, torch.randn(2, 3).double(), run=second, tolerance={})


def test_dropout_between_layers_is_repeatable():
    network = nn.LSTM(5, 4, 3, dropout=0.5).to(DEVICE)
    x = torch.randn(6, 3, 5, device=DEVICE)

    def run(seed):
        torch.openreg.manual_seed_all(seed)
        return network(x)[0].detach().cpu()

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


@pytest.mark.parametrize("name", ["GRU", "RNN", "RNN-relu"])
@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}], ids=str
)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients_a_network_computes_the_same(name, options, mode):
    # PyTorch multiplies in another order where a weight could have a gradient.
    network = NETWORKS[name](5, 4, **options).requires_grad_(False)
    ours = copy.deepcopy(network).to(DEVICE).requires_grad_()
    x, state = torch.randn(6, 6, 5), torch.randn(len(network.all_weights), 6, 4)
    there = x.to(DEVICE), state.to(DEVICE)
    with mode():
        assert_same(ours(*there), network(x, state), rtol=0, atol=0)


def test_without_gradients_dropout_between_layers_is_the_devices():
    network = nn.GRU(5, 4, 3, dropout=0.5).to(DEVICE)
    x = torch.randn(6, 3, 5, device=DEVICE)
    with torch.no_grad():
        torch.openreg.manual_seed_all(1)
        torch.manual_seed(1)
        first = network(x)[0]
        torch.manual_seed(2)
        assert not torch.equal(network(x)[0], first)
        torch.openreg.manual_seed_all(1)
        assert torch.equal(network(x)[0], first)


def test_without_gradients_mistakes_are_reported_on_the_calling_line():
    network = nn.GRU(5, 4).to(DEVICE)
    x, parameters = torch.zeros(6, 3, 5, device=DEVICE), list(network.parameters())
    with torch.no_grad():
        with pytest.raises(RuntimeError, match="one shape"):
            torch.gru(x, torch.zeros(1, 2, 4, device=DEVICE), parameters, True, 1, 0.0, False, False, False)
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            torch.gru(x[..., :4], torch.zeros(1, 3, 4, device=DEVICE), parameters, True, 1, 0.0, False, False, False)


def test_mistakes_are_reported_on_the_calling_line():
    cell = torch.ops.aten._thnn_fused_lstm_cell
    gates, hidden = torch.zeros(3, 16, device=DEVICE), torch.zeros(3, 4, device=DEVICE)
    with pytest.raises(RuntimeError, match="one shape"):
        cell(gates, gates[:2], hidden)
    with pytest.raises(RuntimeError, match="hidden state"):
        cell(gates, gates, hidden[:, :3])
    with pytest.raises(RuntimeError, match="both biases or none"):
        cell(gates, gates, hidden, gates[0], None)
    with pytest.raises(RuntimeError, match="biases of 16 elements"):
        cell(gates, gates, hidden, hidden[0], hidden[0])
    with pytest.raises(RuntimeError, match="operands"):
        cell(gates, gates.double(), hidden)
    with pytest.raises(RuntimeError, match="same device"):
        cell(gates, gates, torch.zeros(3, 4, device="openreg:1"))
