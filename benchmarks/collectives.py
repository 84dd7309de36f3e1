# SPDX-License-Identifier: BSD-3-Clause
"""Measures collectives of two processes: sums, a training step, and the report of a missing rank.

The process group of the CPU is Gloo. That of openreg is openreg-distributed, which also sends its data by Gloo.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from _platform import slow_links
from processes import run_script, turn
from results import Family

SIZE = 2
SIZES = {"4 KiB": 1 << 10, "1 MiB": 1 << 18, "16 MiB": 1 << 22}  # float32 elements
IN_FLIGHT = 8  # collectives that are started before the first one is waited for
SUMS = tuple(f"all_reduce {size}, {IN_FLIGHT} in flight" for size in SIZES)
CALL = "all_reduce 4 KiB, until return"
STEP = "DistributedDataParallel step"
BOTH = "all_reduce beside computation"
APART = ("all_reduce alone", "computation alone")
LINK = 125_000_000  # bytes per second in each direction: 1 Gbit/s
BOTH_LINKED = "all_reduce over a link, beside computation"
APART_LINKED = ("all_reduce over a link, alone", "computation as long as over a link")
REPORT = "a missing rank is reported, beyond the timeout"
LIMIT = 1.0  # seconds: the timeout of the group with a missing rank
WORKLOADS = (*SUMS, CALL, STEP, BOTH, *APART, BOTH_LINKED, *APART_LINKED, REPORT)


def measure_here(rank: int, device_name: str, seconds: float, file: str, into: str) -> None:
    """Measures all workloads in one of the processes. Rank 0 writes its numbers to the file `into`, as JSON."""
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    on_cpu = device_name == "cpu"
    torch.set_num_threads(1)
    if on_cpu:
        device = torch.device("cpu")
    else:
        import openreg_distributed  # noqa: F401  (where openreg-autoload is not installed)

        device = torch.device(device_name, rank)
        torch.accelerator.set_device_index(rank)
    distributed.init_process_group(
        "gloo" if on_cpu else "occl",
        init_method=f"file://{file}",
        rank=rank,
        world_size=SIZE,
        device_id=None if on_cpu else device,
    )

    def synchronize() -> None:
        if not on_cpu:
            torch.accelerator.synchronize()

    def medians(*calls: Callable[[], object], count: int = 1, synchronizes: bool = True) -> list[float]:
        """Returns the median of the seconds per call, for each function.

        Times blocks of `count` calls, the functions by turns. All processes time the same number of blocks.
        """
        for call in calls * 2:
            call()
        synchronize()
        distributed.barrier()
        begin = time.perf_counter()
        for call in calls:
            call()
        synchronize()
        shared = [None] * SIZE
        distributed.all_gather_object(shared, (time.perf_counter() - begin) / len(calls))
        blocks = max(5, min(1000, int(seconds / max(*shared, 1e-6) / count)))
        times = []
        for call in calls * blocks:
            distributed.barrier()
            begin = time.perf_counter()
            for _ in range(count):
                call()
            if synchronizes:
                synchronize()
            times.append((time.perf_counter() - begin) / count)
            synchronize()
        return [statistics.median(times[i :: len(calls)]) for i in range(len(calls))]

    def median(call: Callable[[], object], count: int = 1, synchronizes: bool = True) -> float:
        return medians(call, count=count, synchronizes=synchronizes)[0]

    results = {}
    for size, name in zip(SIZES.values(), SUMS, strict=True):
        tensors = [torch.ones(size, device=device) for _ in range(IN_FLIGHT)]

        def in_flight(tensors=tensors) -> None:
            for work in [distributed.all_reduce(tensor, async_op=True) for tensor in tensors]:
                work.wait()

        results[name] = median(in_flight) / IN_FLIGHT

    small = torch.ones(SIZES["4 KiB"], device=device)
    if not on_cpu:
        results[CALL] = median(lambda: distributed.all_reduce(small, async_op=True), IN_FLIGHT, synchronizes=False)

    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
    model = DistributedDataParallel(torch.nn.Sequential(*layers).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(64, 512).to(device)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    results[STEP] = median(step)

    if not on_cpu:
        sent, matrix = torch.ones(SIZES["16 MiB"], device=device), torch.randn(512, 512).to(device)

        def beside(both: str, apart: tuple[str, str]) -> None:
            """Measures a sum and a computation of about the same time, together and each alone."""
            alone = median(lambda: distributed.all_reduce(sent))
            products = [None] * SIZE
            distributed.all_gather_object(products, alone / median(lambda: matrix @ matrix))
            count = max(1, round(statistics.fmean(products)))

            def compute() -> None:
                for _ in range(count):
                    matrix @ matrix

            def together() -> None:
                work = distributed.all_reduce(sent, async_op=True)
                compute()
                work.wait()

            # They are measured by turns, because they are subtracted from each other.
            found = medians(together, lambda: distributed.all_reduce(sent), compute)
            results.update(zip((both, *apart), found, strict=True))

        beside(BOTH, APART)
        if slow_links(LINK):
            beside(BOTH_LINKED, APART_LINKED)
        results[REPORT] = reported(rank, small)
    if rank == 0:
        Path(into).write_text(json.dumps(results))
    distributed.barrier()
    distributed.destroy_process_group()


def reported(rank: int, tensor) -> float:
    """Returns the seconds from the timeout to the error of a collective that one rank does not call."""
    import torch
    from torch import distributed

    group = distributed.new_group(timeout=timedelta(seconds=LIMIT))
    distributed.barrier()
    late = 0.0
    if rank == 0:
        begin = time.perf_counter()
        distributed.all_reduce(tensor, group=group)
        try:
            torch.accelerator.synchronize()
            sys.exit("a rank that is missing was not reported")
        except RuntimeError:
            late = time.perf_counter() - begin - LIMIT
        torch.get_device_module(tensor.device).reset_device(tensor.device.index)
    return late


def measure(rounds: int, seconds: float) -> Family:
    """Returns {workload: {device: [one number per round]}}."""
    found: Family = {}
    for number in range(rounds):
        for device in turn(number):
            for name, value in run_script("collectives.py", device, "--seconds", str(seconds), device=device).items():
                found.setdefault(name, {}).setdefault(device, []).append(value)
    return found


def main() -> None:
    """Measures on one type of device in two processes, and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device")
    parser.add_argument("--seconds", type=float, default=0.2, help="per workload")
    arguments = parser.parse_args()
    import torch

    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "results"
        torch.multiprocessing.spawn(
            measure_here, (arguments.device, arguments.seconds, str(Path(folder) / "store"), str(into)), nprocs=SIZE
        )
        print(into.read_text())


if __name__ == "__main__":
    main()
