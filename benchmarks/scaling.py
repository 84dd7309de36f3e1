# SPDX-License-Identifier: BSD-3-Clause
"""Measures whether the time per launch stays the same when more is queued, alive, or in use.

Each round runs one fresh process, and one more for each number of devices. README.md describes how to read the numbers.
"""

import argparse
import json
import statistics
import timeit
from collections.abc import Callable
from contextlib import AbstractContextManager

from curves import CURVES, DEVICES, DRAINED, LIVE, QUEUED, STREAMS, WITHIN
from processes import run_script
from results import Family, median_and_spread

LAUNCHES = 960  # in a block: a multiple of every number of streams and devices
TIMED = 100  # launches above those that are queued already
SLEEP = 20_000_000  # nanoseconds that the stream waits at least
SLEEP_PER_LAUNCH = 20_000  # nanoseconds that it waits longer for each launch, which is more than a launch takes
BLOCKS = 3


def held(delay: int, action: Callable[[], float]) -> float:
    """Returns the result of `action`, which runs while the stream waits, so that its launches stay in the queue.

    `delay` is in nanoseconds. Repeats the action with a longer delay if a task was completed meanwhile.
    """
    import torch

    while True:
        torch.accelerator.synchronize()
        torch.openreg._sleep(delay)
        before = torch.openreg.stream_stats().completed
        result = action()
        if torch.openreg.stream_stats().completed == before:
            torch.accelerator.synchronize()
            return result
        delay *= 2  # the machine was too slow for this delay


def queued(count: int, add: Callable[[], object]) -> float:
    """Returns the host's seconds per launch into a queue that contains `count` launches."""

    def fill_and_time() -> float:
        for _ in range(count):
            add()
        begin = timeit.default_timer()
        for _ in range(TIMED):
            add()
        return (timeit.default_timer() - begin) / TIMED

    return held(SLEEP + (count + TIMED) * SLEEP_PER_LAUNCH, fill_and_time)


def drained(count: int, add: Callable[[], object]) -> float:
    """Returns the device's seconds per launch for `count` launches that were all queued when it began."""
    import torch

    begin, end = torch.Event("openreg", enable_timing=True), torch.Event("openreg", enable_timing=True)

    def fill() -> float:
        begin.record()
        for _ in range(count):
            add()
        end.record()
        return 0.0

    held(SLEEP + count * SLEEP_PER_LAUNCH, fill)
    return begin.elapsed_time(end) / 1e3 / count


def block(adds: list[Callable[[], object]], contexts: list[AbstractContextManager], devices: int) -> Callable[[], None]:
    """Returns a function that launches LAUNCHES times, by each of `adds` in its context in turn, and synchronizes."""
    import torch

    pairs = list(zip(adds, contexts, strict=True)) * (LAUNCHES // len(adds))

    def launch() -> None:
        for add, context in pairs:
            with context:
                add()
        for device in range(devices):
            torch.accelerator.synchronize(device)

    return launch


def seconds_per_launch(launch: Callable[[], None], seconds: float) -> float:
    """Returns the median of the seconds per launch over calls of a function from `block`."""
    import torch
    from torch.utils.benchmark import Timer

    launch()
    timer = Timer("launch()", globals={"launch": launch}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=seconds).median / LAUNCHES


def adder(device: str) -> Callable[[], object]:
    """Returns a function that launches one small operator."""
    import torch

    x = torch.zeros(4, device=device)
    return lambda: x + x


def measure_one_device(seconds: float) -> dict[str, float]:
    """Measures all curves except that of the devices, in this process."""
    import contextlib

    import torch

    add = adder("openreg:0")
    nowhere = [contextlib.nullcontext()]
    found = {}
    for curve, function in ((QUEUED, queued), (DRAINED, drained)):
        for count in curve.counts:
            function(count, add)
            found[curve.workload(count)] = statistics.median(function(count, add) for _ in range(BLOCKS))
    for count in LIVE.counts:
        alive = [torch.zeros(4, device="openreg:0") for _ in range(count)]
        found[LIVE.workload(count)] = seconds_per_launch(block([add], nowhere, 1), seconds)
        del alive
    for count in STREAMS.counts:
        streams = [torch.Stream("openreg:0") for _ in range(count)]
        found[STREAMS.workload(count)] = seconds_per_launch(block([add] * count, streams, 1), seconds)
    return found


def measure_devices(count: int, seconds: float) -> dict[str, float]:
    """Measures one point of the devices' curve, in this process, which has `count` devices that take turns."""
    import contextlib

    adds = [adder(f"openreg:{index}") for index in range(count)]
    launch = block(adds, [contextlib.nullcontext()] * count, count)
    return {DEVICES.workload(count): seconds_per_launch(launch, seconds)}


def measure(rounds: int, seconds: float) -> Family:
    """Returns {point: {"openreg": [seconds per launch in each round]}}."""
    found: Family = {curve.workload(count): {"openreg": []} for curve in CURVES for count in curve.counts}
    for number in range(rounds):
        runs = [("--here", "0"), *(("--here", str(count)) for count in DEVICES.counts)]
        for mode, count in runs if number % 2 == 0 else runs[::-1]:
            settings = {"OPENREG_DEVICE_COUNT": count} if count != "0" else {}
            arguments = (mode, count, "--seconds", str(seconds))
            points = run_script("scaling.py", *arguments, device="openreg", settings=settings)
            for name, value in points.items():
                found[name]["openreg"].append(value)
    return found


def show(family: Family) -> None:
    """Prints each point and whether it is within 20 % of its curve's base."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="time per launch of a small operator; the first line of each section is its base")
    for title in ("with", "time per launch", "of the base", f"at most {WITHIN}"):
        table.add_column(title, justify="left" if title == "with" else "right")
    for curve in CURVES:
        table.add_section()
        base = statistics.median(family[curve.base]["openreg"])
        for count in curve.counts:
            values = family[curve.workload(count)]["openreg"]
            times = statistics.median(values) / base
            met = "" if count == curve.counts[0] else "yes" if times <= WITHIN else "NO"
            table.add_row(f"{count:,} {curve.what}", median_and_spread(values), f"{times:.2f}", met)
    Console(width=120).print(table)


def main() -> None:
    """Measures and prints all curves, or prints the points of this process as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="per point and process")
    parser.add_argument("--here", type=int, metavar="DEVICES", help="measure in this process, 0: all but the devices")
    arguments = parser.parse_args()
    if arguments.here is None:
        show(measure(arguments.rounds, arguments.seconds))
    elif arguments.here == 0:
        print(json.dumps(measure_one_device(arguments.seconds)))
    else:
        print(json.dumps(measure_devices(arguments.here, arguments.seconds)))


if __name__ == "__main__":
    main()
