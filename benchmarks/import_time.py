# SPDX-License-Identifier: BSD-3-Clause
"""Measures how much slower `import torch` is with the whole backend installed.

The step in which `import torch` loads backends (autoload) is timed inside processes, because it takes less time than
two imports of torch differ. Processes with and without autoload take turns as a check. README.md describes how to read
the numbers.
"""

import argparse
import os
import statistics
import subprocess
import sys

from results import spread

LIMIT = 60  # milliseconds that loading the backend may add
PACKAGES = ("openreg_runtime", "openreg_amp", "openreg_ops")

# Prints, for each statement on the command line, milliseconds of wall-clock time and of processor time.
TIMED = """
import os, sys, time
for statement in sys.argv[1:]:
    clock, cores = time.perf_counter(), time.process_time()
    exec(statement)
    print(1e3 * (time.perf_counter() - clock), 1e3 * (time.process_time() - cores), flush=True)
os._exit(0)
"""

# The call that `import torch` makes at its end, unless autoload is switched off.
BACKENDS = "torch._import_device_backends()"


def timed(*statements, autoload=False):
    """Runs the statements in a fresh process.

    Returns {statement: (wall-clock time, processor time)}, in milliseconds.
    """
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1" if autoload else "0"}
    command = [sys.executable, "-c", TIMED, *statements]
    output = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = (tuple(map(float, line.split())) for line in output.splitlines())
    return dict(zip(statements, rows, strict=True))


def measure(rounds):
    """Returns {name: (wall-clock times, processor times)} in milliseconds, with one of each per round."""
    timed("import torch", autoload=True)  # brings all files into the file cache
    results = {}
    for _ in range(rounds):
        alone = timed("import torch", BACKENDS)
        times = {"import torch, without": alone["import torch"], "loading the backend after it": alone[BACKENDS]}
        times["import torch, with"] = timed("import torch", autoload=True)["import torch"]
        parts = [f"import {name}" for name in PACKAGES]
        alone = timed("import torch", *parts)
        times.update({f"  {part}": alone[part] for part in parts})
        for what, (clock, cores) in times.items():
            clocks, all_cores = results.setdefault(what, ([], []))
            clocks.append(clock)
            all_cores.append(cores)
    return results


def show(results, rounds):
    """Prints the table, and whether the limit is met."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"milliseconds: medians of {rounds} processes, and half the distance of the quartiles")
    for title in ("what", "clock", "spread", "cores", "spread"):
        table.add_column(title, justify="left" if title == "what" else "right")
    for what, columns in results.items():
        cells = [f"{number(values):,.1f}" for values in columns for number in (statistics.median, spread)]
        table.add_row(what, *cells)
    console = Console(width=100)
    console.print(table)
    added = statistics.median(results["loading the backend after it"][0])
    ratio = 1 + added / statistics.median(results["import torch, without"][0])
    met = "yes" if added <= LIMIT else "NO"
    console.print(f"added {added:.1f} ms, {ratio:.3f} times the import without; at most {LIMIT} ms: {met}")


def main():
    """Measures and prints the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11, help="processes of each kind")
    rounds = parser.parse_args().rounds
    show(measure(rounds), rounds)


if __name__ == "__main__":
    main()
