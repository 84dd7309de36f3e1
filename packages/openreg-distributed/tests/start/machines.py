# SPDX-License-Identifier: BSD-3-Clause
"""Two machines: network namespaces of this one that a cable joins, each with its own loopback and nothing else.

Namespaces need root, Linux and iproute2. Elsewhere two addresses of the loopback stand for the machines.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ADDRESSES = ("192.0.2.1", "192.0.2.2")  # kept for documentation: no host has them
LOOPBACK = ("127.0.0.2", "127.0.0.3")


@dataclass(frozen=True)
class Machine:
    """Where a launcher runs."""

    address: str
    namespace: str  # its name; none where it is this machine's
    interface: str

    def environment(self) -> dict[str, str]:
        """What a program needs beside, that runs here: the name of such a machine leads to its loopback."""
        return {"GLOO_SOCKET_IFNAME": self.interface}


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=120)


@contextlib.contextmanager
def namespaces() -> Iterator[tuple[Machine, Machine]]:
    """Raises OSError or CalledProcessError where they cannot be made."""
    names = [f"openreg-{os.getpid()}-{i}" for i in range(2)]
    cables = [f"or{os.getpid()}x{i}" for i in range(2)]
    with contextlib.ExitStack() as stack:
        for name in names:
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "del", name)
        _ip("link", "add", cables[0], "type", "veth", "peer", "name", cables[1])
        stack.callback(subprocess.run, ["ip", "link", "del", cables[0]], capture_output=True)  # goes with its namespace
        for name, cable, address in zip(names, cables, ADDRESSES, strict=True):
            _ip("link", "set", cable, "netns", name)
            _ip("-n", name, "address", "add", f"{address}/24", "dev", cable)
            _ip("-n", name, "link", "set", cable, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        first, second = (
            Machine(address, name, cable) for name, cable, address in zip(names, cables, ADDRESSES, strict=True)
        )
        yield first, second


@contextlib.contextmanager
def two_machines() -> Iterator[tuple[Machine, Machine]]:
    """Namespaces, or two addresses where these are refused."""
    with contextlib.ExitStack() as stack:
        try:
            pair = stack.enter_context(namespaces())
        except (OSError, subprocess.CalledProcessError):
            interface = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
            first, second = (Machine(address, "", interface) for address in LOOPBACK)
            pair = first, second
        yield pair


def losses(folder: Path) -> dict[int, float]:
    """Of each step of the program, the last time that it was made."""
    lines = [line.split() for line in (folder / "losses").read_text().splitlines()]
    return {int(step): float(loss) for step, loss in lines}
