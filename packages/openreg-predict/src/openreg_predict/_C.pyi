# SPDX-License-Identifier: BSD-3-Clause
# Keeps the time of the device. All times are whole nanoseconds, but for those per byte.

# (call, kind, device, queue, bytes, launch of a graph, name, time of the host, engine, launched, begin, end): a task,
# the call of an operator that it belongs to or -1, and when it ran by the clock of the device's events.
Entry = tuple[int, int, int, int, int, int, str, int, int, int, int, int]

class ChipTimeSource:
    """From start() to stop() all openreg devices run in the time of a chip, where a call takes what set_cost() says.

    What no call explains takes the defaults: time per byte of memory or link, and per launch.
    """

    def __init__(
        self,
        *,
        host_launch: int,
        launch: int,
        link_latency: int,
        memory_time: float,
        link_time: float,
        copy_engine: int,
        engines: int,
    ) -> None: ...
    def start(self) -> None:
        """Waits until nothing is queued. Raises RuntimeError where another one keeps the time, or a seed does."""
    def stop(self) -> None:
        """Runs the deferred tasks."""
    def set_cost(self, call: int, engine_time: int, graph_time: int, engine: int, is_collective: bool, /) -> None:
        """What a call costs, launched by itself and by a graph, on an engine; -1: that of the kind of its tasks."""
    def entries(self) -> list[Entry]:
        """What ran, in the order of the host."""
    def waits(self) -> list[int]:
        """Until when the host waited, each time that it did."""
    def begin(self) -> int:
        """The clock at the beginning."""

def enter_call(call: int, /) -> None:
    """From now on this thread is in the call of this number; -1: in none."""
