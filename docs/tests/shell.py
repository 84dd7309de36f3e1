# SPDX-License-Identifier: BSD-3-Clause
"""Checks or runs each line of a `console` block.

Checked are commands that build or install, which the nox sessions run: `nox` (the session has to exist),
`pip` (options and packages have to), `python -m venv`, what sets or activates an environment, and Python programs of
the repository, which write into the checkout (the file has to exist). A page whose front matter has `commands: FILE`
promises that all its lines stand in that file, which the tests run. All other lines run in a shell in an empty
directory, one shell per block, with the `python` of python_command.py first on the path.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_extensions")]

from guide.repository import NEW_PROCESS, sessions, settings  # noqa: E402

from tools.packages import discover, requirement_name  # noqa: E402

__all__ = ["NEW_PROCESS", "ShellError", "check_console", "check_variable", "commands", "front_matter", "is_checked"]

# Distributions of the package index that pages tell readers to install.
KNOWN_DISTRIBUTIONS = {
    *("build", "cmake", "ninja", "nox", "numpy", "pip", "pre-commit", "pybind11", "pytest", "scikit-build-core"),
    *("scikit-learn", "setuptools", "torch", "wheel"),
}
PIP_OPTIONS = {
    *("--config-settings", "--constraint", "--editable", "--extra-index-url", "--find-links", "--no-build-isolation"),
    *("--no-deps", "--no-index", "--requirement", "--upgrade", "--wheel-dir", "-c", "-e", "-r", "-w", "-U"),
}
PIP_OPTIONS_WITH_VALUE = {
    *("--config-settings", "--constraint", "--extra-index-url", "--find-links", "--requirement", "--wheel-dir"),
    *("-c", "-r", "-w"),
}
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)=")


class ShellError(AssertionError):
    """A line of a page that cannot be true."""


def commands(block: str) -> list[str]:
    """The lines of a block without comments, continued lines joined."""
    lines = re.sub(r"\\\n\s*", " ", block).splitlines()
    found = []
    for line in lines:
        stripped = re.sub(r"(^|\s+)#\s.*$", "", line).strip()
        if stripped:
            found.append(stripped)
    return found


def front_matter(page: Path, key: str) -> str:
    """A value of the page's front matter, empty where there is none."""
    match = re.match(r"---\n(.*?)\n---\n", page.read_text("utf-8"), re.DOTALL)
    value = re.search(rf"(?m)^{re.escape(key)}:\s*(.+)$", match.group(1)) if match else None
    return value.group(1).strip() if value else ""


def check_console(block: str, page: Path) -> str:
    """Checks or runs a block; gives what the lines that ran printed."""
    tested = front_matter(page, "commands")
    if tested:
        missing = [line for line in commands(block) if line not in (ROOT / tested).read_text("utf-8")]
        if missing:
            raise ShellError(f"{page.name}: not in {tested}: {missing}")
        return ""
    to_run = [line for line in commands(block) if not is_checked(line)]
    return run(to_run) if to_run else ""


def is_checked(line: str) -> bool:
    """Whether a line is one of those that are only checked; raises ShellError if it is and is not true."""
    return all(is_checked_command(part) for part in re.split(r"\s*(?:&&|\|\|)\s*", line))


def is_checked_command(command: str) -> bool:
    """The same for one of several commands in a line."""
    words = shlex.split(command)
    while words and (match := _ASSIGNMENT.match(words[0])):
        check_variable(match.group(1))
        words = words[1:]
    if not words:
        return False
    program = words[0].rpartition("/")[2]
    if program in {"python", "python3"} and words[1:2] == ["-m"] and words[2:3] in (["pip"], ["nox"], ["venv"]):
        program, words = words[2], words[2:]
    if program == "nox":
        check_nox(words[1:])
    elif program == "pip":
        check_pip(words[1:])
    elif (path := program_of_the_repository(program, words[1:])) is not None:
        if not (ROOT / path).is_file():
            raise ShellError(f"no program {path}")
    else:
        return program in {"venv", ".", "source"} and len(words) == 2
    return True


def program_of_the_repository(program: str, words: list[str]) -> str | None:
    """The file of a Python program of this repository, which may change the checkout; None for other commands."""
    if program not in {"python", "python3"} or not words:
        return None
    if words[0] == "-m" and words[1:] and words[1].startswith("tools."):
        return f"{words[1].replace('.', '/')}.py"
    return words[0] if words[0].startswith(("packages/", "tools/")) else None


def check_variable(name: str) -> None:
    """Refuses a variable that looks like a setting and is none."""
    if name.startswith("OPENREG_") and name not in settings():
        raise ShellError(f"no setting {name}")


def check_nox(words: list[str]) -> None:
    """Refuses sessions that do not exist."""
    own = words[: words.index("--")] if "--" in words else words
    names = [word for word in own if not word.startswith("-")]
    unknown = [name for name in names if name not in sessions()]
    if unknown:
        raise ShellError(f"no nox session {unknown}")
    options = {word for word in own if word.startswith("-")} - {"-s", "--list", "-l"}
    if options:
        raise ShellError(f"unknown options of nox: {sorted(options)}")


def check_pip(words: list[str]) -> None:
    """Refuses options and packages that pip, this repository or a reader cannot know."""
    if words[0] not in {"install", "wheel", "uninstall", "list", "check"}:
        raise ShellError(f"unknown command of pip: {words[0]}")
    packages = discover(ROOT)
    rest = iter(words[1:])
    for word in rest:
        option = word.partition("=")[0]
        if word.startswith("-"):
            if option not in PIP_OPTIONS:
                raise ShellError(f"unknown option of pip: {word}")
            if option in PIP_OPTIONS_WITH_VALUE and "=" not in word:
                next(rest)
        elif word.startswith((".", "packages/", "examples/")):
            if not (ROOT / word.partition("[")[0] / "pyproject.toml").is_file() and word != ".":
                raise ShellError(f"pip: no project in {word}")
        elif requirement_name(word) not in KNOWN_DISTRIBUTIONS | set(packages):
            raise ShellError(f"pip: no package {word} here; known are {sorted(KNOWN_DISTRIBUTIONS | set(packages))}")


def run(lines: list[str]) -> str:
    """Runs lines in one shell that stops at the first failure; gives what they printed."""
    for line in lines:
        for name in re.findall(r"\b(OPENREG_[A-Z_]+)=", line):
            check_variable(name)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    if done.returncode:
        raise ShellError(f"{lines} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
