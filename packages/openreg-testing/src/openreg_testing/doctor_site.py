# SPDX-License-Identifier: BSD-3-Clause
"""Installations for tests of openreg-doctor, the command that checks a backend.

An installation is a folder with torch, the doctor, and the packages that a test adds. Python runs without its
site-packages (-S), so that only the folder is installed. A package declares its settings, import faults and implemented
hooks in a file doctor.toml, which the doctor reads. The doctor and its children are forked from an interpreter that has
imported torch (``FreshFamily``). A test that needs another torch, or an interpreter that starts anew, passes
``fresh=True``; then nothing is forked.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .workers.fresh_children import FreshFamily

SETTINGS = ("OPENREG_", "TORCH_", "PYTHON")  # prefixes of the variables that the doctor does not inherit
OURS = ("openreg", "torch_openreg", "_openreg")  # prefixes of the packages of this project in site-packages
# Modules that the doctor and its probes import, and that are therefore imported before the fork. Not torch._dynamo:
# importing it registers kernels, which the doctor would then count.
IMPORTED = (
    "packaging.requirements",
    "rich.console",
    "torch.distributed.tensor",
    "torch.fx.experimental.symbolic_shapes",
)


@dataclass
class Diagnosis:
    """The exit status and output of the doctor."""

    code: int
    output: str
    errors: str

    @property
    def document(self) -> dict[str, Any]:
        """The findings as parsed JSON."""
        found: dict[str, Any] = json.loads(self.output)
        return found

    @property
    def problems(self) -> dict[str, str]:
        """The texts of all problems, by check."""
        return self.texts("problem")

    def texts(self, status: str) -> dict[str, str]:
        """Returns the texts of all findings with this status, by check."""
        return {
            finding["check"]: " | ".join((finding["what"], finding["costs"], finding["fix"]))
            for finding in self.document["findings"]
            if finding["status"] == status
        }

    def finds(self, check: str, *texts: str) -> None:
        """Asserts that the check is a problem whose text contains ``texts``, with an effect ("costs") and a fix."""
        assert "Traceback" not in self.errors, self.errors
        assert check in self.problems, (self.problems, self.errors)
        for text in texts:
            assert text in self.problems[check], self.problems[check]
        (finding,) = [item for item in self.document["findings"] if item["check"] == check]
        assert finding["costs"]
        assert finding["fix"]
        assert self.code == 1


def site_packages() -> Path:
    """Returns the folder in which torch is installed."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parents[1]


def environment(path: Path) -> dict[str, str]:
    """Returns this process's environment without settings, for a Python with only this folder installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    return {**kept, "PYTHONPATH": str(path)}


@cache
def family() -> FreshFamily:
    """Returns the runner of the doctor, which all tests share."""
    python = FreshFamily(*IMPORTED, options=("-S", "-B"), env=environment(site_packages()))
    atexit.register(python.close)
    return python


class Installation:
    """A folder with the doctor, the packages ``modules`` of this project, and all installed packages of others."""

    def __init__(self, folder: Path, *modules: str, command: tuple[str, ...] = ("openreg_doctor",)) -> None:
        self.folder = folder
        self.command = command
        folder.mkdir()
        for path in site_packages().iterdir():
            if not path.name.startswith(OURS) and path.suffix != ".pth" and path.name != "__pycache__":
                (folder / path.name).symlink_to(path)
        for module in ("openreg_doctor", *modules):
            self.add(module)

    def add(self, module: str, into: Path | None = None) -> Path:
        """Copies an installed package of this project with its metadata, and returns the folder of the copy.

        An editable installation has two folders, which are merged.
        """
        into = into or self.folder
        spec = importlib.util.find_spec(module)
        assert spec is not None
        for folder in spec.submodule_search_locations or ():
            if Path(folder).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "include", "cmake")
                shutil.copytree(folder, into / module, dirs_exist_ok=True, ignore=ignored)
        distribution = "openreg_meta" if module == "torch_openreg" else module
        (info,) = site_packages().glob(f"{distribution}-*.dist-info")
        shutil.copytree(info, into / info.name)
        return into / module

    def announce(self, distribution: str, group: str = "", entry: str = "", requires: str = "") -> Path:
        """Writes a package's metadata as pip does, with at most one entry point and one requirement.

        Returns the folder of the metadata.
        """
        info = self.folder / f"{distribution.replace('-', '_')}-1.5.dist-info"
        info.mkdir()
        needed = f"Requires-Dist: {requires}\n" if requires else ""
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n{needed}"
        (info / "METADATA").write_text(metadata, "utf-8")
        if group:
            (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n", "utf-8")
        return info

    def declare(self, distribution: str, toml: str, code: str = "") -> Path:
        """Adds a package with a doctor.toml and returns its folder."""
        module = distribution.replace("-", "_")
        self.announce(distribution, "openreg_doctor.packages", f"{module} = {module}")
        (self.folder / module).mkdir()
        (self.folder / module / "__init__.py").write_text(code, "utf-8")
        (self.folder / module / "doctor.toml").write_text(toml, "utf-8")
        return self.folder / module

    def replace(self, name: str) -> Path:
        """Replaces the link to a package by a folder of links to its files, so that a test can replace one file.

        Returns that folder.
        """
        link = self.folder / name
        original = link.resolve()
        link.unlink()
        link.mkdir()
        for path in original.iterdir():
            if path.name != "__pycache__":
                (link / path.name).symlink_to(path)
        return link

    def python(self, *arguments: str, fresh: bool = False, **variables: str) -> Diagnosis:
        """Runs Python in this installation, in a fork, or with ``fresh`` in a newly started interpreter."""
        env = {**environment(self.folder), **variables}
        outcome = family().run(*arguments, env=env, folder=self.folder.parent, timeout=800, fresh=fresh)
        return Diagnosis(outcome.returncode, outcome.stdout, outcome.stderr)

    def doctor(self, *arguments: str, fresh: bool = False, **variables: str) -> Diagnosis:
        """Runs the doctor with JSON output, and asserts that each finding that is not ok has an effect and a fix."""
        options = ("--json", "--timeout", "600")  # a busy machine may need minutes to import torch the first time
        diagnosis = self.python("-m", *self.command, *options, *arguments, fresh=fresh, **variables)
        findings = diagnosis.document["findings"] if diagnosis.output else []
        assert [item for item in findings if item["status"] != "ok" and not (item["costs"] and item["fix"])] == []
        return diagnosis
