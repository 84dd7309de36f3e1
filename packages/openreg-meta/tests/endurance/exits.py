# SPDX-License-Identifier: BSD-3-Clause
"""Starts processes that use torch and end while the device is busy. None may crash or hang.

    python exits.py --processes 100
    python exits.py --processes 200 --work backward --no-exit-wait  # how often PyTorch's own threads abort a process
    python exits.py --processes 200 --work backward --device cpu     # the same without a device

Importing torch takes seconds, so one process does that, uses no device, and forks a child for each run. The child is
the first to use the device and ends as every Python process does: exit handlers, finalization, static destructors.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import BinaryIO

import torch

SLOWEST = 120.0  # seconds
LONG = 10**13  # nanoseconds


def queued(device: str) -> object:
    """Kernels and copies behind a pause of hours, on streams of both devices."""
    x = torch.ones(256, 256, device=device)
    pinned = torch.empty(256, 256, pin_memory=True)
    streams = [torch.openreg.Stream(index % 2, -(index % 3)) for index in range(6)]
    for stream in streams:
        with stream:
            y = torch.ones(256, 256, device=stream.device)
            for _ in range(50):
                y = y @ y * 1e-3
            pinned.copy_(y, non_blocking=True)
            torch.openreg._sleep(LONG)
        x += y.to(x.device, non_blocking=True)
    return x, pinned, streams


def replayed(device: str) -> object:
    """Launches of a graph, whose memory and streams go with the process."""
    graph = torch.accelerator.Graph()
    x = torch.zeros(1000, device=device)
    with torch.Stream(device), graph:
        for _ in range(20):
            x.add_(torch.rand_like(x))
    torch.openreg._sleep(1_000_000)
    for _ in range(20):
        graph.replay()
    return graph


def threaded(device: str) -> object:
    """Threads that wait for the device: for its work, and for room in a full queue."""
    full, x = torch.openreg.Stream(), torch.ones(1000, device=device)
    for stream in (torch.openreg.current_stream(), full):
        with stream:
            torch.openreg._sleep(LONG)

    def fill() -> None:
        with full:
            while True:
                x.mul_(2)

    for function in (torch.openreg.synchronize, full.synchronize, x.cpu, fill):
        threading.Thread(target=function, daemon=True).start()
    time.sleep(1)
    return x, full


def backward(device: str) -> object:
    """A backward pass at the very end, so that PyTorch's threads are still at work."""
    weight = torch.ones(64, 64, device=device, requires_grad=True)
    (weight @ weight).sum().backward()
    return None


WORK = {function.__name__: function for function in (queued, replayed, threaded, backward)}


def wait_for(child: int, seconds: float) -> int | None:
    """The child's status, negative for a signal; None if it had to be killed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--work", choices=WORK, help="default: all in turn")
    parser.add_argument("--device", default="openreg", help="openreg, or cpu with --work backward")
    parser.add_argument("--no-exit-wait", action="store_true", help="do not wait for PyTorch's threads at exit")
    parser.add_argument("--at-once", type=int, default=2, help="processes that run at the same time")
    return parser.parse_args()


@dataclass
class Run:
    """A process that was started; its standard error goes to a file without a name."""

    work: str
    errors: BinaryIO
    started: float
    process: int

    def end(self) -> str:
        """How it did not end well; empty if it did."""
        code = wait_for(self.process, SLOWEST)
        self.errors.seek(0)
        text = self.errors.read().decode().strip()
        self.errors.close()
        return "" if (code, text) == (0, "") else f"{self.work}: status {code}: {text[-300:]}"


def supervise(arguments: argparse.Namespace) -> tuple[int, str | None]:
    """The status of the program; in a child at once, with what it has to do."""
    kinds = [arguments.work] if arguments.work else list(WORK)
    ends: collections.Counter[str] = collections.Counter()
    begin, slowest = time.monotonic(), 0.0
    running: list[Run] = []
    for number in range(arguments.processes + arguments.at_once):
        if number >= arguments.at_once:
            run = running.pop(0)
            if end := run.end():
                ends[end] += 1
            slowest = max(slowest, time.monotonic() - run.started)
        if number < arguments.processes:
            errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by end())
            run = Run(kinds[number % len(kinds)], errors, time.monotonic(), os.fork())
            if run.process == 0:
                os.dup2(run.errors.fileno(), 2)
                return 0, run.work
            running.append(run)
    bad = ends.total()
    print(
        f"{bad} of {arguments.processes} processes did not end well; "
        f"{time.monotonic() - begin:.0f} s, the slowest took {slowest:.1f} s"
    )
    for end, count in ends.most_common():
        print(f"{count} x {end}")
    return int(bad > 0), None


def main() -> int:
    arguments = parse()
    if arguments.no_exit_wait:
        from openreg_runtime import _startup

        _startup._EXIT_WAIT_SECONDS = 0
    status, work = supervise(arguments)
    if work is not None:
        global kept
        kept = WORK[work](arguments.device)
    return status


kept: object = None  # what a child leaves to the end of its process

if __name__ == "__main__":
    sys.exit(main())
