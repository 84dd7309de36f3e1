# SPDX-License-Identifier: BSD-3-Clause
"""Training on the device gives the losses and weights of training on the CPU, without fallback."""

import gc

import pytest
import torch
from torch import nn
from torch.nn import functional

STEPS = 6

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, weight_decay=0.01),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "single tensor": lambda parameters: torch.optim.Adam(parameters, lr=0.01, foreach=False),
}


def convolutional():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * 4 * 4, 3),
    )


def data():
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(16, 1, 8, 8, generator=generator)
    return images, torch.randint(3, (16,), generator=generator)


def losses(device, make_optimizer):
    """The loss of each training step, and the model."""
    torch.manual_seed(1)
    model = convolutional().to(device)
    optimizer = make_optimizer(model.parameters())
    images, labels = (item.to(device) for item in data())
    seen = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        seen.append(loss.detach())
    return torch.stack(seen).cpu(), model


@pytest.mark.no_fallback
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_and_weights_equal_those_of_the_cpu(name):
    expected, reference = losses("cpu", OPTIMIZERS[name])
    actual, model = losses("openreg:1", OPTIMIZERS[name])
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    assert expected[-1] < expected[0]
    for (key, ours), theirs in zip(model.state_dict().items(), reference.state_dict().values(), strict=True):
        assert ours.device == torch.device("openreg:1"), key
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-3, atol=1e-4, msg=key)
    model.eval()
    reference.eval()
    images, _ = data()
    torch.testing.assert_close(model(images.to("openreg:1")).cpu(), reference(images), rtol=1e-3, atol=1e-3)


def test_memory_returns_to_where_it_was():
    losses("openreg:0", OPTIMIZERS["Adam"])
    gc.collect()
    before = torch.openreg.memory_allocated(0)
    for _ in range(2):
        losses("openreg:0", OPTIMIZERS["Adam"])
        torch.openreg.synchronize(0)
    gc.collect()
    assert torch.openreg.memory_allocated(0) == before
