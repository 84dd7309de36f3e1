# SPDX-License-Identifier: BSD-3-Clause
"""Measures the peak memory of training steps, on openreg and on the CPU, each in a process of its own."""

import argparse
import json

from _platform import peak_memory
from names import MODELS
from processes import run_script, turn
from results import Family

OPTIMIZER = "AdamW"  # the one of the suite with the most state
STEPS = 5


def measure_here(device_name: str, model: str) -> dict[str, int]:
    """Trains a few steps. Returns peak bytes by the name of what was measured."""
    import torch
    from workloads.training import training

    device = torch.device(device_name)
    before = peak_memory()
    step = training(model, OPTIMIZER)(device)
    for _ in range(STEPS):
        step()
    if device.type == "cpu":
        return {"process": peak_memory() - before}
    torch.accelerator.synchronize()
    allocated = torch.accelerator.max_memory_allocated()
    return {"process": peak_memory() - before, "allocated on the device": allocated}


def measure(rounds: int) -> Family:
    """Returns {workload: {device: [bytes]}}."""
    found: Family = {}
    for number in range(rounds):
        for model in MODELS:
            for device in turn(number):
                for what, value in run_script("peak_memory.py", "--on", device, model, device=device).items():
                    numbers = found.setdefault(f"train {model}, {OPTIMIZER}, {what}", {})
                    numbers.setdefault(device, []).append(value)
    return found


def main() -> None:
    """Measures and prints the peaks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="processes per model and device")
    parser.add_argument("--on", nargs=2, metavar=("DEVICE", "MODEL"), help="measure in this process, print JSON")
    arguments = parser.parse_args()
    if arguments.on:
        print(json.dumps(measure_here(*arguments.on)))
        return
    import report

    report.show({"peak memory": measure(arguments.rounds)})


if __name__ == "__main__":
    main()
