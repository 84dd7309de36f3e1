# SPDX-License-Identifier: BSD-3-Clause
"""Trains a small convolutional network on handwritten digits, on the simulated device.

Needs openreg-meta, scikit-learn (the data ships with it) and rich. Ends with an error below 97 % of
right answers on images that were not used for training.
"""

import torch

if not hasattr(torch, "openreg") or not torch.openreg.is_available():
    raise SystemExit("no openreg device in this installation; pip install openreg-meta brings it")

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="openreg")
y = x + 2
print(y, y.device)
print(y.cpu())

import argparse  # noqa: E402  (what stands above is the complete usage of the device)
import time  # noqa: E402

from rich.console import Console  # noqa: E402
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: E402
from rich.table import Table  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from torch import nn  # noqa: E402

WANTED = 0.97  # of the answers
BATCH = 64
SEED = 0


def make_model():
    """From images (N, 1, 8, 8) to the scores of ten digits (N, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32 * 4 * 4, 10),
    )


def load_data():
    """Training and test set on the CPU, each images (N, 1, 8, 8) in [0, 1] and labels (N,)."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(SEED))
    test, training = order[:360], order[360:]
    return (images[training], labels[training]), (images[test], labels[test])


def train(model, images, labels, device, epochs, console):
    """Runs Adam over shuffled batches, with a progress bar that shows the loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    bar = Progress(
        TextColumn("epoch {task.fields[epoch]:>2}"),
        BarColumn(bar_width=None),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TimeElapsedColumn(),
        console=console,
    )
    batches = len(labels) // BATCH
    with bar:
        task = bar.add_task("training", total=epochs * batches, epoch=1, loss=float("nan"))
        for epoch in range(1, epochs + 1):
            total = torch.zeros((), device=device)
            for chosen in torch.randperm(len(labels))[: batches * BATCH].split(BATCH):
                # The host does not wait for the copy of pinned memory. A batch is new memory, which is not pinned yet.
                batch = images[chosen].pin_memory().to(device, non_blocking=True)
                wanted = labels[chosen].pin_memory().to(device, non_blocking=True)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(batch), wanted)
                loss.backward()
                optimizer.step()
                # The host does not read the loss of each batch: that would wait for the device.
                total += loss.detach()
                bar.advance(task)
            bar.update(task, epoch=epoch, loss=total.item() / batches)


@torch.no_grad()
def accuracy(model, images, labels, device):
    """Share of the images whose highest score is that of the right digit."""
    model.eval()
    answers = model(images.to(device)).argmax(dim=1)
    return (answers == labels.to(device)).float().mean().item()


def report(console, device, seconds, reached):
    """A table of what the training came to."""
    table = Table(title=f"Handwritten digits on {device}", show_header=False)
    table.add_row("test accuracy", f"{reached:.2%} (at least {WANTED:.0%})")
    table.add_row("training time", f"{seconds:.1f} s")
    if device.type == "openreg":
        used, peak = (
            torch.openreg.memory_allocated(device),
            torch.openreg.max_memory_allocated(device),
        )
        table.add_row("device memory", f"{used / 2**20:.2f} MiB used, {peak / 2**20:.2f} MiB at most")
        stats = torch.openreg.device_stats(device)
        table.add_row("device work", f"{stats.launches} kernels, {stats.copies} copies")
        fallbacks = torch.openreg.fallback_stats()
        for name, count in sorted(fallbacks.items()):
            table.add_row("fell back to the CPU", f"{name}, {count.calls} x")
        if not fallbacks:
            table.add_row("fell back to the CPU", "no operator")
    console.print(table)


def main():
    """Trains, measures and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", type=torch.device, default=torch.device("openreg:0"))
    parser.add_argument("--epochs", type=int, default=12)
    arguments = parser.parse_args()
    console = Console()
    training, test = load_data()
    torch.manual_seed(SEED)
    if arguments.device.type == "openreg":
        torch.openreg.reset_fallback_stats()  # printing, above, is not part of what the table tells
    model = make_model().to(arguments.device)
    start = time.perf_counter()
    train(model, *training, arguments.device, arguments.epochs, console)
    seconds = time.perf_counter() - start
    reached = accuracy(model, *test, arguments.device)
    report(console, arguments.device, seconds, reached)
    if reached < WANTED:
        raise SystemExit(f"test accuracy {reached:.2%} is below {WANTED:.0%}")


if __name__ == "__main__":
    main()
