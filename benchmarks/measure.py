# SPDX-License-Identifier: BSD-3-Clause
"""Measures one family of workloads on one device, in this process, and prints seconds per call as JSON."""

import argparse
import json
import statistics
import timeit

import torch
from workloads import FAMILIES, Workload

BLOCK_SECONDS = 0.02
LAUNCHES = 200  # between two synchronizations if only the host's time counts; they fit into a stream's queue


def synchronize(device: torch.device) -> None:
    """Blocks until all tasks of the device are complete. Returns at once for the CPU, which has no tasks."""
    if device.type != "cpu":
        torch.accelerator.synchronize()


def seconds_per_call(workload: Workload, device: torch.device, seconds: float) -> float:
    """Returns the median over blocks of calls, each long enough to be timed."""
    function = workload.prepare(device)

    def clock() -> float:
        if not workload.until_return:
            synchronize(device)
        return timeit.default_timer()

    # Not the Timer of torch.utils.benchmark, whose timeit() makes calls that it does not time before those that it
    # times: the first ones after a disturbance, and ones that are still in the queue when the clock starts.
    timer = timeit.Timer(function, timer=clock)
    timer.timeit(2)  # what is loaded, compiled or allocated once
    once = max(timer.timeit(3) / 3, 1e-7)
    calls = LAUNCHES if workload.until_return else workload.calls or max(1, round(BLOCK_SECONDS / once))
    timer.timeit(calls)
    blocks: list[float] = []
    deadline = timeit.default_timer() + seconds
    while len(blocks) < 3 or timeit.default_timer() < deadline:
        if workload.disturb is not None:
            workload.disturb(device)
        synchronize(device)
        blocks.append(timer.timeit(calls) / calls)
    return statistics.median(blocks)


def main() -> None:
    """Measures one family on one device, and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device")
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--seconds", type=float, default=0.3, help="per workload")
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    # As a Timer of torch.utils.benchmark does: from then on MKL uses all these threads, and does not choose fewer.
    torch.set_num_threads(torch.get_num_threads())
    results = {}
    for workload in FAMILIES[arguments.family]:
        if arguments.only in workload.name and (workload.on_cpu or device.type != "cpu"):
            torch.manual_seed(0)
            results[workload.name] = seconds_per_call(workload, device, arguments.seconds)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
