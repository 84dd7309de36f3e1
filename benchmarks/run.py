# SPDX-License-Identifier: BSD-3-Clause
"""Measures the openreg device, and the CPU on which it is simulated.

Every measurement runs in a process of its own, and the two devices take turns. So neither is affected by the threads
and caches of the other, and other load on the machine affects both. README.md describes how to read the numbers.
"""

import argparse
import sys
from pathlib import Path

import compare
import report
import targets
from _platform import load as load_of_machine
from parts import PARTS, builds
from processes import run_script, turn
from results import BUSY, Families, load, save

RESULTS = Path(__file__).with_name("results.json")


def chosen_workloads(names: dict[str, list[str]], families: list[str], only: str) -> dict[str, list[str]]:
    """Returns the workloads to measure by family, in their order. Leaves out families without any."""
    chosen = {
        family: [name for name in workloads if only in name]
        for family, workloads in names.items()
        if not families or family in families
    }
    return {family: workloads for family, workloads in chosen.items() if workloads}


def measure_workloads(chosen: dict[str, list[str]], rounds: int, seconds: float, only: str, found: Families) -> None:
    """Measures every family on both devices, in fresh processes, round after round, and adds the numbers to `found`."""
    from rich.progress import track

    turns = [(family, device) for number in range(rounds) for family in chosen for device in turn(number)]
    for family, device in track(turns, description="measuring workloads"):
        options = ("--seconds", str(seconds), "--only", only)
        for name, value in run_script("measure.py", device, family, *options, device=device).items():
            found.setdefault(family, {}).setdefault(name, {}).setdefault(device, []).append(value)


def measure(options: argparse.Namespace, names: dict[str, list[str]], found: Families) -> None:
    """Measures what the options select, and adds the numbers to `found`, which keeps them if a later process fails.

    With `--only`, which selects workloads, other parts need `--family`.
    """
    wanted = options.family or ([] if options.only else list(PARTS))
    chosen = chosen_workloads(names, options.family, options.only)
    if options.build_time:
        found.update(builds(options.build_python))  # first, because a build may fail
    if chosen:
        measure_workloads(chosen, options.rounds, options.seconds, options.only, found)
    for part, function in PARTS.items():
        if part in wanted:
            print(f"measuring {part}", flush=True)
            found[part] = function(options.rounds, options.seconds)


def arguments() -> argparse.Namespace:
    """Returns the options of the command line. Paths of files are relative to `--directory`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="processes per device, at least 5")
    parser.add_argument("--seconds", type=float, default=0.2, help="per workload and process")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name has this in it")
    parser.add_argument("--family", action="append", default=[], help="only this family; may be repeated")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help="where the numbers go")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the ratios (SVG)")
    parser.add_argument("--curves", type=Path, metavar="FILE", help="draw the curves of scaling (SVG)")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="show what changed since these results")
    parser.add_argument("--fail-on-regression", action="store_true", help="with --compare: exit status 1 if any")
    parser.add_argument("--build-time", action="store_true", help="build every wheel from nothing, too")
    parser.add_argument("--build-python", default=sys.executable, help="whose environment has the tools to build")
    parser.add_argument("--directory", type=Path, default=Path(), help="what relative names of files mean")
    options = parser.parse_args()
    if options.rounds < 5:
        parser.error("fewer than 5 rounds say nothing about the spread")
    for name in ("json", "chart", "curves", "compare"):
        path = getattr(options, name)
        setattr(options, name, path and options.directory.absolute() / path)
    return options


def old_results(path: Path) -> dict:
    """Returns the content of the file to compare with. Exits if it is no file of results."""
    try:
        return load(path)
    except (OSError, ValueError) as error:
        sys.exit(f"--compare: {error}")


def main() -> None:
    """Measures, prints the tables, and writes every single number."""
    options = arguments()
    # The file is read before the measurement, so that an error costs no time, and before it may be written.
    old = old_results(options.compare) if options.compare else None
    described = run_script("describe.py", device="cpu")
    names = described["families"]
    known = [*names, *PARTS]
    for family in options.family:
        if family not in known:
            sys.exit(f"--family {family}: no such family; there are {', '.join(known)}")
    busy = load_of_machine()
    if busy > BUSY:
        print(f"The machine is busy (load {busy:.1f}). What else runs changes the numbers, of parallel kernels most.")
    found: Families = {}
    settings = {"rounds": options.rounds, "seconds": options.seconds, "load before": busy}
    new = {"machine": described["machine"], "settings": settings, "families": found}
    try:
        measure(options, names, found)
    finally:
        # A process that fails late, or an interrupt, should not cost the minutes before it.
        if found:
            save(options.json, **new)
            print(f"every number that was measured: {options.json}", flush=True)
    if not found:
        sys.exit(f"--only {options.only!r}: no workload has this in its name")
    report.show(found)
    targets.show(targets.judge(found))
    if options.chart or options.curves:
        import chart

        chart.draw(new, options.chart, options.curves)
    if old is not None and compare.show(old, new) and options.fail_on_regression:
        sys.exit(1)


if __name__ == "__main__":
    main()
