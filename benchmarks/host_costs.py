# SPDX-License-Identifier: BSD-3-Clause
"""Measures the host time of calls of the driver and of the caching allocator, without Python.

Builds the C++ program in host_costs/ against the installed package, and runs it several times. README.md describes how
to read the numbers.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).with_name("host_costs")
LIMIT = 1000  # nanoseconds per call, of the calls in LIMITED
INSTRUCTIONS = 1100  # of a cached block and its release, at most
LIMITED = ("orLaunchKernel", "orEventRecord", "allocate and release")  # the beginnings of their names


def package_folder(name):
    """Returns the folder of an installed package without importing it."""
    return Path(importlib.util.find_spec(name).submodule_search_locations[0])


def build(folder):
    """Compiles the program, and returns its path."""
    subprocess.run(
        [
            *("cmake", "-S", str(PROJECT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"),
            f"-DCMAKE_PREFIX_PATH={package_folder('openreg_runtime').parent}",
            f"-DPython_EXECUTABLE={sys.executable}",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["cmake", "--build", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return folder / ("host_costs.exe" if sys.platform == "win32" else "host_costs")


def run(program, bursts):
    """Runs the program. Returns {call: nanoseconds per call}."""
    env = dict(os.environ)
    if sys.platform == "win32":
        libraries = [package_folder(name) / "lib" for name in ("openreg_runtime", "torch")]
        env["PATH"] = os.pathsep.join([*map(str, libraries), env["PATH"]])
    output = subprocess.run([program, str(bursts)], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    pairs = (line.split("\t") for line in output.splitlines())
    return {name: float(nanoseconds) for nanoseconds, name in pairs}


def measure(rounds, bursts=200):
    """Returns the results of `run` for several processes."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        return [run(program, bursts) for _ in range(rounds)]


def instructions(program, blocks=(1_000, 11_000)):
    """Returns the number of instructions for a cached block and its release, counted by callgrind.

    It is computed from runs of two lengths, so that the start of the program cancels out.
    """
    counts = []
    for number in blocks:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.devnull}", program, "blocks", str(number)]
        errors = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True).stderr
        counts.append(int(re.search(r"Collected : (\d+)", errors)[1]))
    return (counts[1] - counts[0]) / (blocks[1] - blocks[0])


def show(runs):
    """Prints the table, with a mark for calls that exceed the limit."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"nanoseconds per call: medians of {len(runs)} processes")
    for title in ("call", "least", "greatest", f"at most {LIMIT}"):
        table.add_column(title, justify="left" if title == "call" else "right")
    for name in runs[0]:
        values = [run[name] for run in runs]
        met = ("yes" if min(values) <= LIMIT else "NO") if name.startswith(LIMITED) else ""
        table.add_row(name, f"{min(values):,.0f}", f"{max(values):,.0f}", met)
    Console(width=100).print(table)


def main():
    """Builds and runs the program, and prints the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="processes")
    parser.add_argument("--bursts", type=int, default=200, help="of each call and process")
    parser.add_argument("--instructions", action="store_true", help="count those of a cached block, with valgrind")
    arguments = parser.parse_args()
    if arguments.instructions:
        if shutil.which("valgrind") is None:
            sys.exit("host_costs.py --instructions: valgrind is not installed; install it (apt-get install valgrind)")
        with tempfile.TemporaryDirectory() as folder:
            count = instructions(build(Path(folder)))
        met = "yes" if count <= INSTRUCTIONS else "NO"
        print(f"{count:,.0f} instructions for a cached block and its release; at most {INSTRUCTIONS:,}: {met}")
        return
    show(measure(arguments.rounds, arguments.bursts))


if __name__ == "__main__":
    main()
