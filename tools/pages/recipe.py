# SPDX-License-Identifier: BSD-3-Clause
"""Adds the operators of docs/operators/adding.md to a copy of openreg-ops, exactly as the page describes.

openreg-ops has these operators, so they are removed from the copy first. `nox -s recipe` builds the copy and runs
tests/recipe, which also makes the mistakes that the page shows. By hand, in an environment with torch, openreg-runtime,
scikit-build-core, cmake and ninja: `python -m tools.pages.recipe FOLDER`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import nox

from tools._platform import usable_cores
from tools.markers import ADDITION
from tools.packages import BUILD_TOOLS, ROOT, requirement_name
from tools.sessions.copies import copy_folder
from tools.sessions.environments import session_variables
from tools.sessions.package_session import NOX, PYTEST
from tools.sessions.stopwatch import Stopwatch
from tools.sessions.wheelhouse import Wheelhouse, unchanged_headers

PAGE = ROOT / "docs" / "operators" / "adding.md"
PACKAGE = ROOT / "packages" / "openreg-ops"
TESTS = ROOT / "tests" / "recipe"
FOLDER = "OPENREG_TEST_RECIPE"  # the environment variable that names the folder of the copy for these tests
MISTAKES = "## What refuses a mistake"
SAID = re.compile(r"(?ms)\A\s*```text\n(.*?)^```$")
# The code that is removed from the copy, by file: registrations, and what only they need. Each pattern matches once.
TAKEN_OUT = {
    "csrc/operators/unary/unary.cpp": (
        r"  structured<meta::structured_erfinv,.*?;\n",
        r"std::array<OutputSpec, 2> meta_frexp\(.*?\n}\n\n",
        r"  unstructured<meta_frexp,.*?;\n",
    ),
    "csrc/kernels/distributions.h": (r"void cauchy\(.*?;\n",),
    "csrc/kernels/distributions.cpp": (r"void cauchy\(.*?\n}\n\n",),
    "csrc/operators/distributions/continuous.cpp": (
        r"constexpr Operator kCauchy\{.*?\n",
        r"using Cauchy = .*?\n",
        r"  function<op::cauchy_>.*?;\n",
    ),
    "tests/samples/structured_samples.py": (r'"erfinv", ',),
    "tests/samples/unstructured_samples.py": (r' +"frexp.Tensor": .*?\n',),
    "tests/mathematics/test_random.py": (r' +"cauchy": .*?\n',),
}
TAKEN_OUT_NAMES = re.compile(r"(?i)\b(?:structured_|meta_|op::|k)?(?:erfinv_?|frexp|cauchy_?)\b")
# A build type without the compiler's optimizations, which take half of the time and do not change results.
BUILD_TYPE = "Recipe"


class RecipeError(Exception):
    """An error for a page that cannot be followed. The message states what a reader would run into."""


@dataclass(frozen=True)
class Addition:
    """A block of code of the page, and the place to which the page adds it."""

    path: str
    where: str  # after, before, instead of, at the end, a new file
    line: str  # a part of the line that `where` refers to, which no other line has
    code: str

    def apply(self, text: str | None) -> str:
        """Returns the text of the file with the block. `text` is None if the file does not exist.

        Raises RecipeError if the page does not fit the file.
        """
        if (text is None) != (self.where == "a new file"):
            raise RecipeError(f"{self.path}: {'there is no such file' if text is None else 'the file exists'}")
        if text is None:
            return self.code
        if self.where == "at the end":
            return text + ("\n\n" if self.path.endswith(".py") else "\n") + self.code
        lines = text.splitlines(keepends=True)
        found = [index for index, line in enumerate(lines) if self.line in line]
        if len(found) != 1:
            raise RecipeError(f"{self.path}: {len(found)} lines have {self.line!r}, where one is meant")
        begin = found[0] + (self.where == "after")
        lines[begin : found[0] + (self.where != "before")] = [self.code]
        return "".join(lines)


@dataclass(frozen=True)
class Mistake:
    """A wrong block, and the message of the tool that rejects it, with `...` for any text."""

    addition: Addition
    said: str


def halves(page: str) -> tuple[str, str]:
    """Returns the part of the page that adds operators, and the part that shows mistakes."""
    before, heading, after = page.partition(MISTAKES)
    if not heading:
        raise RecipeError(f"the page has no heading {MISTAKES!r}")
    return before, after


def addition(match: re.Match[str]) -> Addition:
    """Returns the addition for a match of ADDITION."""
    return Addition(match["path"], match["where"] or match["whole"], match["line"] or "", match["code"])


def additions(page: str) -> list[Addition]:
    """Returns all additions of the page, in its order."""
    return [addition(match) for match in ADDITION.finditer(halves(page)[0])]


def mistakes(page: str) -> list[Mistake]:
    """Returns the mistakes of the page, each with the message in the block below it."""
    wrong = halves(page)[1]
    found = []
    for match in ADDITION.finditer(wrong):
        said = SAID.match(wrong[match.end() :])
        if said is None:
            raise RecipeError(f"the page does not say what refuses\n{match['code']}")
        found.append(Mistake(addition(match), said[1].strip()))
    return found


def is_said(said: str, output: str) -> bool:
    """Returns True if an output contains the message of the page, whatever quotation marks a compiler uses."""
    plain = " ".join(re.sub("[\u2018\u2019`]", "'", output).split())
    return re.search(".*".join(re.escape(part) for part in said.split("...")), plain) is not None


def read(path: Path) -> str | None:
    """Returns the text of a file; None if it does not exist."""
    return path.read_text("utf-8") if path.is_file() else None


def without_operators() -> dict[str, str]:
    """Returns the texts of the package's files that contain the operators, without the operators, by their paths."""
    result = {}
    for path, patterns in TAKEN_OUT.items():
        text = (PACKAGE / path).read_text("utf-8")
        for pattern in patterns:
            text, count = re.subn(f"(?s){pattern}", "", text)
            if count != 1:
                raise RecipeError(f"{path}: {count} times {pattern!r}, where one is meant")
        result[path] = text
    return result


def left_over(texts: Iterable[str]) -> list[str]:
    """Returns the lines that still name a removed operator."""
    return [line for text in texts for line in text.splitlines() if TAKEN_OUT_NAMES.search(line)]


def changed_files(page: str) -> dict[str, str]:
    """Returns the texts of the package's files that the copy changes, after all additions, by their paths."""
    result = without_operators()
    for item in additions(page):
        present = result.get(item.path)
        result[item.path] = item.apply(read(PACKAGE / item.path) if present is None else present)
    return result


class Copy:
    """A copy of the package with the page's operators, its build folder, and the folder in which it is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "openreg-ops"
        self.build = folder / "build"
        self.site = folder / "site"
        # CMake and Ninja of this environment come first, and compilers print their messages in English.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        parallel = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(usable_cores()))
        self._environment = {**os.environ, "PATH": path, "LC_ALL": "C", "CMAKE_BUILD_PARALLEL_LEVEL": parallel}
        self._environment.pop("PYTHONPATH", None)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a program in the folder, and returns its result with both outputs in `stdout`."""
        return subprocess.run(
            command,
            env=self._environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def make(self, page: str) -> None:
        """Copies the package, builds a wheel and installs it into a folder that takes precedence by PYTHONPATH."""
        copy_folder(PACKAGE, self.package, changed_files(page))
        pip = (sys.executable, "-m", "pip")
        # Without a unity build, a mistake costs the compilation of one file, and each file has to include what it
        # needs.
        settings = (
            *(f"build-dir={self.build}", f"cmake.build-type={BUILD_TYPE}"),
            "cmake.define.OPENREG_UNITY_BUILD=OFF",
        )
        wheels = self.folder / "wheels"
        shutil.rmtree(wheels, ignore_errors=True)
        self._demand(
            *(*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--no-cache-dir"),
            *(f"--config-settings={setting}" for setting in settings),
            *("--wheel-dir", str(wheels), str(self.package)),
        )
        self.install(self.site)

    def install(self, target: Path) -> None:
        """Installs the wheel into a folder."""
        shutil.rmtree(target, ignore_errors=True)
        (wheel,) = (self.folder / "wheels").glob("*.whl")
        self._demand(
            *(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(target), str(wheel))
        )

    def compile(self) -> subprocess.CompletedProcess[str]:
        """Compiles the files that changed, and links."""
        return self.run("cmake", "--build", str(self.build), "--target", "_C")

    def _demand(self, *command: str) -> None:
        done = self.run(*command)
        if done.returncode:
            raise RecipeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}")


def run_recipe(session: nox.Session, wheelhouse: Wheelhouse, stopwatch: Stopwatch) -> None:
    """Follows the page in a copy, and runs the tests of that copy."""
    wheels = wheelhouse.provide(session, ["openreg-runtime", "openreg-autoload", "openreg-testing"])
    packages, copied = wheelhouse.packages, wheelhouse.packages[PACKAGE.name]
    required = {*copied.requirements, *copied.extras["test"]}
    required.update(item for name in wheels for item in packages[name].requirements)
    others = sorted(item for item in required if requirement_name(item) not in packages)
    with stopwatch.step(session.name, "install"):
        session.install(
            *("--constraint", str(wheelhouse.constraints(session)), *others, *BUILD_TOOLS),
            *("scikit-build-core>=0.11", "tomli", NOX),  # to build, and for tools.pages.recipe
        )
        with unchanged_headers(Path(session.virtualenv.location)):
            session.install("--no-deps", "--no-index", "--force-reinstall", *map(str, wheels.values()))
    folder = wheelhouse.cache(session) / "recipe"
    env = session_variables([])
    with stopwatch.step(session.name, "build"), session.chdir(ROOT):
        session.run("python", "-m", "tools.pages.recipe", str(folder), env=env)
    env.update({FOLDER: str(folder), "PYTHONPATH": str(folder / "site")})
    with stopwatch.step(session.name, "pytest"), session.chdir(folder):
        session.run("python", *PYTEST, str(TESTS), *session.posargs, env=env)


def main() -> None:
    """Follows the page in the folder that the command line names."""
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    Copy(folder).make(PAGE.read_text("utf-8"))
    print(f"built from {PAGE.relative_to(ROOT)} and installed into {folder / 'site'}")


if __name__ == "__main__":
    main()
