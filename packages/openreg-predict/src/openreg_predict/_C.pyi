# SPDX-License-Identifier: BSD-3-Clause
# What a program tells the device, in the order of the host.

Entry = tuple[str, int, int, int, int, int, int, int, int, str]

class TaskLog:
    """Notes tasks, waits and synchronisations of all openreg devices, from its making until :meth:`stop`."""

    def stop(self) -> None:
        """Ends it, having waited until all that was seen is done."""
    def take(self) -> list[Entry]:
        """What was seen since the last time: (kind, call, task, device, queue, ticket, bytes, launch of a graph, queue
        that waits, name)."""

def enter_call(call: int, /) -> None:
    """From now on this thread is in the call of this number; -1: in none."""
