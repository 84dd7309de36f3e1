# SPDX-License-Identifier: BSD-3-Clause
# The native time source, which replaces the clock of the openreg devices by the simulated time of a described chip. All
# times are whole nanoseconds, except times per byte.

# One task: (call, kind, device, queue, bytes, graph launch, name, host time, engine, launched, begin, end). `call` is
# the number of the operator call that enqueued it, or -1. The last three are times of the clock of the device's events.
Entry = tuple[int, int, int, int, int, int, str, int, int, int, int, int]

class ChipTimeSource:
    """A time source: from start() to stop(), all openreg devices run in the time of a chip.

    The tasks of an operator call take the time that set_cost() has set. Other tasks take the default costs that the
    constructor gets: times per launch and per byte.
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
        """Blocks until no task is queued. Raises RuntimeError if another time source runs or the schedule is seeded."""
    def stop(self) -> None:
        """Blocks until the deferred tasks are complete."""
    def set_cost(self, call: int, engine_time: int, graph_time: int, engine: int, is_collective: bool, /) -> None:
        """Sets the cost of a call, outside of a graph and in a graph, and its engine.

        An ``engine`` of -1 means that the tasks have the default cost and engine of their kinds.
        """
    def entries(self) -> list[Entry]:
        """Returns the tasks in the order in which the host enqueued them."""
    def waits(self) -> list[int]:
        """Returns the times at which waits of the host ended."""
    def begin(self) -> int:
        """Returns the time at which start() returned."""

def enter_call(call: int, /) -> None:
    """Sets the operator call to which tasks of the calling thread belong from now on; -1: none."""
