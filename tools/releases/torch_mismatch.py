# SPDX-License-Identifier: BSD-3-Clause
"""Tests wheels for one release of PyTorch with the torch of another one. None of them may crash.

Each pair must work, or be rejected with a message. The wheels are installed without a check of their requirements, as
`pip install --no-deps` does, into a folder that precedes the environment with torch on the path.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import nox

from tools import torch_release
from tools.packages import discover
from tools.sessions.environments import session_variables
from tools.sessions.wheelhouse import PYTHON_TAG, Wheelhouse

RUNTIME = "openreg_runtime"
NATIVE = tuple(item.import_name for item in discover().values() if (item.folder / "CMakeLists.txt").is_file())
# All modules whose import may load the native parts.
MODULES = (
    *(f"{name}{part}" for name in (*NATIVE, "torch_openreg") for part in ("", "._C")),
    *("openreg_runtime.openreg", "openreg_ops._minimal", "torch_openreg.openreg"),
)
LIMIT = 600  # seconds, after which an attempt counts as a deadlock
ADD = "import torch; print((torch.ones(2, device='openreg') + 1).sum().item())"
ASK = "import torch; print(torch.openreg.Stream().query())"


class Attempt(NamedTuple):
    """One way to start the device, with the exit code and the output of its process."""

    name: str
    code: int
    output: str


def attempts(python: Path, folder: Path) -> list[Attempt]:
    """Starts the device of the packages in the folder in every way."""
    names = {f"import {module}": f"import {module}; {ASK}" for module in MODULES}
    others = [run(python, folder, name, code, autoload=False) for name, code in names.items()]
    return [run(python, folder, "import torch", ADD, autoload=True), *others]


def run(python: Path, folder: Path, name: str, code: str, *, autoload: bool) -> Attempt:
    """Runs one attempt, in a process and a directory of its own."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("OPENREG_", "TORCH_", "PYTHON"))}
    env.update(PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1", TORCH_DEVICE_BACKEND_AUTOLOAD=str(int(autoload)))
    command = [str(python), "-c", code]
    with tempfile.TemporaryDirectory() as empty:
        try:
            result = subprocess.run(
                command, cwd=empty, env=env, capture_output=True, text=True, check=False, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return Attempt(name, 124, f"did not end within {LIMIT} s")
    return Attempt(name, result.returncode, result.stdout + result.stderr)


def torch_of(python: Path) -> str:
    """Returns the version of an environment's torch, from `torch.__version__`."""
    return run(python, Path(), "version", "import torch; print(torch.__version__)", autoload=False).output.split()[0]


def problems(tried: Iterable[Attempt], wanted: str, torch: str) -> list[str]:
    """Returns what is wrong with the attempts of wheels for the release `wanted` with a torch of version `torch`."""
    fits = torch_release.release_of(torch) == wanted
    found = []
    for attempt in tried:
        # 1 is the code of an uncaught exception; a process that a signal ended has a negative code.
        if attempt.code != (0 if fits else 1):
            found.append(f"{attempt.name}: ended with {attempt.code}: {attempt.output[-300:]}")
        elif not fits:
            parts = (f"works with torch {wanted}.*", f"torch {torch} is installed", "pip install")
            found += [f"{attempt.name}: does not say {part!r}" for part in parts if part not in attempt.output]
    return found


def release_of(wheels: Iterable[Path]) -> str:
    """Returns the release of torch that all these wheels are for."""
    (found,) = {torch_release.release_of(path.name.split("-")[1]) for path in wheels}
    return found


def mixture(own: Iterable[Path], other: Iterable[Path]) -> list[Path]:
    """Returns the wheels of one release, with the native packages that build on the runtime from another release."""
    replaced = {path.name.split("-")[0]: path for path in other}
    above = {name for name in NATIVE if name != RUNTIME}
    return [replaced[name] if (name := path.name.split("-")[0]) in above else path for path in own]


def try_all(
    session: nox.Session, wheelhouse: Wheelhouse, folders: Mapping[str, list[Path]], pythons: Mapping[str, Path]
) -> list[str]:
    """Tries every pair of wheels and torch, and each torch with a runtime that fits and other packages that do not.

    Returns the problems.
    """
    found = []
    for torch, python in pythons.items():
        fits = torch_release.release_of(torch)
        for wanted, wheels in folders.items():
            sets = {f"wheels for {wanted}": wheels}
            if fits in folders and wanted != fits:
                sets[f"native packages above the runtime for {wanted}, the rest for {fits},"] = mixture(
                    folders[fits], wheels
                )
            for name, chosen in sets.items():
                with tempfile.TemporaryDirectory() as folder:
                    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
                    wheelhouse.run_python(session, *pip, "--target", folder, *map(str, chosen))
                    tried = attempts(python, Path(folder))
                if chosen is not wheels:  # the runtime loads; the others do not, nor what needs the operators
                    tried = [item for item in tried if not item.name.startswith(f"import {RUNTIME}")]
                wrong = problems(tried, wanted, torch)
                session.log(f"{name} beside torch {torch}: {len(tried)} ways, {len(wrong)} problems")
                found += [f"{name} beside torch {torch}: {line}" for line in wrong]
    return found


def run_torch_mismatch(session: nox.Session, wheelhouse: Wheelhouse) -> None:
    """Builds the wheels of every release, and tries each with the torch of every build environment."""
    cache = wheelhouse.cache(session)
    wheelhouse.provide(session, list(wheelhouse.packages))
    places, interpreters = [wheelhouse.dist], [wheelhouse.python(session)]
    for release in torch_release.others():
        with wheelhouse.stopwatch.step(session.name, f"wheels for torch {release}"):
            command = ("-m", "nox", "--envdir", str(cache.parent), "-s", "torch", "--", release, "wheels")
            session.run(sys.executable, *command, env=session_variables([]), external=True)
        place = cache / f"torch-{release}"
        places.append(place / "repository" / "dist")
        environment = place / "environments" / ".cache" / f"build-env-{PYTHON_TAG}"
        interpreters.append(environment / wheelhouse.python(session).relative_to(wheelhouse.environment(session)))
    folders = {release_of(wheels): wheels for wheels in (sorted(path.glob("*.whl")) for path in places)}
    pythons = {torch_of(python): python for python in interpreters}
    with wheelhouse.stopwatch.step(session.name, "pairs"):
        found = try_all(session, wheelhouse, folders, pythons)
    if found:
        session.error("\n".join(["these neither work nor are refused with a message:", *found]))
