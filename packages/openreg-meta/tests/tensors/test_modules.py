# SPDX-License-Identifier: BSD-3-Clause
"""Moving a module keeps its parameter objects, ties between them, and their optimizer."""

import pytest
import torch
from torch import nn

DEVICE = "openreg:1"


class Tied(nn.Module):
    """Embedding and output layer on one weight, and a buffer."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("count", torch.tensor(3), persistent=False)

    def forward(self, index):
        return self.head(self.embedding(index)) * self.scale


# How a module can be moved.
MOVES = {
    "to a string": lambda module: module.to(DEVICE),
    "to a device": lambda module: module.to(torch.device("openreg", 1)),
    "to, as a keyword": lambda module: module.to(device=DEVICE),
    "to, with a type": lambda module: module.to(DEVICE, torch.float64),
    "to, without waiting": lambda module: module.to(DEVICE, non_blocking=True),
    "to, like a tensor": lambda module: module.to(torch.ones(1, device=DEVICE)),
    "by its name": lambda module: module.openreg(1),
    "over another device": lambda module: module.to("openreg:0").to(DEVICE),
    "there and back and there": lambda module: module.to(DEVICE).cpu().to(DEVICE),
}


@pytest.mark.parametrize("move", MOVES)
def test_parameters_stay_the_same_objects(move):
    module = Tied()
    before = module.embedding.weight
    values = before.detach().clone()
    assert MOVES[move](module) is module
    assert module.embedding.weight is before
    assert str(before.device) == DEVICE
    assert before.is_leaf
    torch.testing.assert_close(before.detach().cpu(), values, check_dtype=False)


@pytest.mark.parametrize("move", MOVES)
def test_tied_weights_stay_tied(move):
    module = MOVES[move](Tied())
    assert module.head.weight is module.embedding.weight
    assert len(list(module.parameters())) == 1


@pytest.mark.covers("registration.aten::_has_compatible_shallow_copy_type")
@pytest.mark.parametrize("move", MOVES)
def test_an_optimizer_made_before_trains_what_was_moved(move):
    module = Tied()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    MOVES[move](module)
    before = module.embedding.weight.detach().clone()
    module(torch.tensor([1, 2], device=DEVICE)).sum().backward()
    optimizer.step()
    assert not torch.equal(module.embedding.weight, before)


@pytest.mark.parametrize("move", MOVES)
def test_buffers_and_gradients_move_along(move):
    module = Tied()
    module(torch.tensor([1])).sum().backward()
    gradient = module.embedding.weight.grad.clone()
    MOVES[move](module)
    assert {str(buffer.device) for buffer in module.buffers()} == {DEVICE}
    assert module.count.dtype == torch.int64
    assert str(module.embedding.weight.grad.device) == DEVICE
    torch.testing.assert_close(module.embedding.weight.grad.cpu(), gradient, check_dtype=False)


def test_data_may_be_replaced_by_data_of_another_device():
    parameter = nn.Parameter(torch.ones(3))
    parameter.data = torch.full((2,), 5.0, device=DEVICE)
    assert (str(parameter.device), parameter.tolist()) == (DEVICE, [5, 5])
    parameter.data = torch.zeros(1)
    assert str(parameter.device) == "cpu"


def test_a_module_made_on_the_device_is_there():
    with torch.device(DEVICE):
        module = Tied()
    assert {str(value.device) for value in module.state_dict().values()} == {DEVICE}
    assert str(nn.Linear(2, 2, device=DEVICE).weight.device) == DEVICE


def test_a_module_without_memory_gets_some_on_the_device():
    module = nn.Linear(2, 2, device="meta").to_empty(device=DEVICE)
    nn.init.ones_(module.weight)
    assert module.weight.tolist() == [[1, 1], [1, 1]]


def test_a_parametrised_module_moves():
    module = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)).to(DEVICE)
    assert str(module.weight.device) == DEVICE
    module(torch.ones(1, 3, device=DEVICE)).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())
