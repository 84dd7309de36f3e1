# SPDX-License-Identifier: BSD-3-Clause
"""Eight threads use both devices at random for a while, and check every number that they read back.

Each thread owns tensors whose content it can predict: a ramp plus a number. It creates them, changes them, copies them
between devices and to pinned memory and drops them, each on a random one of the streams that all threads share, and
orders what it does by events and ``record_stream`` alone. Freed memory is poisoned, so memory that is reused too early,
a write that got lost and a read that came too soon all give a wrong number. The device is small enough to run out of
memory now and then: a thread that meets that drops all it has.

    python soak.py --seconds 60 --seed 0
    python soak.py --seconds 60 --leave-out record_stream   # the program is wrong on purpose, and has to notice

It ends with status 0 if every number was right and all memory came back, with 1 and the reason if not, and with the
stacks of all threads if it hangs.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import gc
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

os.environ["OPENREG_POISON"] = "1"  # before the device is used
import torch

MIB = 1 << 20
LEAVE_OUT = {
    "record_stream": "memory is reused while another stream reads it",
    "wait": "streams do not wait for each other",
    "release": "the first tensor is never dropped",
    "end": "a stream never comes to its end",
}
OWNED = 6  # tensors of a thread at most


@dataclass
class Owned:
    """A tensor that holds ramp + number, and the event after its last use."""

    tensor: torch.Tensor
    number: int
    used: torch.Event


@dataclass
class Download:
    """Pinned memory that will hold ramp + number when the event is reached."""

    memory: torch.Tensor
    number: int
    done: torch.Event


class Shared:
    """What the threads have in common."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.leave_out: str | None = arguments.leave_out
        self.largest = arguments.largest_mib * MIB // 4
        self.end = time.monotonic() + arguments.seconds
        self.devices = [torch.device("openreg", index) for index in range(torch.openreg.device_count())]
        self.streams = {
            device: [torch.openreg.Stream(device, -(number % 3)) for number in range(arguments.streams // 2)]
            for device in self.devices
        }
        self.host_ramp = torch.arange(self.largest, dtype=torch.int32)
        self.ramps = {device: self.host_ramp.to(device) for device in self.devices}
        self.kept: list[Owned] = []
        self.failures: list[str] = []

    def running(self) -> bool:
        return not self.failures and time.monotonic() < self.end


class Worker:
    """One thread's tensors and what it does to them."""

    def __init__(self, shared: Shared, name: str, seed: str) -> None:
        self.shared = shared
        self.name = name
        self.random = random.Random(seed)
        self.owned: list[Owned] = []
        self.downloads: list[Download] = []
        self.steps: collections.Counter[str] = collections.Counter()
        self.actions: list[Callable[[], None]] = [
            *(self.create, self.upload, self.upload_pageable, self.change, self.change, self.derive, self.rewrite),
            *(self.copy_to_peer, self.download, self.download, self.download_and_drop, self.read_one, self.drop),
            *(self.pause, self.ask),
        ]

    def run(self) -> None:
        try:
            while self.shared.running():
                self.step()
            if self.shared.leave_out == "release":
                self.shared.kept += self.owned[:1]
            if self.shared.leave_out == "end":
                torch.openreg._sleep(2**63)
            for owned in self.owned:
                self.read(owned)
            self.finish_downloads(0)
        except BaseException as error:
            self.shared.failures.append(f"{self.name}, step {self.steps.total()}: {type(error).__name__}: {error}")
        finally:
            self.owned.clear()
            self.downloads.clear()

    def step(self) -> None:
        if self.random.random() < 0.002:
            self.disturb()
        action = self.random.choice(self.actions) if self.owned else self.create
        if len(self.owned) > OWNED:
            action = self.download_and_drop
        try:
            action()
            self.steps[action.__name__] += 1
        except torch.OutOfMemoryError:
            self.owned.clear()
            self.steps["out of memory"] += 1
        self.finish_downloads(4)

    # Order: every use of a tensor comes after the one before, and keeps its memory from being reused too early.

    def stream(self, owned: Owned | None = None) -> torch.Stream:
        device = owned.tensor.device if owned else self.random.choice(self.shared.devices)
        return self.random.choice(self.shared.streams[device])

    def use(self, owned: Owned) -> torch.Stream:
        """Makes a random stream current on which the tensor may be used; `used` has to be recorded after that."""
        stream = self.stream(owned)
        if self.shared.leave_out != "wait":
            stream.wait_event(owned.used)
        if self.shared.leave_out != "record_stream":
            owned.tensor.record_stream(stream)
        torch.openreg.set_stream(stream)
        return stream

    def own(self, tensor: torch.Tensor, number: int, stream: torch.Stream) -> None:
        self.owned.append(Owned(tensor, number, stream.record_event()))

    def pick(self) -> tuple[Owned, torch.Stream]:
        owned = self.random.choice(self.owned)
        return owned, self.use(owned)

    # What a thread does

    def create(self) -> None:
        stream, number = self.stream(), self.number()
        with stream:
            self.own(self.shared.ramps[stream.device][: self.size()] + number, number, stream)

    def upload(self) -> None:
        """From pinned memory, which is let go while the copy is under way."""
        stream, number = self.stream(), self.number()
        pinned = torch.empty(self.size(), dtype=torch.int32, pin_memory=True)
        torch.add(self.shared.host_ramp[: pinned.numel()], number, out=pinned)
        with stream:
            self.own(pinned.to(stream.device, non_blocking=True), number, stream)

    def upload_pageable(self) -> None:
        """From memory that changes as soon as the call returned."""
        stream, number = self.stream(), self.number()
        source = self.shared.host_ramp[: self.size()] + number
        with stream:
            self.own(source.to(stream.device, non_blocking=True), number, stream)
        source.zero_()

    def change(self) -> None:
        owned, stream = self.pick()
        number = self.number()
        owned.tensor.add_(number)
        owned.number += number
        owned.used = stream.record_event()

    def derive(self) -> None:
        owned, stream = self.pick()
        number = self.number()
        self.own(owned.tensor + number, owned.number + number, stream)
        owned.used = stream.record_event()

    def rewrite(self) -> None:
        """From memory that is free again before it was read."""
        owned, stream = self.pick()
        owned.number = self.number()
        owned.tensor.copy_(self.shared.ramps[owned.tensor.device][: owned.tensor.numel()] + owned.number)
        owned.used = stream.record_event()

    def copy_to_peer(self) -> None:
        owned, stream = self.pick()
        peer = self.random.choice([device for device in self.shared.devices if device != owned.tensor.device])
        there = self.random.choice(self.shared.streams[peer])
        torch.openreg.set_stream(there)
        self.own(owned.tensor.to(peer, non_blocking=True), owned.number, there)
        owned.used = stream.record_event()

    def download(self) -> None:
        self.start_download(self.random.choice(self.owned))

    def download_and_drop(self) -> None:
        """The tensor's memory is free for reuse while the copy still has to read it."""
        owned = self.owned.pop(self.random.randrange(len(self.owned)))
        self.start_download(owned, pause=self.random.randrange(1_000_000))

    def start_download(self, owned: Owned, pause: int = 0) -> None:
        stream = self.use(owned)
        torch.openreg._sleep(pause)
        pinned = torch.empty(owned.tensor.numel(), dtype=torch.int32, pin_memory=True)
        pinned.copy_(owned.tensor, non_blocking=True)
        owned.used = stream.record_event()
        self.downloads.append(Download(pinned, owned.number, owned.used))

    def read_one(self) -> None:
        self.read(self.random.choice(self.owned))

    def read(self, owned: Owned) -> None:
        stream = self.use(owned)
        self.check(owned.tensor.cpu(), owned.number)
        owned.used = stream.record_event()

    def drop(self) -> None:
        self.owned.pop(self.random.randrange(len(self.owned)))

    def pause(self) -> None:
        with self.stream():
            torch.openreg._sleep(self.random.randrange(500_000))

    def ask(self) -> None:
        owned = self.random.choice(self.owned)
        owned.used.query()
        self.stream().query()
        torch.openreg.memory_stats(owned.tensor.device)

    def disturb(self) -> None:
        """What stops everybody for a moment."""
        action = self.random.choice([self.synchronize, torch.openreg.empty_cache, torch.openreg.empty_host_cache])
        action()
        self.steps[action.__name__] += 1

    def synchronize(self) -> None:
        torch.openreg.synchronize(self.random.choice(self.shared.devices))

    # Contents

    def number(self) -> int:
        return self.random.randrange(1, 1000)

    def size(self) -> int:
        """Small ones most of the time."""
        return int(self.shared.largest ** self.random.random())

    def finish_downloads(self, remaining: int) -> None:
        while len(self.downloads) > remaining:
            download = self.downloads.pop(0)
            download.done.synchronize()
            self.check(download.memory, download.number)

    def check(self, values: torch.Tensor, number: int) -> None:
        wrong = (values - number).ne(self.shared.host_ramp[: values.numel()])
        if wrong.any():
            where = int(wrong.nonzero()[0])
            raise AssertionError(
                f"{int(wrong.sum())} of {values.numel()} numbers are wrong: element {where} is "
                f"{int(values[where]) % 2**32:#x} instead of {number + where:#x} (0xffffffff is poison)"
            )


def leaks(shared: Shared) -> list[str]:
    """What is still there after everything was dropped."""
    for device in shared.devices:
        torch.openreg.synchronize(device)
    shared.ramps.clear()
    gc.collect()
    found = []
    allocated = [torch.openreg.memory_allocated(device) for device in shared.devices]
    torch.openreg.empty_cache()
    torch.openreg.empty_host_cache()
    for device, bytes_allocated in zip(shared.devices, allocated, strict=True):
        counters = {
            "allocated": bytes_allocated,
            "active": torch.openreg.memory_stats(device)["active_bytes.all.current"],
            "reserved": torch.openreg.memory_reserved(device),
            "in use on the device": torch.openreg.device_stats(device).allocated_bytes,
        }
        found += [f"{device}: {value} bytes {name}" for name, value in counters.items() if value]
    pinned = torch.openreg.host_memory_stats()["allocated_bytes.current"]
    return found + ([f"{pinned} bytes pinned"] if pinned else [])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default="0", help="selects what each thread does; how they interleave is chance")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--streams", type=int, default=16, help="of all devices together")
    parser.add_argument("--grace", type=float, default=60, help="seconds for what is under way when the time is over")
    parser.add_argument("--largest-mib", type=int, default=2, help="size of the largest tensor")
    parser.add_argument("--memory", default="64MiB", help="capacity of a device")
    parser.add_argument("--leave-out", choices=LEAVE_OUT, help=f"a mistake to make on purpose: {LEAVE_OUT}")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    os.environ["OPENREG_DEVICE_MEMORY"] = arguments.memory
    faulthandler.dump_traceback_later(arguments.seconds + arguments.grace, exit=True)
    shared = Shared(arguments)
    workers = [Worker(shared, f"thread {number}", f"{arguments.seed}/{number}") for number in range(arguments.threads)]
    threads = [threading.Thread(target=worker.run, name=worker.name) for worker in workers]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin
    steps = sum((worker.steps for worker in workers), collections.Counter())
    retries = sum(torch.openreg.memory_stats(device)["num_alloc_retries"] for device in shared.devices)
    failures = shared.failures + leaks(shared)
    done = ", ".join(f"{count} {name}" for name, count in sorted(steps.items()))
    print(
        f"seed {arguments.seed}: {steps.total()} steps of {len(workers)} threads in {seconds:.1f} s: {done}; "
        f"{retries} allocations after releasing the cache"
    )
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
