# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program and draws its tasks: `python record.py PROGRAM PICTURE RANGE MEMORY CLAIM UNSHOWN`.

`timeline/__init__.py` describes the form of the program and of the claim. MEMORY is `memory` or empty. UNSHOWN says
what happens if no run shows the claim: `fail`, or `draw`, which draws the quickest run and says so on stderr.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import CodeType

import matplotlib
import torch
from torch.profiler import ProfilerActivity, profile

from openreg_profiler import picture, trace

SEPARATOR = "\n---\n"


# The number of runs that show what the picture claims. The quickest one is drawn, because other programs of the machine
# lengthen kernels and interrupt the host between two launches.
RUNS = 9
# The number of runs after which no other is tried. On a busy machine many runs show something else.
ATTEMPTS = 100


def record(code: CodeType, names: dict[str, object], path: Path, memory: bool) -> trace.TraceFile:
    """Records one run, which begins and ends with an idle device."""
    torch.accelerator.synchronize()
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with profile(activities=activities, profile_memory=memory, acc_events=True) as profiler:
        exec(code, names)
        torch.accelerator.synchronize()
    profiler.export_chrome_trace(str(path))
    return trace.read(path)


def named(items: list[trace.Slice], name: str) -> trace.Slice:
    """Returns the first item whose name begins with `name`. Raises ValueError if there is none."""
    found = next((item for item in items if item.name.startswith(name)), None)
    if found is None:
        raise ValueError(f"the claim names {name!r}, and the run has only {sorted({item.name for item in items})}")
    return found


def shows(run: trace.TraceFile, claim: str) -> bool:
    """Returns the value of a claim about a run. Raises what the expression raises."""
    names = {
        "host": partial(named, run.host),
        "device": partial(named, run.work),
        "launches": run.launches,
        "tasks": run.work,
    }
    return bool(eval(claim, names))


def main() -> None:
    """Runs the program once without a record, because first calls take longer, then records and draws it."""
    source, output, within, memory, claim, unshown = sys.argv[1:]
    prepare, _, program = Path(source).read_text(encoding="utf-8").rpartition(SEPARATOR)
    names: dict[str, object] = {"torch": torch}
    exec(compile(prepare, "<prepare>", "exec"), names)
    code = compile(program, "<program>", "exec")
    exec(code, names)
    folder = Path(output).parent
    runs: list[trace.TraceFile] = []
    others: list[trace.TraceFile] = []
    while len(runs) < RUNS and len(runs) + len(others) < ATTEMPTS:
        run = record(code, names, folder / "trace.json", bool(memory))
        (runs if shows(run, claim) else others).append(run)
    if not runs:
        problem = f"none of {ATTEMPTS} runs shows what the picture claims: {claim}"
        if unshown == "fail":
            sys.exit(problem)
        print(problem, file=sys.stderr)
    # Text stays text in the SVG, so that it can be searched and the file is a tenth as long.
    matplotlib.rcParams["svg.fonttype"] = "none"
    quickest = min(runs or others, key=lambda run: run.end - run.begin)
    picture.draw(quickest, output, within=within or None)


main()
