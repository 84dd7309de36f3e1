# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the tutorial can be followed: pages show all files of each step, and their commands build and check it.

Pages show excerpts (tools/excerpts.py) of the files in examples/tutorial: a whole file, or its difference from the step
before. `problems` finds files that no page shows. `build_and_check` runs the commands of a page. By hand, in an
environment with torch, scikit-build-core, cmake and ninja: `python -m tools.tutorial FOLDER [STEP ...]`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tools.packages import ROOT

STEPS = range(1, 10)
SECONDS = 900  # the timeout of one command
# Files that explain a step to readers of its folder, and are no part of the project.
NOT_SHOWN = {"README.md"}
NOT_OURS = {"build", "__pycache__"}
PLACE = "examples/tutorial/step"
# The excerpts that show files whole, and those that show how they changed.
WHOLE = re.compile(rf'\[\[\[cog source\("{PLACE}(\d)/([^"]+)"\)\]\]\]')
CHANGED = re.compile(rf'\[\[\[cog difference\("{PLACE}(\d)/([^"]+)", "{PLACE}(\d)/([^"]+)"\)\]\]\]')
CONSOLE = re.compile(r"(?ms)^```console\n(.*?)^```$")
OUTPUT = re.compile(r"(?ms)^python check\.py\n```\n[^`]*^```text\n(.*?)^```$")


class TutorialError(Exception):
    """An error for a page that cannot be followed. The message states what a reader would run into."""


def page_of(step: int, root: Path = ROOT) -> str:
    """Returns the text of a step's page."""
    return (root / "docs" / "tutorial" / f"step{step}.md").read_text("utf-8")


def files_of(step: int, root: Path = ROOT) -> dict[str, bytes]:
    """Returns the files of a step's project, by path; none for the step before the first."""
    folder = root / f"{PLACE}{step}"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in NOT_SHOWN and not NOT_OURS.intersection(path.relative_to(folder).parts)
    }


def problems(root: Path = ROOT) -> list[str]:
    """Returns one line for each file of a step that cannot be made from the pages alone."""
    found = []
    for step in STEPS:
        before, now, page = files_of(step - 1, root), files_of(step, root), page_of(step, root)
        new = {file for file, content in now.items() if before.get(file) != content}
        whole = {file for number, file in WHOLE.findall(page) if int(number) == step}
        changed = {
            file
            for number, file, earlier, old in CHANGED.findall(page)
            if (int(number), int(earlier), old) == (step, step - 1, file) and file in before
        }
        found += [f"step {step} does not show {file}" for file in sorted(new - whole - changed)]
        found += [f"step {step} does not say that {file} goes" for file in sorted(set(before) - set(now))]
    return found


def commands_of(step: int, root: Path = ROOT) -> list[str]:
    """Returns the lines of the page's last block of commands, which install and check the step."""
    blocks = CONSOLE.findall(page_of(step, root))
    if not blocks:
        raise TutorialError(f"step {step} does not say how to install and check it")
    return [line for line in str(blocks[-1]).splitlines() if line.strip()]


def check_output(step: int, printed: str, root: Path = ROOT) -> None:
    """Raises TutorialError unless the check printed what the page shows, where `...` stands for anything."""
    match = OUTPUT.search(page_of(step, root))
    if match is None:
        raise TutorialError(f"step {step} does not show what its check prints")
    pattern = ".*".join(re.escape(part) for part in match.group(1).strip().split("..."))
    if not re.fullmatch(pattern, printed.strip(), re.DOTALL):
        raise TutorialError(f"step {step}: the page shows\n{match.group(1)}\nand the check printed\n{printed}")


def build_and_check(step: int, folder: Path) -> float:
    """Copies a project into a new folder and runs its page's commands there. Returns the seconds that they took."""
    shutil.copytree(ROOT / f"{PLACE}{step}", folder, ignore=shutil.ignore_patterns(*NOT_OURS))
    begin = time.monotonic()
    printed = ""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for line in commands_of(step):
        program, *arguments = line.split()
        command = [sys.executable, *(["-m", "pip"] if program == "pip" else []), *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            raise TutorialError(f"step {step}: {line} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        printed = done.stdout
    check_output(step, printed)
    return time.monotonic() - begin


def main() -> None:
    """Builds the steps that the command line names, or all, in new folders below the one that it names first."""
    for step in map(int, sys.argv[2:]) if sys.argv[2:] else STEPS:
        seconds = build_and_check(step, Path(sys.argv[1]) / f"step{step}")
        print(f"step {step}: built and checked as its page says in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
