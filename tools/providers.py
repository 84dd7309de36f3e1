# SPDX-License-Identifier: BSD-3-Clause
"""Writes the files that are generated from the declarations of the packages.

usage: python -m tools.providers

A package declares in its pyproject.toml, and nowhere else,

- the names that it adds to `torch.openreg`: entry points `name = "module:attribute"` of the group `openreg.names`;
- the features that it provides, such as `tensors` and `autocast`: entry points `feature = "module"` of the group
  `openreg.features`;
- whether it is an extra of openreg-meta: `extra = true` under `[tool.openreg]`.

It declares in its doctor.toml the hooks that it implements, and what the doctor prints if the package is not installed
(tools/hooks.py).

This module generates from them

- the table from which messages of openreg-runtime and of the doctor name the package to install. It contains the
  packages that openreg-meta installs, extras included. The runtime finds other packages only if they are installed.
  The table also has the package of each environment variable, of all packages, so that the runtime can warn of a
  variable whose package is not installed.
- the extras of openreg-meta.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools import hooks
from tools.packages import ROOT, Package, closure, discover, read_toml, refuse

COMMAND = "python -m tools.providers"
RUNTIME = "openreg-runtime"
WHOLE = "openreg-meta"
NAMES = "openreg.names"
FEATURES = "openreg.features"
TABLE = Path("packages/openreg-runtime/src/openreg_runtime/_providers.json")
EXTRAS = Path("packages") / WHOLE / "pyproject.toml"
BEGIN = f"# Written by `{COMMAND}`: one extra for each package that says `extra = true` under [tool.openreg].\n"
END = "# Written so far.\n"
WRITTEN = re.compile(f"(?s)(?<=\n){re.escape(BEGIN)}.*?{re.escape(END)}")


def extras(packages: Mapping[str, Package]) -> dict[str, list[str]]:
    """Returns the extras of openreg-meta: one for each package that declares itself one, named after it, and `all`."""
    installed = [package for _, package in sorted(packages.items()) if package.is_extra]
    pins = {package.short_name: f"{package.name}=={package.torch}.*" for package in installed}
    return {**{name: [pin] for name, pin in pins.items()}, "all": list(pins.values())}


def brought(packages: Mapping[str, Package]) -> list[str]:
    """Returns the packages that openreg-meta installs, extras included."""
    wanted = [name for name, package in packages.items() if name == WHOLE or package.is_extra]
    needed = {item for name in wanted for item in closure(name, packages)}
    return [name for name in packages if name in needed]


def planned(root: Path) -> dict[str, str]:
    """Returns the features that no package here provides yet, with the name of the package that will."""
    path = root / EXTRAS
    tables = read_toml(path) if path.is_file() else {}
    found: dict[str, str] = tables.get("tool", {}).get("openreg", {}).get("planned", {})
    return found


def declared(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yields group, name and distribution of everything that openreg-meta provides, or that is planned."""
    packages = discover(root)
    for name in brought(packages):
        for group in (NAMES, FEATURES):
            yield from ((group, point, name) for point in packages[name].entry_points.get(group, ()))
    yield from ((FEATURES, feature, name) for feature, name in planned(root).items())


def table_text(root: Path) -> str:
    """Returns the text of TABLE: names, features and settings with their distributions, and the texts of the doctor.

    The doctor prints such a text for each package above the runtime that is not installed.
    """
    packages = discover(root)
    below = closure(RUNTIME, packages) if RUNTIME in packages else []
    absent = hooks.absent_packages(root, [name for name in brought(packages) if name not in below])
    settings = {
        setting.name: item.package.name for item in hooks.declarations(root) for setting in item.content.settings
    }
    found: dict[str, dict[str, Any]] = {"features": {}, "names": {}, "packages": absent, "settings": settings}
    for group, point, name in declared(root):
        found[group.removeprefix("openreg.")][point] = name
    return json.dumps(found, indent=2, sort_keys=True) + "\n"


def with_extras(text: str, packages: Mapping[str, Package]) -> str:
    """Returns the text of openreg-meta's pyproject.toml with the current extras."""
    lines = "".join(f"{name} = {json.dumps(pins)}\n" for name, pins in extras(packages).items())
    return WRITTEN.sub(f"{BEGIN}{lines}{END}", text)


def brought_by_one_package(root: Path) -> list[str]:
    """Checks that only one package declares each name of torch.openreg and each feature; tests/subsets loads them.

    Returns one line per violation.
    """
    problems = []
    owners: dict[tuple[str, str], str] = {}
    for group, point, name in declared(root):
        other = owners.setdefault((group, point), name)
        if other != name:
            problems.append(f"{point!r} of {group} is declared for {other} and for {name}; remove one of them")
    return problems


def texts(root: Path) -> dict[Path, str]:
    """Returns every generated file, with its current text."""
    return {
        TABLE: table_text(root),
        EXTRAS: with_extras((root / EXTRAS).read_text("utf-8"), discover(root)),
    }


def changed(root: Path) -> dict[Path, str]:
    """Returns the generated files that are missing or out of date, with their current texts."""
    return {
        path: text
        for path, text in texts(root).items()
        if not (root / path).is_file() or (root / path).read_text("utf-8") != text
    }


def declarations_are_written(root: Path) -> list[str]:
    """Checks that the generated files are current. Returns one line per violation."""
    problems = [f"{path.as_posix()}: not what the packages declare: {COMMAND}" for path in changed(root)]
    if not WRITTEN.search((root / EXTRAS).read_text("utf-8")):
        problems.append(f"{EXTRAS.as_posix()}: no place for the extras, from {BEGIN.strip()!r} to {END.strip()!r}")
    return problems


def write(root: Path) -> list[Path]:
    """Writes the files that changed, and returns them."""
    found = changed(root)
    for path, text in found.items():
        (root / path).write_text(text, encoding="utf-8")
    return list(found)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        refuse(__doc__ or "")
    for item in write(ROOT):
        print(f"wrote {item.as_posix()}")
