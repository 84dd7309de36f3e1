# SPDX-License-Identifier: BSD-3-Clause
"""Follows the tutorial as a reader does: makes each step's project from what its page shows.

A page shows a file whole, below its path, or how it differs from the step before, below its path and "changed".
Nothing else is read. `build_and_check` installs what comes of it and runs its check; tests/test_tutorial.py compares it
with examples/tutorial. By hand, in an environment with torch, scikit-build-core, cmake and ninja:
`python -m tools.tutorial FOLDER [STEP ...]`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tools.packages import ROOT
from tools.repo_checks import SPDX

STEPS = range(1, 8)
SECONDS = 900
# Explains a step to who finds its folder; not part of the project.
NOT_SHOWN = {"README.md"}
NOT_OURS = {"build", "__pycache__"}
# A title and the block below it. A part of a file, to talk about it, has a title that begins with "From".
BLOCK = re.compile(
    r"(?ms)^\[`(?P<path>[^`\n]+)`\]\([^)\n]*\)(?P<changed>, changed)?:\n\n(?P<fence>```+)\w*\n(?P<code>.*?)^(?P=fence)$"
)
CONSOLE = re.compile(r"(?ms)^```console\n(.*?)^```$")
OUTPUT = re.compile(r"(?ms)^python check\.py\n```\n[^`]*^```text\n(.*?)^```$")


class TutorialError(Exception):
    """A page that cannot be followed; the message says what a reader would stumble over."""


def page_of(step: int, root: Path = ROOT) -> str:
    """The text of a step's page."""
    return (root / "docs" / "tutorial" / f"step{step}.md").read_text("utf-8")


def folder_of(step: int) -> str:
    """Where a step's project lies, from the repository's root."""
    return f"examples/tutorial/step{step}"


def without_licence(text: str) -> str:
    """A file's text as a page shows it: the first line, if it names the licence, is left out."""
    first, _, rest = text.partition("\n")
    return rest if SPDX in first else text


def apply_difference(text: str, difference: str) -> str:
    """Changes a text as a difference says; raises TutorialError where the text is not what it was made from."""
    lines, position = text.splitlines(), 0
    hunks: list[list[str]] = []
    for line in difference.splitlines():
        if line.startswith("@@"):
            hunks.append([])
        else:
            hunks[-1].append(line or " ")  # an empty line that stays
    for hunk in hunks:
        before = [line[1:] for line in hunk if line[0] in " -"]
        after = [line[1:] for line in hunk if line[0] in " +"]
        starts = range(position, len(lines) - len(before) + 1)
        place = next((start for start in starts if lines[start : start + len(before)] == before), None)
        if place is None:
            raise TutorialError("a difference does not fit; these lines are not there:\n" + "\n".join(before))
        lines[place : place + len(before)] = after
        position = place + len(after)
    return "\n".join(lines) + "\n"


def follow(step: int, files: dict[str, str], root: Path = ROOT) -> dict[str, str]:
    """The project after a step, by path, made from the project before it and what the step's page shows."""
    result = dict(files)
    here = f"{folder_of(step)}/"
    for block in BLOCK.finditer(page_of(step, root)):
        if not block["path"].startswith(here):
            continue  # code of openreg, for comparison
        path = block["path"].removeprefix(here)
        if not block["changed"]:
            result[path] = block["code"]
            continue
        if path not in result:
            raise TutorialError(f"step {step} shows how {path} changes, and no step before shows the file")
        try:
            result[path] = apply_difference(result[path], block["code"])
        except TutorialError as error:
            raise TutorialError(f"step {step}, {path}: {error}") from error
    return result


def follow_all(root: Path = ROOT) -> dict[int, dict[str, str]]:
    """The project after each step."""
    result: dict[int, dict[str, str]] = {}
    files: dict[str, str] = {}
    for step in STEPS:
        files = follow(step, files, root)
        result[step] = files
    return result


def files_of(step: int, root: Path = ROOT) -> dict[str, str]:
    """The files of a step's folder, by path, as pages show them."""
    folder = root / folder_of(step)
    return {
        path.relative_to(folder).as_posix(): without_licence(path.read_text("utf-8"))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in NOT_SHOWN and not NOT_OURS.intersection(path.relative_to(folder).parts)
    }


def commands_of(step: int, root: Path = ROOT) -> list[str]:
    """The lines of the page's last block of commands: what installs and checks the step."""
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


def build_and_check(step: int, files: dict[str, str], folder: Path) -> float:
    """Writes a project into an empty folder and runs its page's commands there; gives the seconds they took."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
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
    """Follows the steps that the command line names, or all, below a folder that does not exist yet."""
    target = Path(sys.argv[1])
    projects = follow_all()
    for step in map(int, sys.argv[2:]) if sys.argv[2:] else STEPS:
        seconds = build_and_check(step, projects[step], target / f"step{step}")
        print(f"step {step}: built from its page and checked in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
