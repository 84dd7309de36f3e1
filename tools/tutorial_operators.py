# SPDX-License-Identifier: BSD-3-Clause
"""Adds the operators of each kind to the tutorial's project, and checks them there.

usage: python -m tools.tutorial_operators lay FOLDER STEP   writes the project of a step, from 4 on, with them
       python -m tools.tutorial_operators check FOLDER      builds and checks them in two projects below FOLDER

The operators are in examples/tutorial/operators, and docs/operators/any_backend.md explains them. They need nothing of
a step but launch(), host_view() and check_dtype(). So they are checked in step 4, which has these first, and in the
last step, where kernels run later and on another thread. The commands and their output are those of the page.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.packages import ROOT, refuse
from tools.tutorial import STEPS, TutorialError, check_output, files_of, run_command, write_project

FIRST_STEP = 4
FOLDER = ROOT / "examples" / "tutorial" / "operators"
FILES = ("csrc/kinds.cpp", "check.py")
PAGE = ROOT / "docs" / "operators" / "any_backend.md"
# The page's commands for the project, and what the last one prints.
COMMANDS = re.compile(r"(?ms)^```console\n([^`]*^python check\.py\n)```\n[^`]*^```text\n(.*?)^```$")


def project_of(step: int) -> dict[str, bytes]:
    """Returns the files of a step's project with the operators, by path. CMake finds their source by itself."""
    return files_of(step) | {file: (FOLDER / file).read_bytes() for file in FILES}


def lay(step: int, folder: Path) -> None:
    """Writes the project into a folder, which is made if need be. Raises TutorialError if it is not empty."""
    write_project(project_of(step), folder)


def commands_of(page: str) -> tuple[list[str], str]:
    """Returns the commands that install and check the project, and the output that the page shows."""
    found = COMMANDS.search(page)
    if found is None:
        raise TutorialError(f"{PAGE.name} does not show the output of `python check.py` below the command")
    return found[1].splitlines(), found[2]


def check(folder: Path) -> None:
    """Builds and checks the operators in the two steps. Raises TutorialError if that fails or prints something else."""
    commands, shown = commands_of(PAGE.read_text("utf-8"))
    for step in (FIRST_STEP, STEPS[-1]):
        place = folder / f"step{step}"
        lay(step, place)
        printed = [run_command(step, command, place) for command in commands]
        check_output(step, commands[-1], shown, printed[-1])
        print(f"step {step}: the operators of each kind are right", flush=True)


def main(*arguments: str) -> int:
    """Runs the command that the arguments name."""
    steps = [str(step) for step in STEPS if step >= FIRST_STEP]
    try:
        match arguments:
            case ["lay", folder, step] if step in steps:
                lay(int(step), Path(folder))
                print(f"wrote the project of step {step} into {folder}; docs/operators/{PAGE.name} explains it")
            case ["check", folder]:
                check(Path(folder))
            case _:
                refuse(f"{__doc__}\nSteps are the numbers from {steps[0]} to {steps[-1]}.")
    except TutorialError as error:
        refuse(f"tutorial_operators: {error}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
