# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program and draws its tasks: `python record.py PROGRAM PICTURE RANGE memory`.

`timeline/__init__.py` describes the form of the program.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType

import matplotlib
import torch
from torch.profiler import ProfilerActivity, profile

from openreg_profiler import picture, trace

SEPARATOR = "\n---\n"


# The number of runs that are recorded. The quickest one is drawn, because other programs of the machine lengthen
# kernels and interrupt the host between two launches.
RUNS = 9


def record(code: CodeType, names: dict[str, object], path: Path, memory: bool) -> trace.TraceFile:
    """Records one run, which begins and ends with an idle device."""
    torch.accelerator.synchronize()
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with profile(activities=activities, profile_memory=memory, acc_events=True) as profiler:
        exec(code, names)
        torch.accelerator.synchronize()
    profiler.export_chrome_trace(str(path))
    return trace.read(path)


def main() -> None:
    """Runs the program once without a record, because first calls take longer, then RUNS times, and draws a run."""
    source, output, within, memory = sys.argv[1:]
    prepare, _, program = Path(source).read_text(encoding="utf-8").rpartition(SEPARATOR)
    names: dict[str, object] = {"torch": torch}
    exec(compile(prepare, "<prepare>", "exec"), names)
    code = compile(program, "<program>", "exec")
    exec(code, names)
    folder = Path(output).parent
    runs = [record(code, names, folder / f"{number}.json", bool(memory)) for number in range(RUNS)]
    # Text stays text in the SVG, so that it can be searched and the file is a tenth as long.
    matplotlib.rcParams["svg.fonttype"] = "none"
    quickest = min(runs, key=lambda run: run.end - run.begin)
    picture.draw(quickest, output, within=within or None)


main()
