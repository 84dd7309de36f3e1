# SPDX-License-Identifier: BSD-3-Clause
"""Records the source files of the repository that `x + y` executes, with callgrind: `nox -s trace`.

Callgrind (https://valgrind.org/docs/manual/cl-manual.html) counts instructions by the line of source that they come
from, inlined ones too, on each thread. The observers of docs/trace/trace.cpp, which are called for each launch and
task, cut that record at each event. A second run without observers shows which files only they execute; these are left
out. The result is docs/trace/files.json.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import nox

from tools._platform import MODULE_SUFFIX, PYTHON_PROGRAM, SITE_PACKAGES
from tools.packages import BUILD_TOOLS, DRIVER, ROOT, Package, closure, refuse
from tools.pages.passed_files import RECORD, Part
from tools.sessions.package_session import PackageSession
from tools.sessions.wheelhouse import Wheelhouse

PROJECT = ROOT / "docs" / "trace"
COMMAND = "nox -s trace"
PACKAGE = "openreg-ops"
# Compiler options that add line numbers, also of inlined code, and do not change the code of the wheels.
LINE_NUMBERS = {"CFLAGS": "-g1", "CXXFLAGS": "-g1"}

# The event after which the host only waits (docs/trace/trace.cpp), and the name for what follows a thread's last cut.
RETURNED, IDLE = "returned", "idle"
RECORDS = "record"
HOST = 1  # callgrind's number of the first thread

# callgrind's format: https://valgrind.org/docs/manual/cl-format.html
_EVENT = re.compile(r"(?m)^desc: Trigger: Client Request: (.*)$")
_NAMED = re.compile(r"\((\d+)\)(?: (.+))?")
_COSTS = re.compile(r"[+*\d-]")


def instructions_by_file(dump: str) -> dict[str, int]:
    """Returns the number of instructions of each file in one thread's record, without those of called functions."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    file, is_call = "", False
    for line in dump.splitlines():
        key, _, value = line.partition("=")
        if key in {"fl", "fi", "fe", "cfi", "cfl"}:
            named = _NAMED.fullmatch(value)
            if named is None:
                refuse(f"{COMMAND}: callgrind wrote a line that is not in its format: {line}")
            name = names.setdefault(named[1], named[2] or "")
            file = name if key in {"fl", "fi", "fe"} else file
        elif key == "calls":
            is_call = True
        elif _COSTS.match(line):
            if not is_call:
                counts[file] = counts.get(file, 0) + int(line.split()[1])
            is_call = False
    return counts


def repository_files(counts: Mapping[str, int], packages: Mapping[str, Package]) -> dict[str, int]:
    """Returns the counts of files of the repository, by their paths in it, without generated files.

    In a wheel, the name of a source is `openreg_ops/csrc/...`, after its CMake project (-ffile-prefix-map).
    """
    folders = {name: package.folder for package in packages.values() for name in (package.name, package.import_name)}
    folders["openreg_driver"] = ROOT / DRIVER
    found: dict[str, int] = {}
    for name, count in counts.items():
        for project, folder in folders.items():
            inside = re.search(rf"(?:^|/){project}/(.*)", name)
            if inside is not None and (folder / inside[1]).is_file():
                path = (folder / inside[1]).relative_to(ROOT).as_posix()
                found[path] = found.get(path, 0) + count
    return dict(sorted(found.items()))


def records(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yields event, thread and record of each cut, in order, and then of each thread what follows its last cut.

    A cut ends the record of only the thread that makes it.
    """
    cuts: dict[tuple[float, int], str] = {}
    for path in folder.glob(f"{RECORDS}*-*"):
        number, _, of_thread = path.name.removeprefix(RECORDS).removeprefix(".").partition("-")
        cuts[float(number or "inf"), int(of_thread)] = path.read_text("utf-8")
    for (_, thread), text in sorted(cuts.items()):
        event = _EVENT.search(text)
        yield (event[1] if event is not None else IDLE), thread, text


def parts(folder: Path, packages: Mapping[str, Package]) -> list[Part]:
    """Returns the files that the host executed up to each event until the call returned, and those of the device.

    What the host executes after that, while it waits for the device, does not belong to the operator.
    """
    result: list[Part] = []
    returned = False
    for event, thread, text in records(folder):
        if thread != HOST or not returned:
            name = "host" if thread == HOST else "device"
            result.append(Part(name, event, repository_files(instructions_by_file(text), packages)))
        returned = returned or event == RETURNED
    return [part for part in result if part.files]


def without_observers(observed: Iterable[Part], plain: Iterable[Part]) -> list[Part]:
    """Returns the parts without the files that only observers execute."""
    kept = {(part.thread, name) for part in plain for name in part.files}
    return [
        Part(part.thread, part.until, {name: n for name, n in part.files.items() if (part.thread, name) in kept})
        for part in observed
    ]


def record(python: Path, library: Path, packages: Mapping[str, Package], *, observed: bool) -> list[Part]:
    """Runs the program once, with or without observers, and returns its parts."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes"]
        command += [f"--callgrind-out-file={Path(folder) / RECORDS}", str(python), str(PROJECT / "program.py")]
        command += [str(library), str(int(observed))]
        env = {name: value for name, value in os.environ.items() if not name.startswith("OPENREG_")}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            refuse(f"{COMMAND}: {shlex.join(done.args)} failed:\n{done.stdout}{done.stderr}")
        return parts(Path(folder), packages)


def build(python: Path, folder: Path) -> Path:
    """Compiles the library that cuts the record against the installed runtime, and returns its path."""
    (site,) = python.parents[1].glob(SITE_PACKAGES)
    tools = {**os.environ, "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]])}
    configure = ["cmake", "-S", str(PROJECT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    configure += [f"-DCMAKE_PREFIX_PATH={site}", f"-DPython_EXECUTABLE={python}"]
    subprocess.run(configure, check=True, env=tools)
    subprocess.run(["cmake", "--build", str(folder)], check=True, env=tools)
    return folder / f"libtrace{MODULE_SUFFIX}"


def run_trace(session: nox.Session, environment: PackageSession, wheelhouse: Wheelhouse) -> None:
    """Installs wheels with line numbers, and writes the record."""
    if shutil.which("valgrind") is None:
        refuse(f"{COMMAND}: valgrind is not installed; install it (apt-get install valgrind)")
    environment.install(PACKAGE, "numpy", *BUILD_TOOLS)
    folder = Path(session.create_tmp()) / "wheels"
    shutil.rmtree(folder, ignore_errors=True)
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
        plain, observed = (record(python, library, packages, observed=observed) for observed in (False, True))
    found = [asdict(part) for part in without_observers(observed, plain)]
    (ROOT / RECORD).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
