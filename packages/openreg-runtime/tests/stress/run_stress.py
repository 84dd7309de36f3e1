# SPDX-License-Identifier: BSD-3-Clause
"""Build and run the stress programs: run_stress.py thread|address|none [--seconds N] [--also FOLDER]...

First run the unit tests of the driver's classes (unit_tests.cpp). Before its run each program does wrong, on purpose,
what the sanitizer is there for; the sanitizer has to report it.

A folder brings a program of another package: a CMakeLists.txt that adds it to the project here, and a stress.json with
its name (`program`), the files that it is made of (`sources`), and by sanitizer what it does wrong (`planted`, as
below).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Checks the parts of the scheduler, each alone; ends by itself.
PARTS = "unit_tests"
# A fault that a check of the program itself finds, whatever the sanitizer.
OWN_CHECKS = {"forgotten": "completes_ == submits_"}
# The same of platform_ipc_fuzz.cpp, which has to see what opens although it must not, and what is opened on the way.
FUZZ_CHECKS = {
    "live_memory_taken_for_gone": "is_opened == is_live",
    "decoy_that_is_opened": "exporter.end() == 0",
}
# sanitizer -> program -> fault of stress_planted.h, ../memory/planted.h, platform_ipc_fuzz.cpp -> what its report says
PLANTED = {
    "thread": {
        "stress": {"race": "data race", "early_look": "data race", **OWN_CHECKS},
        "memory_stress": {
            "race_in_the_cache": "data race",
            "race_in_the_free_blocks": "data race",
            "race_in_launch_memory": "data race",
        },
    },
    "address": {
        "stress": {
            "overflow": "heap-buffer-overflow",
            "undefined": "signed integer overflow",
            "leak": "detected memory leak",
            **OWN_CHECKS,
        },
        "memory_stress": {
            "use_after_release": "heap-use-after-free",
            "overflow_of_launch_memory": "heap-buffer-overflow",
            "overflow_of_a_counter": "signed integer overflow",
            "leak_of_launch_memory": "detected memory leak",
        },
        "ipc_fuzz": {"handle_that_is_too_short": "heap-buffer-overflow", **FUZZ_CHECKS},
    },
    "none": {"stress": OWN_CHECKS, "memory_stress": {}, "ipc_fuzz": FUZZ_CHECKS},
}
# A sanitizer remembers a few accesses of each address, and may have forgotten the one that a planted race is made of.
# It needs fixed addresses for itself, and ends the program before main() where the kernel's random layout took one.
ATTEMPTS = 10
CANNOT_START = "unexpected memory mapping"
SETTINGS = {
    "OPENREG_DEVICE_COUNT": "4",
    "OPENREG_DEVICE_MEMORY": "256MiB",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def environment() -> dict[str, str]:
    """The environment of the program, without settings meant for others."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("OPENREG_")}, **SETTINGS}


def build(sanitizer: str, folder: Path, programs: Sequence[str], also: Sequence[Path]) -> Path:
    """Compile the programs with a sanitizer; gives the folder that they are in."""
    settings = (
        f"-DOPENREG_SANITIZER={sanitizer}",
        f"-DOPENREG_STRESS_FOLDERS={';'.join(path.resolve().as_posix() for path in also)}",
    )
    subprocess.run(["cmake", "-S", str(HERE), "-B", str(folder), "-G", "Ninja", *settings], check=True)
    subprocess.run(["cmake", "--build", str(folder), "--target", PARTS, *programs], check=True)
    return folder


def run(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[str]:
    """Run a program, again where its sanitizer could not start; raises TimeoutExpired after `limit` seconds."""
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            command, env=environment(), stderr=subprocess.PIPE, text=True, errors="replace", timeout=limit, check=False
        )
        if CANNOT_START not in done.stderr:
            break
    return done


def is_reported(program: Path, fault: str, words: str) -> bool:
    """Whether the sanitizer, or a check of the program, reports the planted fault; prints what it said otherwise."""
    for _ in range(ATTEMPTS):
        done = run((str(program), "plant", fault), 300)
        if done.returncode not in {0, 2} and words in done.stderr:
            print(f"{program.name}, planted {fault}: reported", flush=True)
            return True
        print(
            f"{program.name}, planted {fault}: NOT reported, exit status {done.returncode}: {done.stderr}", flush=True
        )
    return False


def main() -> int:
    """Build, see the sanitizer work, run; the exit status is that of the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sanitizer", choices=list(PLANTED))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--also", type=Path, action="append", default=[], help="the folder of a further program")
    parser.add_argument("--build", type=Path, help="keep the build here; else a temporary folder")
    options = parser.parse_args()
    programs = dict(PLANTED[options.sanitizer])
    for path in options.also:
        brought = json.loads((path / "stress.json").read_text("utf-8"))
        programs[brought["program"]] = brought["planted"][options.sanitizer]
    with tempfile.TemporaryDirectory() as temporary:
        folder = build(options.sanitizer, options.build or Path(temporary), list(programs), options.also)
        commands = {PARTS: (str(folder / PARTS),)}
        for name in programs:
            commands[name] = (str(folder / name), str(options.seconds), str(options.seed))
        for name, command in commands.items():
            for fault, words in programs.get(name, {}).items():
                if not is_reported(folder / name, fault, words):
                    print(f"sanitizer {options.sanitizer} did not report {fault}")
                    return 1
            done = run(command, options.seconds * 10 + 300)
            print(f"{done.stderr}{name} with sanitizer {options.sanitizer}: exit status {done.returncode}", flush=True)
            if done.returncode != 0:
                return done.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
