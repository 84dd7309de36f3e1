# SPDX-License-Identifier: BSD-3-Clause
"""Build and run the stress program: run_stress.py thread|address|none [--seconds N].

Before the run the program does wrong, on purpose, what the sanitizer is there for; the sanitizer has to report it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# sanitizer -> fault of stress_planted.h -> what its report says
OWN_CHECKS = {"forgotten": "completes_ == submits_"}
PLANTED = {
    "thread": {"race": "data race", "early_look": "data race", **OWN_CHECKS},
    "address": {
        "overflow": "heap-buffer-overflow",
        "undefined": "signed integer overflow",
        "leak": "detected memory leak",
        **OWN_CHECKS,
    },
    "none": OWN_CHECKS,
}
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


def build(sanitizer: str, folder: Path) -> Path:
    """Compile the program with a sanitizer."""
    subprocess.run(
        ["cmake", "-S", str(HERE), "-B", str(folder), "-G", "Ninja", f"-DOPENREG_SANITIZER={sanitizer}"], check=True
    )
    subprocess.run(["cmake", "--build", str(folder)], check=True)
    return folder / "stress"


def unreported(program: Path, sanitizer: str) -> list[str]:
    """The planted faults that the sanitizer lets pass."""
    silent = []
    for fault, words in PLANTED[sanitizer].items():
        done = subprocess.run(
            [str(program), "plant", fault], env=environment(), capture_output=True, text=True, timeout=300, check=False
        )
        reported = done.returncode not in {0, 2} and words in done.stderr
        print(f"planted {fault}: {'reported' if reported else 'NOT reported: ' + done.stderr}", flush=True)
        if not reported:
            silent.append(fault)
    return silent


def main() -> int:
    """Build, see the sanitizer work, run; the exit status is that of the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sanitizer", choices=list(PLANTED))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, help="keep the build here; else a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        program = build(options.sanitizer, options.build or Path(temporary))
        silent = unreported(program, options.sanitizer)
        if silent:
            print(f"sanitizer {options.sanitizer} did not report: {', '.join(silent)}")
            return 1
        command = [str(program), str(options.seconds), str(options.seed)]
        done = subprocess.run(command, env=environment(), timeout=options.seconds * 10 + 120, check=False)
    print(f"stress with sanitizer {options.sanitizer}: exit status {done.returncode}")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
