# SPDX-License-Identifier: BSD-3-Clause
"""The foreach and fused implementations of the optimizers train as on the CPU."""

import copy

import pytest
import torch
from parity import DEVICE, launches_of

pytestmark = pytest.mark.no_fallback

OPTIMIZERS = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    (torch.optim.Adam, {"lr": 0.01}),
    (torch.optim.Adam, {"lr": 0.01, "amsgrad": True, "weight_decay": 0.01}),
    (torch.optim.AdamW, {"lr": 0.01}),
    (torch.optim.Adagrad, {"lr": 0.1}),
]
IDS = [f"{cls.__name__}-{'-'.join(options)}" for cls, options in OPTIMIZERS]


def model():
    torch.random.default_generator.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def train(net, optimizer, device, steps=5):
    x = torch.linspace(-1, 1, 24).view(4, 6).to(device)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), torch.tensor([0, 1, 2, 1]).to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


@pytest.mark.parametrize("form", [{}, {"foreach": True}, {"foreach": False}, {"fused": True}], ids=str)
@pytest.mark.parametrize(("cls", "options"), OPTIMIZERS, ids=IDS)
def test_training_equals_the_cpus(cls, options, form):
    ours, reference = model().to(DEVICE), model()
    losses = train(ours, cls(ours.parameters(), **options, **form), DEVICE)
    expected = train(reference, cls(reference.parameters(), **options), "cpu")
    torch.testing.assert_close(losses, expected)
    for mine, theirs in zip(ours.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(mine.detach().cpu(), theirs.detach())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("cls", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad])
@pytest.mark.parametrize("rate", [0.05, [0.05]], ids=["number", "vector"])
def test_a_learning_rate_in_a_tensor_on_the_host(cls, rate):
    ours, reference = model().to(DEVICE), model()
    losses = train(ours, cls(ours.parameters(), lr=torch.tensor(rate), fused=True), DEVICE)
    torch.testing.assert_close(losses, train(reference, cls(reference.parameters(), lr=0.05), "cpu"))


def test_lists_are_the_default_and_fused_is_one_launch():
    """How many there may be is in test_launch_budgets.py; here, what each form saves."""
    net = model().to(DEVICE)
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    fused = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
    lists = torch.optim.SGD(net.parameters(), lr=0.1)
    single = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    (of_fused, _), (of_lists, _), (of_single, _) = (launches_of(form.step) for form in (fused, lists, single))
    assert of_fused <= of_lists < of_single


def test_a_learning_rate_of_adagrad_may_be_a_tensor():
    results = []
    for device in (DEVICE, "cpu"):
        parameter, gradient, total, step = (
            torch.tensor(values, device=device) for values in ([1.0, 2.0], [0.5, -1.0], [0.0, 1.0], 1.0)
        )
        torch._fused_adagrad_(
            *([parameter], [gradient], [total], [step]),
            lr=torch.tensor(0.1, device=device),
            lr_decay=0.1,
            weight_decay=0.01,
            eps=1e-10,
            maximize=False,
        )
        results.append((parameter.cpu(), total.cpu()))
    torch.testing.assert_close(*results)


def test_state_moves_with_its_parameters():
    net = model().to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    train(net, optimizer, DEVICE, steps=2)
    state = copy.deepcopy(optimizer.state_dict())
    twin = copy.deepcopy(net)
    other = torch.optim.Adam(twin.parameters(), lr=0.01)
    other.load_state_dict(state)
    assert train(net, optimizer, DEVICE) == train(twin, other, DEVICE)


def test_clipping_gradients():
    net, reference = model().to(DEVICE), model()
    for each, device in ((net, DEVICE), (reference, "cpu")):
        each(torch.ones(2, 6, device=device)).pow(2).sum().backward()
    norms = [torch.nn.utils.clip_grad_norm_(each.parameters(), 0.5) for each in (net, reference)]
    torch.testing.assert_close(norms[0].cpu(), norms[1])
    for mine, theirs in zip(net.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.cpu(), theirs.grad)
