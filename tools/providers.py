# SPDX-License-Identifier: BSD-3-Clause
"""What the packages declare that they bring, written where others read it.

usage: python -m tools.providers

A package declares in its pyproject.toml, and nowhere else,

- the names that it adds to `torch.openreg`: entry points `name = "module:attribute"` of the group `openreg.names`;
- the features that it brings, as `tensors` and `autocast`: entry points `feature = "module"` of `openreg.features`;
- whether it is an extra of openreg-meta: `extra = true` under `[tool.openreg]`.

and in its doctor.toml, what the doctor says where the package is not installed (tools/hooks.py).

From that this writes the table with which openreg-runtime and its doctor say what to install, for the packages that
openreg-meta brings, extras included; and the extras of openreg-meta. What any other package brings the runtime learns
where that package is installed.
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
    """The extras of openreg-meta: one for each package that is one, named after it, and `all` of them."""
    axes = [package for _, package in sorted(packages.items()) if package.is_extra]
    pins = {package.short_name: f"{package.name}=={package.torch}.*" for package in axes}
    return {**{name: [pin] for name, pin in pins.items()}, "all": list(pins.values())}


def brought(packages: Mapping[str, Package]) -> list[str]:
    """The packages that openreg-meta brings, extras included."""
    wanted = [name for name, package in packages.items() if name == WHOLE or package.is_extra]
    needed = {item for name in wanted for item in closure(name, packages)}
    return [name for name in packages if name in needed]


def planned(root: Path) -> dict[str, str]:
    """Features that no package here brings, and the name of the package that will."""
    path = root / EXTRAS
    tables = read_toml(path) if path.is_file() else {}
    found: dict[str, str] = tables.get("tool", {}).get("openreg", {}).get("planned", {})
    return found


def declared(root: Path) -> Iterator[tuple[str, str, str]]:
    """Group, name and distribution of everything that openreg-meta brings, or has planned."""
    packages = discover(root)
    for name in brought(packages):
        for group in (NAMES, FEATURES):
            yield from ((group, point, name) for point in packages[name].entry_points.get(group, ()))
    yield from ((FEATURES, feature, name) for feature, name in planned(root).items())


def table_text(root: Path) -> str:
    """What the runtime reads: names and features, with the distribution that brings each, and what the doctor tells.

    The doctor tells of each package above the runtime where it is not installed.
    """
    packages = discover(root)
    below = closure(RUNTIME, packages) if RUNTIME in packages else []
    told = hooks.absent_packages(root, [name for name in brought(packages) if name not in below])
    found: dict[str, dict[str, Any]] = {"features": {}, "names": {}, "packages": told}
    for group, point, name in declared(root):
        found[group.removeprefix("openreg.")][point] = name
    return json.dumps(found, indent=2, sort_keys=True) + "\n"


def with_extras(text: str, packages: Mapping[str, Package]) -> str:
    """The pyproject.toml of openreg-meta with its extras written anew."""
    lines = "".join(f"{name} = {json.dumps(pins)}\n" for name, pins in extras(packages).items())
    return WRITTEN.sub(f"{BEGIN}{lines}{END}", text)


def brought_by_one_package(root: Path) -> list[str]:
    """A name of torch.openreg and a feature are declared by one package; lanes load them (tests/subsets)."""
    problems = []
    owners: dict[tuple[str, str], str] = {}
    for group, point, name in declared(root):
        other = owners.setdefault((group, point), name)
        if other != name:
            problems.append(f"{point!r} of {group} is declared for {other} and for {name}; remove one of them")
    return problems


def declarations_are_written(root: Path) -> list[str]:
    """The runtime's table and the extras of openreg-meta are what the packages declare."""
    problems = []
    table = root / TABLE
    if table.parent.is_dir() and (not table.is_file() or table.read_text("utf-8") != table_text(root)):
        problems.append(f"{TABLE.as_posix()}: not what the packages declare: {COMMAND}")
    if (root / EXTRAS).is_file():
        text = (root / EXTRAS).read_text("utf-8")
        if not WRITTEN.search(text):
            problems.append(f"{EXTRAS.as_posix()}: no place for the extras, from {BEGIN.strip()!r} to {END.strip()!r}")
        elif with_extras(text, discover(root)) != text:
            problems.append(f"{EXTRAS.as_posix()}: the extras are not what the packages declare: {COMMAND}")
    return problems


def write(root: Path) -> list[Path]:
    """Writes the table and the extras; gives the files that changed."""
    whole = root / EXTRAS
    texts = {root / TABLE: table_text(root), whole: with_extras(whole.read_text("utf-8"), discover(root))}
    changed = [path for path, text in texts.items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in changed:
        path.write_text(texts[path], encoding="utf-8")
    return changed


if __name__ == "__main__":
    if len(sys.argv) > 1:
        refuse(__doc__ or "")
    for item in write(ROOT):
        print(f"wrote {item.relative_to(ROOT).as_posix()}")
