# SPDX-License-Identifier: BSD-3-Clause
"""Measures the openreg device beside the CPU it is simulated on.

Every measurement runs in a process of its own, and the two devices take turns, so that neither sees
the other's threads and caches, and a disturbance of the machine meets both. README.md says how to
read the numbers.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import timeit
from pathlib import Path

DEVICES = ("openreg", "cpu")
RESULTS = Path(__file__).with_name("results.json")
LAUNCHES = 200  # between two synchronisations, where only the host's time counts


def measure(device_name, seconds):
    """Seconds per call of every workload, measured in this process."""
    import torch
    from torch.utils.benchmark import Timer
    from workloads import WORKLOADS

    device = torch.device(device_name)
    torch.manual_seed(0)
    results = {}
    for workload in WORKLOADS:
        function = workload.prepare(device)
        # The timer of torch.utils.benchmark synchronises the device whenever it reads the clock.
        options = {"timer": timeit.default_timer} if workload.until_return else {}
        timer = Timer(
            "function()",
            globals={"function": function},
            num_threads=torch.get_num_threads(),
            **options,
        )
        for _ in range(3):
            function()
        if workload.until_return:
            results[workload.name] = host_seconds(timer, seconds)
        else:
            results[workload.name] = timer.blocked_autorange(min_run_time=seconds).median
    return results


def host_seconds(timer, seconds):
    """Median seconds per call over blocks short enough not to fill the device's queue."""
    import torch

    blocks, spent = [], 0.0
    while spent < seconds:
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()
        block = timer.timeit(LAUNCHES)
        blocks.append(block.median)
        spent += block.median * LAUNCHES
    return statistics.median(blocks)


def measure_apart(device, seconds):
    """The same in a fresh process; that of the CPU does not load the device."""
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0" if device == "cpu" else "1"}
    command = [sys.executable, __file__, "--measure", device, "--seconds", str(seconds)]
    output = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output)


def measure_all(rounds, seconds):
    """{workload: {device: [seconds per call in each round]}}."""
    from rich.progress import track

    turns = []
    for number in range(rounds):
        # Who goes first changes with every round.
        turns += DEVICES if number % 2 == 0 else DEVICES[::-1]
    times = {}
    for device in track(turns, description="measuring"):
        for name, value in measure_apart(device, seconds).items():
            times.setdefault(name, {key: [] for key in DEVICES})[device].append(value)
    return times


def spread(values):
    """Half the distance between the quartiles, relative to the median."""
    lower, middle, upper = statistics.quantiles(values, n=4)
    return (upper - lower) / 2 / middle


def show(times, rounds):
    """Prints medians, spreads and their ratio."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"median of {rounds} processes each (± half the distance of the quartiles)")
    for title in ("workload", *DEVICES, "openreg / cpu"):
        table.add_column(title, justify="left" if title == "workload" else "right")
    for name, by_device in times.items():
        medians = [statistics.median(by_device[device]) for device in DEVICES]
        cells = [
            f"{median * 1e6:,.2f} µs ±{spread(by_device[device]):4.0%}"
            for device, median in zip(DEVICES, medians, strict=True)
        ]
        table.add_row(name, *cells, f"{medians[0] / medians[1]:.2f}")
    Console(width=100).print(table)


def machine():
    """What the numbers depend on."""
    import platform

    import torch

    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
    }


def main():
    """Measures, prints the table, and writes every single number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="processes per device, at least 5")
    parser.add_argument("--seconds", type=float, default=0.5, help="per workload and process")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the numbers go")
    parser.add_argument("--measure", choices=DEVICES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.seconds)))
        return
    if arguments.rounds < 5:
        parser.error("fewer than 5 rounds say nothing about the spread")
    times = measure_all(arguments.rounds, arguments.seconds)
    show(times, arguments.rounds)
    report = {"machine": machine(), "seconds_per_call": times}
    arguments.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    print(f"every number: {arguments.json}")


if __name__ == "__main__":
    main()
