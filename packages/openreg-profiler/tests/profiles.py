# SPDX-License-Identifier: BSD-3-Clause
"""Makes, exports and reads profiles for the tests, and checks what every profile has to contain."""

from collections import defaultdict
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch.profiler import ProfilerActivity, profile

from openreg_profiler import trace

BOTH = (ProfilerActivity.CPU, ProfilerActivity.PrivateUse1)
# The form of the file has three decimals of a microsecond, and its times are about 1e12.
ROUNDING = 0.003


class Profile:
    """A finished profile: what it says in Python, and the trace."""

    def __init__(self, profiler, path):
        self.profiler = profiler
        profiler.export_chrome_trace(str(path))
        self.trace = trace.read(path)
        self.names = [item.name for item in self.trace.work]

    def on(self, stream, device=0):
        """The work of the stream that has this name."""
        return [
            item
            for item in self.trace.work
            if item.process == device and self.trace.streams[device, item.track].name == stream
        ]


class Exported(Profile):
    """A profile of which only the trace is left."""

    def __init__(self, path):
        self.trace = trace.read(path)


@contextmanager
def profiled(tmp_path, activities=BOTH, **options):
    """Profiles a block; what it gives is complete after the block."""
    found = []
    with profile(activities=list(activities), **options) as profiler:
        yield found
        torch.openreg.synchronize()
    found.append(Profile(profiler, tmp_path / "trace.json"))


def operators(found):
    """Operators of the host by their number."""
    return {item.args["External id"]: item for item in found.trace.host if "External id" in item.args}


def check(found):
    """Every task of a device is there once, on its stream in the order of the launches, inside of what launched it."""
    by_stream = defaultdict(list)
    for item in [*found.trace.work, *found.trace.waits]:
        by_stream[item.process, item.track].append(item)
    for tasks in by_stream.values():
        tasks.sort(key=lambda item: item.begin)
        places = [item.args["place"] for item in tasks]
        assert places == sorted(set(places)), places
        for before, after in pairwise(tasks):
            assert before.end <= after.begin + ROUNDING, (before, after)
    numbers = [item.args["correlation"] for item in found.trace.work]
    assert len(numbers) == len(set(numbers))
    launches = {item.args["correlation"]: item for item in found.trace.launches}
    hosts = operators(found)
    for item in found.trace.work:
        launch = launches.get(item.args["correlation"])
        if launch is not None:  # of a graph only the first task has one
            assert launch.begin <= item.begin + ROUNDING
        operator = hosts.get(item.args.get("External id"))
        if operator is not None and launch is not None:
            assert (operator.process, operator.track) == (launch.process, launch.track)
            assert operator.begin <= launch.begin + ROUNDING, (operator, launch)
            assert launch.end <= operator.end + ROUNDING, (operator, launch)
