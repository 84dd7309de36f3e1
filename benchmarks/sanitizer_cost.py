# SPDX-License-Identifier: BSD-3-Clause
"""Measures how much longer a training step takes while openreg-sanitizer observes the device.

Both times are taken by turns in one process, so that other load on the machine meets both.
"""

import argparse
import statistics
import timeit

import torch
from names import MODELS
from workloads.training import training

LIMITS = {"MLP": 2.0, "encoder": 1.2}  # of the ratio


def seconds(step, steps: int) -> float:
    """Returns the seconds of a step, from a block of steps that ends with the device's last task."""
    step()
    torch.accelerator.synchronize()
    begin = timeit.default_timer()
    for _ in range(steps):
        step()
    torch.accelerator.synchronize()
    return (timeit.default_timer() - begin) / steps


def measure(model: str, rounds: int, steps: int) -> tuple[float, float]:
    """Returns the medians of the seconds of a step, alone and observed."""
    step = training(model, "AdamW")(torch.device("openreg"))
    alone, observed = [], []
    for _ in range(rounds):
        alone.append(seconds(step, steps))
        with torch.openreg.sanitizer("collect"):
            observed.append(seconds(step, steps))
    return statistics.median(alone), statistics.median(observed)


def main() -> None:
    """Measures and prints a line for each model, and whether its target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    for model in MODELS:
        alone, observed = measure(model, arguments.rounds, arguments.steps)
        ratio = observed / alone
        met = f"; at most {LIMITS[model]}: {'yes' if ratio <= LIMITS[model] else 'NO'}" if model in LIMITS else ""
        print(f"{model:8} {alone * 1e3:6.2f} ms, observed {observed * 1e3:6.2f} ms, {ratio:.2f} times{met}")


if __name__ == "__main__":
    main()
