# SPDX-License-Identifier: BSD-3-Clause
"""The files of a project, from the layers of the tutorial, and the record of what was written, for updates.

A folder of the tutorial is a layer: it has the files that its step adds or changes. The folder `backend` has what a
project of one's own has besides, and in its folder `known_failures` what the doctor and the conformance kit report of
each step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PureWindowsPath

from packaging.version import InvalidVersion, Version

from .names import Names, ProjectError

FIRST, DEFAULT, LAST = 3, 7, 9  # steps; before the third a device has no runtime in C++, or no tensors
FIRST_WITH_OPERATORS = 4  # the step that has the files which they include
RECORD = ".doctor-project.json"

_ABOUT = "The project as `python -m openreg_doctor new` or `update` wrote it; `update` needs it. Commit it, unchanged."
_KNOWN_FAILURES = "known_failures"
_LEFT_BEHIND = {"build", "__pycache__", ".DS_Store"}  # by builds, Python and macOS


@dataclass(frozen=True)
class Project:
    """A project as it is written: its names, its step, and the text of each file by path."""

    names: Names
    step: int
    files: Mapping[str, str]
    written_by: str = field(default="", compare=False)  # the version of this package that wrote a record, or ""


def own_version() -> str:
    """Returns the version of this package, or "" in a checkout that is not installed."""
    try:
        return version("openreg-doctor")
    except PackageNotFoundError:
        return ""


def is_newer(written_by: str) -> bool:
    """Returns True if a version is newer than this package. A version that is unknown is not."""
    try:
        return Version(written_by) > Version(own_version())
    except InvalidVersion:
        return False


def make(names: Names, step: int) -> Project:
    """Returns the project of a step under these names."""
    files = {names.substituted(path): names.substituted(text) for path, text in templates(step).items()}
    return Project(names, step, files)


def templates(step: int) -> dict[str, str]:
    """Returns the files of a step's project under the tutorial's names."""
    files: dict[str, str] = {}
    for number in range(1, step + 1):
        layer = _texts(_folder() / f"step{number}")
        files |= {path: text for path, text in layer.items() if path != "README.md"}  # which is about the layer
    added = _texts(_folder() / "backend")
    files |= {path: text for path, text in added.items() if not path.startswith(_KNOWN_FAILURES)}
    # In the order of the steps, so that the newest lists stay.
    for number in range(1, step + 1):
        place = f"{_KNOWN_FAILURES}/step{number}/"
        failures = {path.removeprefix(place): text for path, text in added.items() if path.startswith(place)}
        files |= {f"tests/{name}": text for name, text in failures.items()}
    return files


def operators(names: Names) -> dict[str, str]:
    """Returns an operator of each kind, and its check, under these names, by path in a project."""
    layer = _texts(_folder() / "operators")
    chosen = {"csrc/kinds.cpp": layer["csrc/kinds.cpp"], "check_operators.py": layer["check.py"]}
    return {path: names.substituted(text) for path, text in chosen.items()}


def _folder() -> Path:
    """Returns the tutorial's folder: in an installed wheel beside this package's modules, or in the checkout."""
    package = Path(__file__).resolve().parents[1]
    installed, checkout = package / "tutorial", package.parents[3] / "examples" / "tutorial"
    return installed if installed.is_dir() else checkout


def _texts(folder: Path) -> dict[str, str]:
    texts = {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _LEFT_BEHIND.intersection(path.relative_to(folder).parts)
    }
    if not texts:
        raise ProjectError(f"the installed openreg-doctor lacks its folder tutorial/{folder.name}; install it again")
    return texts


def record_of(project: Project) -> str:
    """Returns the text of the record of a project, in which each line of a file is a line."""
    document = {
        "about": _ABOUT,
        "version": own_version(),
        "package": project.names.package,
        "device": project.names.device,
        "step": project.step,
        "files": {path: text.split("\n") for path, text in sorted(project.files.items())},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read_record(folder: Path) -> Project:
    """Returns the project that a folder's record describes. Raises ProjectError if there is none, or it is damaged."""
    path = folder / RECORD
    try:
        document = json.loads(path.read_text("utf-8"))
        files = {str(file): "\n".join(lines) for file, lines in document["files"].items()}
        for file in files:
            # Windows' rules include those of other systems: both separators, and paths that begin at a drive.
            parts = PureWindowsPath(file)
            if parts.anchor or ".." in parts.parts:
                raise ValueError(f"{file} is not in the project")
        chosen = Names(str(document["package"]), str(document["device"]))
        return Project(chosen, int(document["step"]), files, str(document["version"]))
    except FileNotFoundError:
        raise ProjectError(
            f"{folder} has no {RECORD}, which `new` writes; name the folder of a project that was made by it"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProjectError(f"{path} is damaged ({error!r}); take it from the last commit") from error
