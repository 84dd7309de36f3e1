# SPDX-License-Identifier: BSD-3-Clause
"""Defines the curves that scaling.py measures: the time per launch for increasing numbers of something."""

from dataclasses import dataclass

WITHIN = 1.2  # the limit of each point, relative to the base of its curve


@dataclass(frozen=True)
class Curve:
    """The time per launch with each of `counts` of `what`. The first point is the base of comparison."""

    what: str
    counts: tuple[int, ...]

    def workload(self, count: int) -> str:
        """Returns the name of a point in the results."""
        return f"launch, {count} {self.what}"

    @property
    def base(self) -> str:
        """Returns the name of the first point."""
        return self.workload(self.counts[0])

    @property
    def others(self) -> tuple[str, ...]:
        """Returns the names of the other points."""
        return tuple(map(self.workload, self.counts[1:]))


QUEUED = Curve("queued launches", (1, 10, 100, 1000, 10_000))
DRAINED = Curve("queued launches, until done", (100, 1000, 10_000))
LIVE = Curve("live tensors", (1, 10, 100, 1000, 10_000))
STREAMS = Curve("streams", (1, 2, 4, 8, 16, 32))
DEVICES = Curve("devices", (2, 4, 8))
CURVES = (QUEUED, DRAINED, LIVE, STREAMS, DEVICES)
