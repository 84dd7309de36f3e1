# SPDX-License-Identifier: BSD-3-Clause
"""Build and run the stress program: run_stress.py thread|address|none [--seconds N]."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Configure, build, run; the exit status is that of the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sanitizer", choices=["thread", "address", "none"])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, help="keep the build here; else a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        build = options.build or Path(temporary)
        configure = ["cmake", "-S", str(HERE), "-B", str(build), "-G", "Ninja"]
        subprocess.run([*configure, f"-DOPENREG_SANITIZER={options.sanitizer}"], check=True)
        subprocess.run(["cmake", "--build", str(build)], check=True)
        done = subprocess.run(
            [str(build / "stress"), str(options.seconds), str(options.seed)],
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("OPENREG_")},
                "OPENREG_DEVICE_COUNT": "3",
                "OPENREG_DEVICE_MEMORY": "256MiB",
                "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
                "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
            },
            timeout=options.seconds * 10 + 120,
            check=False,
        )
    print(f"stress with sanitizer {options.sanitizer}: exit status {done.returncode}")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
