# SPDX-License-Identifier: BSD-3-Clause
"""A small convolutional network trains on the device as it does on the CPU."""

import torch
import torch_pocket  # noqa: F401 - makes the device known to PyTorch
from torch import nn


def make_model():
    """From images (N, 1, 8, 8) to the scores of ten classes (N, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )


def train(device):
    """Return the loss of each step, and the scores of the trained model, which uses its running statistics for them."""
    torch.manual_seed(0)
    images = torch.randn(64, 1, 8, 8)
    labels = images.flatten(1)[:, :10].argmax(dim=1)
    model = make_model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        return torch.tensor(losses), model(images.to(device)).cpu()


def test_a_network_trains_as_on_the_cpu():
    losses, scores = train("pocket")
    assert losses[-1] < losses[0] / 2
    expected_losses, expected_scores = train("cpu")
    torch.testing.assert_close(losses, expected_losses, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(scores, expected_scores, rtol=1e-2, atol=1e-2)


def test_batch_normalization_without_statistics_is_that_of_the_cpu():
    x = torch.randn(8, 4, 5)
    y = nn.functional.batch_norm(x.to("pocket"), None, None, training=True)
    torch.testing.assert_close(y.cpu(), nn.functional.batch_norm(x, None, None, training=True))


def test_dropout_leaves_out_about_the_part_that_it_is_told():
    x = torch.ones(10_000, device="pocket")
    dropped = (nn.functional.dropout(x, 0.25) == 0).float().mean().item()
    assert 0.2 < dropped < 0.3
