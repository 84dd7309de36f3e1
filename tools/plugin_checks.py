# SPDX-License-Identifier: BSD-3-Clause
"""Rules that make packages fit together, in the form of those in repo_checks.py, which runs them."""

from __future__ import annotations

import re
from pathlib import Path

from tools import hooks
from tools.packages import discover, read_toml, requirement_name

RUNTIME = "openreg-runtime"
WHOLE = "openreg-meta"
DOCTOR = "openreg-doctor"

PLUGINS = "openreg.plugins"
RECORD = "openreg_install_python_modules("
QUESTION = "openreg_runtime.require_matching_build(__name__)"


def native_parts_ask_first(root: Path) -> list[str]:
    """A package with native parts records what they were compiled for, and asks the runtime before it loads them."""
    problems = []
    for package in discover(root).values():
        if package.name == RUNTIME or not (package.folder / "csrc").is_dir():
            continue
        cmake = package.folder / "CMakeLists.txt"
        if not cmake.is_file() or RECORD not in cmake.read_text("utf-8"):
            problems.append(f"{package.folder.relative_to(root)}/CMakeLists.txt: install with {RECORD}...)")
        source = package.folder / "src" / package.import_name / "__init__.py"
        before, asked, _ = source.read_text("utf-8").partition(QUESTION)
        if not asked or re.search(rf"(?m)^\s*(from|import) {package.import_name}\b", before):
            problems.append(f"{source.relative_to(root)}: {QUESTION} has to come before its own imports")
    return problems


def extras_of_the_whole(root: Path) -> list[str]:
    """An extra of openreg-meta that brings openreg-x is named x, pinned like a dependency, and a part of `all`."""
    packages = discover(root)
    project = read_toml(root / "packages" / WHOLE / "pyproject.toml")["project"]
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})
    if "all" not in extras:
        return [f"{WHOLE}: no extra 'all'"]
    problems = []
    for extra, requirements in extras.items():
        for requirement in requirements:
            name = requirement_name(requirement)
            if name not in packages:
                continue
            wanted = f"{name}=={'.'.join(packages[name].version.split('.')[:2])}.*"
            if requirement != wanted:
                problems.append(f"{WHOLE}[{extra}]: {requirement!r} should be {wanted!r}")
            if extra != "all" and extra != name.removeprefix("openreg-"):
                problems.append(f"{WHOLE}[{extra}]: the extra that brings {name} is named after it")
            if requirement not in extras["all"]:
                problems.append(f"{WHOLE}[all]: {requirement!r} is missing")
    return problems


def plugins_tell_the_doctor(root: Path) -> list[str]:
    """What adds to a device ships a doctor.toml, so that its absence can be told (`python -m tools.hooks`)."""
    problems = []
    for package in discover(root).values():
        place = package.folder.relative_to(root) / "src" / package.import_name / hooks.DECLARATION
        if PLUGINS in package.entry_points and not (root / place).is_file():
            problems.append(f"{place}: missing; it says what the package brings (templates/package has one)")
    return problems


def doctor_knows_no_package(root: Path) -> list[str]:
    """The doctor serves any backend: what it knows of packages they declare; only what is made by a tool names them."""
    packages = discover(root)
    if DOCTOR not in packages:
        return []
    others = {name for package in packages.values() for name in (package.name, package.import_name)}
    own = {DOCTOR, packages[DOCTOR].import_name}
    pattern = re.compile(rf"\b({'|'.join(sorted(others - own))})\b")
    return [
        f"{path.relative_to(root)}:{number}: {found.group()!r}: let the package declare it ({hooks.DECLARATION})"
        for path in sorted((packages[DOCTOR].folder / "src").rglob("*"))
        if path.suffix in {".py", ".toml"}
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (found := pattern.search(line))
    ]
