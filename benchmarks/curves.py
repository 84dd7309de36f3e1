# SPDX-License-Identifier: BSD-3-Clause
"""The curves that scaling.py measures: of what there is more and more while the time per launch is taken."""

from dataclasses import dataclass

WITHIN = 1.2  # times the base


@dataclass(frozen=True)
class Curve:
    """Time per launch with `counts` of `what`; the first is the base that the others are compared with."""

    what: str
    counts: tuple[int, ...]

    def workload(self, count: int) -> str:
        """The name of one point among the results."""
        return f"launch, {count} {self.what}"

    @property
    def base(self) -> str:
        """The name of the first point."""
        return self.workload(self.counts[0])

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the points after it."""
        return tuple(map(self.workload, self.counts[1:]))


QUEUED = Curve("queued launches", (1, 10, 100, 1000, 10_000))
DRAINED = Curve("queued launches, until done", (100, 1000, 10_000))
LIVE = Curve("live tensors", (1, 10, 100, 1000, 10_000))
STREAMS = Curve("streams", (1, 2, 4, 8, 16, 32))
DEVICES = Curve("devices", (2, 4, 8))
CURVES = (QUEUED, DRAINED, LIVE, STREAMS, DEVICES)
