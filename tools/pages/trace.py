# SPDX-License-Identifier: BSD-3-Clause
"""Records what `x + y` executes, with callgrind: `nox -s trace`.

The first record, docs/trace/files.json, has the source files of the repository. The observers of docs/trace/trace.cpp,
which are called for each launch and task, cut it at each event. A second run without observers shows which files only
they execute; these are left out. The second record, docs/trace/account.json, has the instructions by library, beside
those of the same operator on the CPU.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import nox

from tools._platform import MODULE_SUFFIX, PYTHON_PROGRAM, SITE_PACKAGES
from tools.packages import BUILD_TOOLS, DRIVER, ROOT, Package, closure, refuse, siblings
from tools.pages import account, callgrind
from tools.pages.passed_files import RECORD, Part
from tools.sessions.machine import compiler_command, lacks_compiler
from tools.sessions.package_session import PackageSession
from tools.sessions.wheelhouse import Wheelhouse

PROJECT = ROOT / "docs" / "trace"
PACKAGE = "openreg-ops"
OPERATORS = 100  # so many are counted in the account
# Compiler options that add line numbers, also of inlined code, and do not change the code of the wheels.
LINE_NUMBERS = {"CFLAGS": "-g1", "CXXFLAGS": "-g1"}


def repository_files(counts: Mapping[str, int], packages: Mapping[str, Package]) -> dict[str, int]:
    """Returns the counts of files of the repository, by their paths in it, without generated files.

    In a wheel, the name of a source is `openreg_ops/csrc/...`, after its CMake project (-ffile-prefix-map). Callgrind
    may put the folder of the build in front of it, which is `openreg_ops/build/...`, so the last name of a project
    counts.
    """
    folders = {name: package.folder for package in packages.values() for name in (package.name, package.import_name)}
    folders["openreg_driver"] = ROOT / DRIVER
    found: dict[str, int] = {}
    for name, count in counts.items():
        for project, folder in folders.items():
            inside = re.fullmatch(rf"(?:.*/)?{project}/(.*)", name)
            if inside is not None and (folder / inside[1]).is_file():
                path = (folder / inside[1]).relative_to(ROOT).as_posix()
                found[path] = found.get(path, 0) + count
    return dict(sorted(found.items()))


def parts(cuts: list[tuple[str, int, str]], packages: Mapping[str, Package]) -> list[Part]:
    """Returns the files that the host executed up to each event until the call returned, and those of the device."""
    result = [
        Part(
            "host" if thread == callgrind.HOST else "device",
            event,
            repository_files(callgrind.instructions_by(text, callgrind.BY_FILE), packages),
        )
        for event, thread, text in callgrind.until_returned(cuts)
    ]
    return [part for part in result if part.files]


def without_observers(observed: Iterable[Part], plain: Iterable[Part]) -> list[Part]:
    """Returns the parts without the files that only observers execute."""
    kept = {(part.thread, name) for part in plain for name in part.files}
    return [
        Part(part.thread, part.until, {name: n for name, n in part.files.items() if (part.thread, name) in kept})
        for part in observed
    ]


def record_files(python: Path, library: Path, packages: Mapping[str, Package]) -> list[Part]:
    """Returns the files that one addition executes."""
    plain, observed = (
        parts(callgrind.record(python, str(PROJECT / "program.py"), str(library), observers), packages)
        for observers in ("0", "1")
    )
    return without_observers(observed, plain)


def record_account(python: Path, library: Path) -> account.Account:
    """Returns the instructions of one addition of four elements, on the CPU and on the device."""
    found: account.Account = {}
    for device in ("cpu", "openreg"):
        cuts = callgrind.record(python, str(PROJECT / "account.py"), str(library), device, str(OPERATORS))
        counts: dict[str, Counter[str]] = {}
        for _, thread, text in callgrind.until_returned(cuts):
            column = account.ENGINE if thread != callgrind.HOST else account.CPU if device == "cpu" else account.HOST
            counts.setdefault(column, Counter()).update(callgrind.instructions_by(text, callgrind.BY_LIBRARY))
        found |= {column: account.by_title(count, OPERATORS) for column, count in counts.items()}
    return found


def build(python: Path, folder: Path) -> Path:
    """Compiles the library that cuts the record against the installed runtime, and returns its path."""
    (site,) = python.parents[1].glob(SITE_PACKAGES)
    tools = {**os.environ, "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]])}
    configure = ["cmake", "-S", str(PROJECT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    configure += [f"-DCMAKE_PREFIX_PATH={site}", f"-DPython_EXECUTABLE={python}"]
    subprocess.run(configure, check=True, env=tools)
    subprocess.run(["cmake", "--build", str(folder)], check=True, env=tools)
    return folder / f"libtrace{MODULE_SUFFIX}"


def require_valgrind() -> None:
    """Ends the session unless valgrind is installed."""
    if shutil.which("valgrind") is None:
        refuse("valgrind is not installed; install it (apt-get install valgrind)")


def compiler() -> str:
    """Returns the kind and the version of the C++ compiler that builds the wheels, such as "g++ 12"."""
    problem, command = lacks_compiler(), compiler_command()
    if problem or not command:
        refuse(problem or "the record names the compiler; set CC and CXX instead of CMAKE_ARGS")
    version = subprocess.run([*command, "-dumpversion"], capture_output=True, text=True, check=True).stdout.strip()
    # The last word is the compiler itself in `ccache g++`, and c++ is a link to one of these.
    program = [word for word in command if not word.startswith("-")][-1]
    names = f"{Path(program).name} {Path(shutil.which(program) or program).resolve().name}"
    kind = re.search(r"clang\+\+|g\+\+", names)
    return f"{kind.group() if kind else program} {version.partition('.')[0]}"


def run_instructions(session: nox.Session, environment: PackageSession) -> None:
    """Fails if an addition executes more instructions than docs/trace/account.json and account.GROWTH allow."""
    require_valgrind()
    (recorded, compiled_by), here = account.read(ROOT), compiler()
    if here != compiled_by:
        refuse(f"instructions: the record was made with {compiled_by}, and this is {here}; set CC and CXX")
    environment.install(PACKAGE, "numpy", *BUILD_TOOLS)
    python = Path(session.bin) / PYTHON_PROGRAM
    with tempfile.TemporaryDirectory() as place:
        grown = account.grown(recorded, record_account(python, build(python, Path(place))))
    if grown:
        session.error(f"x + y executes more than {account.RECORD.as_posix()} says: {'; '.join(grown)}")


def run_trace(session: nox.Session, environment: PackageSession, wheelhouse: Wheelhouse) -> None:
    """Installs wheels with line numbers, and writes both records."""
    require_valgrind()
    environment.install(PACKAGE, "numpy", *BUILD_TOOLS)
    folder = Path(session.create_tmp()) / "wheels"
    shutil.rmtree(folder, ignore_errors=True)
    for name in siblings(wheelhouse.packages[PACKAGE].build_requirements, wheelhouse.packages):
        wheelhouse.install(session, wheelhouse.packages[name], editable=False)
    session.env.update(LINE_NUMBERS)
    build_wheel = ("-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(folder))
    packages = wheelhouse.packages
    for name in closure(PACKAGE, packages):
        if (packages[name].folder / "CMakeLists.txt").is_file():
            wheelhouse.run_python(session, *build_wheel, "-Cinstall.strip=false", str(packages[name].folder))
    session.install("--no-deps", "--force-reinstall", *(str(path) for path in folder.iterdir()))
    python = Path(session.bin) / PYTHON_PROGRAM
    with tempfile.TemporaryDirectory() as place:
        library = build(python, Path(place))
        found = [asdict(part) for part in record_files(python, library, packages)]
        (ROOT / RECORD).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        account.write(ROOT, record_account(python, library), compiler())
