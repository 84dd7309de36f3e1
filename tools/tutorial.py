# SPDX-License-Identifier: BSD-3-Clause
"""Lays the steps of the tutorial over each other, and checks that the tutorial can be followed.

usage: python -m tools.tutorial lay FOLDER STEP          writes the whole project of a step into an empty folder
       python -m tools.tutorial check FOLDER [STEP ...]  lays, builds and checks steps, or all, in folders below FOLDER

A folder of examples/tutorial is a layer: it has the files that are new or changed in its step, and a step's project is
its layer over all layers below. No step removes a file. The folder of the last step is whole, and installs in place.

Pages show excerpts (tools/pages/excerpts.py) of these files: a whole file, or its difference from the last step that
changed it. `page_problems` finds files that no page shows. `layer_problems` finds files that a layer has without a
change, or that the last step lacks.
`build_and_check` runs the commands of a page and compares what they print with the page. It needs an environment with
torch, scikit-build-core, cmake, ninja and openreg-doctor.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tools.packages import LEFT_BEHIND, ROOT, refuse

STEPS = range(1, 10)
SECONDS = 900  # the timeout of one command
# Files that explain a layer to readers of its folder, and are no part of the project.
NOT_LAID = {"README.md"}
PLACE = "examples/tutorial/step"
# The excerpts that show files whole, and those that show how they changed.
WHOLE = re.compile(rf'\[\[\[cog source\("{PLACE}(\d)/([^"]+)"\)\]\]\]')
CHANGED = re.compile(rf'\[\[\[cog difference\("{PLACE}(\d)/([^"]+)", "{PLACE}(\d)/([^"]+)"\)\]\]\]')
# A block of commands, and the output of its last command: the next block of the section. Others are not run.
SHOWN = re.compile(r"(?m)^```console\n((?:(?!```).*\n)*)```\n(?:(?!```|#).*\n)*```text\n((?:(?!```).*\n)*)```$")
# The exit status of the doctor is 1 if it reports problems, as it does for most steps.
DOCTOR, DOCTOR_STATUSES = "python -m openreg_doctor", (0, 1)


class TutorialError(Exception):
    """An error for a page that cannot be followed, or for a step that cannot be laid, as a message for readers."""


def page_of(step: int, root: Path = ROOT) -> str:
    """Returns the text of a step's page."""
    return (root / "docs" / "tutorial" / f"step{step}.md").read_text("utf-8")


def layer_of(step: int, root: Path = ROOT) -> dict[str, bytes]:
    """Returns the files that a step's folder adds to the project or changes, by path."""
    folder = root / f"{PLACE}{step}"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in NOT_LAID and not LEFT_BEHIND.intersection(path.relative_to(folder).parts)
    }


def files_of(step: int, root: Path = ROOT) -> dict[str, bytes]:
    """Returns the files of a step's project, by path; none for the step before the first.

    Raises TutorialError if a layer is missing.
    """
    files: dict[str, bytes] = {}
    for number in range(STEPS[0], step + 1):
        layer = layer_of(number, root)
        if not layer:
            raise TutorialError(
                f"step {step} needs the files of {PLACE}{number}, which is missing or empty; use a complete checkout"
            )
        files |= layer
    return files


def last_change(file: str, step: int, root: Path = ROOT) -> int:
    """Returns the step that last changed a file of a step's project."""
    return max(number for number in range(STEPS[0], step + 1) if (root / f"{PLACE}{number}" / file).is_file())


def lay(step: int, folder: Path, root: Path = ROOT) -> None:
    """Writes a step's project into a folder, which is made if need be. Raises TutorialError if it is not empty."""
    write_project(files_of(step, root), folder)


def write_project(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes files by path into a folder, which is made if need be. Raises TutorialError if it is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TutorialError(f"{folder} is not an empty folder; name a new one")
    for file, content in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def layer_problems(root: Path = ROOT) -> list[str]:
    """Returns one line for each file that a layer has without a change, and for each that the last step lacks."""
    *layers, last = STEPS
    found = []
    for step in layers:
        before = files_of(step - 1, root)
        same = [file for file, content in layer_of(step, root).items() if before.get(file) == content]
        found += [f"step {step} does not change {file}: delete it there" for file in same]
    missing = sorted(set(files_of(last - 1, root)) - set(layer_of(last, root)))
    found += [f"step {last} is whole, and lacks {file}" for file in missing]
    return found


def page_problems(root: Path = ROOT) -> list[str]:
    """Returns one line for each file of a step that cannot be made from the pages alone."""
    found = []
    for step in STEPS:
        before, page = files_of(step - 1, root), page_of(step, root)
        new = {file for file, content in layer_of(step, root).items() if before.get(file) != content}
        whole = {file for number, file in WHOLE.findall(page) if int(number) == step}
        changed = {
            file
            for number, file, earlier, old in CHANGED.findall(page)
            if file in before and (int(number), int(earlier), old) == (step, last_change(file, step - 1, root), file)
        }
        found += [f"step {step} does not show {file}" for file in sorted(new - whole - changed)]
    return found


def commands_of(step: int, root: Path = ROOT) -> list[tuple[list[str], str]]:
    """Returns the blocks of commands whose output the page shows: the commands, and the output of the last one."""
    blocks = [(block.splitlines(), output) for block, output in SHOWN.findall(page_of(step, root))]
    if not blocks:
        raise TutorialError(f"step {step} does not say how to install and check it")
    return blocks


def check_output(step: int, command: str, shown: str, printed: str) -> None:
    """Raises TutorialError unless a command printed what the page shows, where `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    if not re.fullmatch(pattern, printed.strip(), re.DOTALL):
        raise TutorialError(f"step {step}: the page shows\n{shown}\nand `{command}` printed\n{printed}")


def run_command(step: int, command: str, folder: Path) -> str:
    """Runs a line of a page in the project's folder. Returns what it printed; raises TutorialError if it failed."""
    program, *arguments = command.split()
    words = [sys.executable, *(["-m", "pip"] if program == "pip" else []), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode not in (DOCTOR_STATUSES if command.startswith(DOCTOR) else (0,)):
        raise TutorialError(f"step {step}: {command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build_and_check(step: int, folder: Path) -> float:
    """Lays a step in a new folder and runs its page's commands there. Returns the seconds that they took."""
    lay(step, folder)
    begin = time.monotonic()
    for commands, shown in commands_of(step):
        printed = [run_command(step, command, folder) for command in commands]
        check_output(step, commands[-1], shown, printed[-1])
    return time.monotonic() - begin


def main(*arguments: str) -> int:
    """Runs the command that the arguments name."""
    numbers = [str(step) for step in STEPS]
    try:
        match arguments:
            case ["lay", folder, step] if step in numbers:
                lay(int(step), Path(folder))
                print(f"wrote the project of step {step} into {folder}; docs/tutorial/step{step}.md explains it")
            case ["check", folder, *steps] if set(steps) <= set(numbers):
                for step in steps or numbers:
                    seconds = build_and_check(int(step), Path(folder) / f"step{step}")
                    print(f"step {step}: built and checked as its page says in {seconds:.0f} s", flush=True)
            case _:
                refuse(f"{__doc__}\nSteps are the numbers from {numbers[0]} to {numbers[-1]}.")
    except TutorialError as error:
        refuse(f"tutorial: {error}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
