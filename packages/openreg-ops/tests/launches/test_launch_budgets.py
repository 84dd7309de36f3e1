# SPDX-License-Identifier: BSD-3-Clause
"""Each operation in the table launches at most as many kernels as its row allows.

What a row runs copies nothing and falls back nowhere. Rows without a reason are what one kernel computes.
"""

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import test_custom
import test_foreach
import test_optimizer
import test_rnn
import test_rnn_layer
import torch
from parity import DEVICE, move_all, tensors_in
from torch import nn
from torch.nn import functional

from openreg_ops.functional import add_rms_norm, clip_grad_norm_, swiglu
from openreg_testing.budgets import launch_budget

aten = torch.ops.aten


@dataclass(frozen=True)
class Workload:
    """A function, what makes its operands, and the launches of one call, at most."""

    function: Callable[..., Any]
    operands: Callable[[], tuple[Any, ...]] = tuple  # on the device, with the gradients that backward is to give
    forward: int = 1
    backward: int | None = None  # None: it has none, or it is not looked at
    reason: str = ""
    gradients: bool = True  # False: under no_grad()


def run(workload):
    """A call, and its backward, each within its budget."""
    operands = workload.operands()
    with contextlib.nullcontext() if workload.gradients else torch.no_grad(), within(workload.forward):
        result = workload.function(*operands)
    if workload.backward is not None:
        outputs = [tensor for tensor in tensors_in(result) if tensor.requires_grad][:1]
        wanted = [tensor for tensor in tensors_in(operands) if tensor.requires_grad]
        grads = [torch.ones_like(output) for output in outputs]
        with within(workload.backward):
            torch.autograd.grad(outputs, wanted, grads)


def within(launches):
    return launch_budget(launches, copies=0)


def randn(*shape):
    return torch.randn(shape, device=DEVICE)


def leaf(*shape):
    """With a gradient."""
    return randn(*shape).requires_grad_()


def indices(*values):
    return torch.tensor(values, device=DEVICE)


def heads():
    return leaf(2, 3, 5, 8), leaf(2, 3, 7, 8), leaf(2, 3, 7, 8)


SIMPLE = {
    "fill_": Workload(lambda x: x.fill_(3), lambda: (randn(3),)),
    "zero_": Workload(torch.zero_, lambda: (randn(3),)),
    "arange": Workload(lambda: torch.arange(5, device=DEVICE)),
    "abs": Workload(torch.abs, lambda: (randn(10, 4),)),
    "uniform_": Workload(lambda x: x.uniform_(), lambda: (randn(10, 4),)),
    "normal_": Workload(lambda x: x.normal_(), lambda: (randn(1000),)),
    "isfinite": Workload(torch.isfinite, lambda: (randn(3),), reason="PyTorch's composite form is several operators"),
    "dropout": Workload(lambda x: functional.dropout(x, 0.5), lambda: (randn(100),), reason="the mask comes with it"),
}
SIZES = "the first kernel finds the size, for which the host waits, and the second writes the result"
DATA_DEPENDENT = {
    "nonzero": Workload(torch.nonzero, lambda: (randn(2, 4),), 2, reason=SIZES),
    "masked_select": Workload(
        torch.masked_select, lambda: (randn(2, 4), torch.ones(2, 4, device=DEVICE).bool()), 2, reason=SIZES
    ),
    "unique": Workload(
        lambda n: torch.unique(n, return_inverse=True, return_counts=True),
        lambda: (indices(2, 1, 2, 3),),
        2,
        reason=SIZES,
    ),
    "bincount": Workload(torch.bincount, lambda: (indices(2, 1, 2, 3),), 2, reason=SIZES),
}
LAYERS = {
    "linear": Workload(functional.linear, lambda: (leaf(2, 3, 4), leaf(5, 4), leaf(5)), 1, 1),
    "embedding": Workload(lambda w, i: functional.embedding(i, w), lambda: (leaf(6, 4), indices(1, 2)), 1, 1),
    "embedding_bag": Workload(
        lambda w, i, o: functional.embedding_bag(i, w, o), lambda: (leaf(6, 4), indices(1, 2), indices(0)), 1, 1
    ),
    "nll_loss of images": Workload(
        functional.nll_loss, lambda: (leaf(2, 3, 4, 5), torch.ones(2, 4, 5, device=DEVICE).long()), 1, 1
    ),
    "layer_norm": Workload(
        lambda x, w, b: functional.layer_norm(x, (8,), w, b), lambda: (leaf(4, 8), leaf(8), leaf(8)), 1, 1
    ),
    "rms_norm": Workload(lambda x, w: functional.rms_norm(x, (8,), w), lambda: (leaf(4, 8), leaf(8)), 1, 1),
    "group_norm": Workload(
        lambda x, w, b: functional.group_norm(x, 2, w, b), lambda: (leaf(4, 8), leaf(8), leaf(8)), 1, 1
    ),
    "weight_norm": Workload(lambda v, g: torch._weight_norm(v, g, 0), lambda: (leaf(4, 8), leaf(4, 1))),
    "attention": Workload(functional.scaled_dot_product_attention, heads, 1, 1),
    "attention with dropout": Workload(
        lambda *qkv: functional.scaled_dot_product_attention(*qkv, dropout_p=0.5), heads, 1, 1
    ),
}
FAST_PATH = "in evaluation PyTorch hands the whole layer over"
TRANSFORMERS = {
    "TransformerEncoderLayer": Workload(
        lambda module, x: module(x),
        lambda: (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).to(DEVICE).eval(), randn(3, 5, 16)),
        gradients=False,
        reason=FAST_PATH,
    ),
    "MultiheadAttention": Workload(
        lambda module, x: module(x, x, x),
        lambda: (nn.MultiheadAttention(16, 4, batch_first=True).to(DEVICE).eval(), randn(3, 5, 16)),
        gradients=False,
        reason=FAST_PATH,
    ),
}


def cell_operands(count):
    return lambda: (randn(3, 4 * count), randn(3, 4 * count), randn(3, 4), randn(4 * count), randn(4 * count))


def lstm_operands(**options):
    def operands():
        network = nn.LSTM(5, 4, **options).to(DEVICE)
        states = network.num_layers * (2 if network.bidirectional else 1)
        return network, randn(6, 3, 5), randn(states, 3, 4), randn(states, 3, 4)

    return operands


def run_lstm(network, x, hidden, cell):
    return network(x, (hidden, cell))


def gru_or_rnn(kind, **options):
    def operands():
        network = kind(5, 4, **options).to(DEVICE)
        return network, randn(6, 6, 5), randn(len(network.all_weights), 6, 4)

    return Workload(
        lambda network, x, state: network(x, state),
        operands,
        gradients=False,
        reason="without gradients a kernel runs all layers, directions and steps",
    )


CELLS = {
    "a step of LSTM": Workload(aten._thnn_fused_lstm_cell, cell_operands(4)),
    "a step of GRU": Workload(aten._thnn_fused_gru_cell, cell_operands(3)),
    "a step of LSTM back": Workload(
        lambda *args: aten._thnn_fused_lstm_cell_backward_impl(*args, True),
        lambda: (randn(3, 4), randn(3, 4), randn(3, 4), randn(3, 4), randn(3, 16)),
    ),
    "a step of GRU back": Workload(
        lambda *args: aten._thnn_fused_gru_cell_backward(*args, True), lambda: (randn(3, 4), randn(3, 20))
    ),
}
LSTMS = {
    "LSTM": Workload(run_lstm, lstm_operands(), 1),
    "LSTM of 3 layers": Workload(
        run_lstm, lstm_operands(num_layers=3), 3 + 2, reason="a launch per layer; their states are stacked"
    ),
    "LSTM both ways": Workload(
        run_lstm, lstm_operands(bidirectional=True), 2 + 1 + 2, reason="a launch per direction, which are joined"
    ),
    "LSTM with dropout": Workload(
        run_lstm, lstm_operands(num_layers=2, dropout=0.5), 2 + 1 + 2, reason="dropout between the layers"
    ),
    "LSTM without bias": Workload(run_lstm, lstm_operands(bias=False), 1 + 1, reason="the kernel is given zeros"),
    "a layer of LSTM": Workload(
        lambda *operands: test_rnn_layer.layer(operands),
        lambda: tuple(each.requires_grad_() for each in move_all(test_rnn_layer.layer_operands(), DEVICE)),
        1,
        1,
    ),
}
NETWORKS = {
    f"{name} {options}": gru_or_rnn(test_rnn.NETWORKS[name], **options)
    for name in ("GRU", "RNN", "RNN-relu")
    for options in ({}, {"bias": False}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True})
}


def stepper(**options):
    def operands():
        net = test_optimizer.model().to(DEVICE)
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)
        return (torch.optim.SGD(net.parameters(), lr=0.1, **options),)

    return operands


def sgd_with_a_rate_on_the_device(parameter, gradient, rate):
    options = {"weight_decay": 0.0, "momentum": 0.0, "dampening": 0.0}
    flags = {"nesterov": False, "maximize": False, "is_first_step": False}
    torch._fused_sgd_([parameter], [gradient], [], lr=rate, **options, **flags)


TRAINING = {
    "SGD, fused": Workload(lambda optimizer: optimizer.step(), stepper(fused=True)),
    "SGD, by default in lists": Workload(lambda optimizer: optimizer.step(), stepper()),
    "SGD, one by one": Workload(
        lambda optimizer: optimizer.step(), stepper(foreach=False), 4, reason="a launch per parameter, on demand"
    ),
    "SGD, the rate a tensor": Workload(sgd_with_a_rate_on_the_device, lambda: (randn(3), randn(3), randn())),
    "clip_grad_norm_": Workload(
        lambda *values: clip_grad_norm_(values, 1.0),
        lambda: test_custom.parameters(DEVICE, *[(3, 3)] * 8),
        2,
        reason="the factor needs all gradients",
    ),
}
CUSTOM = {
    "swiglu": Workload(swiglu, test_custom.swiglu_operands, 1, 1),
    "add_rms_norm": Workload(
        add_rms_norm,
        test_custom.norm_operands,
        1,
        2,
        reason="the undefined gradient of the sum is filled with zeros",
    ),
}


def reads_numbers_on_the_host(name):
    """PyTorch gives numbers in a tensor one by one, and runs tensor by tensor."""
    arguments = test_foreach.overload(name)._schema.arguments
    return any(argument.name == "scalars" and str(argument.type) == "Tensor" for argument in arguments)


LISTS = {
    f"{name} of a list": Workload(
        test_foreach.overload(name),
        lambda name=name: test_foreach.to_device(test_foreach.arguments(test_foreach.overload(name))),
    )
    for name in test_foreach.REGISTERED
    if not reads_numbers_on_the_host(name)
}

BUDGETS = {**SIMPLE, **DATA_DEPENDENT, **LAYERS, **TRANSFORMERS, **CELLS, **NETWORKS, **TRAINING, **CUSTOM, **LISTS}
if torch.backends.mkldnn.is_available():  # else PyTorch runs an LSTM step by step
    BUDGETS |= LSTMS

# With OPENREG_KERNELS=raw, which is read when the package is loaded.
OF_OUR_OWN = {
    "mm": Workload(torch.mm, lambda: (randn(64, 64), randn(64, 64))),
    "sum": Workload(torch.sum, lambda: (randn(64, 64),)),
    "softmax": Workload(lambda x: torch.softmax(x, 1), lambda: (randn(64, 64),)),
    "abs_": Workload(torch.abs_, lambda: (randn(64, 64),)),
}


@pytest.mark.no_fallback
@pytest.mark.parametrize("name", BUDGETS)
def test_an_operation_stays_within_its_budget(name):
    run(BUDGETS[name])


def test_so_do_the_kernels_of_our_own_that_have_to_be_chosen(run_python):
    code = f"import sys; sys.path[:] = {sys.path!r}\nimport openreg_ops, test_launch_budgets\n"
    code += "for row in test_launch_budgets.OF_OUR_OWN.values():\n    test_launch_budgets.run(row)\n"
    result = run_python(code, OPENREG_KERNELS="raw", OPENREG_FALLBACK="error")
    assert result.returncode == 0, result.stderr


def twice(x):
    return (x * 2) * 2


@pytest.mark.parametrize(("forward", "backward"), [(1, 2), (2, 1)])
def test_each_pass_has_a_budget_of_its_own(forward, backward):
    run(Workload(twice, lambda: (leaf(3),), 2, 2))
    with pytest.raises(AssertionError, match="2 launches, and the budget is 1"):
        run(Workload(twice, lambda: (leaf(3),), forward, backward))
