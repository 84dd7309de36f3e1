# SPDX-License-Identifier: BSD-3-Clause
"""A folder of made-up installed packages that declare themselves as plug-ins."""

from collections.abc import Iterable, Mapping
from pathlib import Path

BROKEN = "raise AssertionError('imported')\n"


class Site:
    """The folder; a process finds the packages with `sys.path.insert(0, str(site.folder))`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def announce(self, distribution: str, module: str) -> None:
        """Metadata, as pip would leave it."""
        self.distribution(distribution, {"openreg.plugins": {"plugin": module}})

    def distribution(self, name: str, groups: Mapping[str, Mapping[str, str]], requires: Iterable[str] = ()) -> None:
        """Metadata with entry points, as {group: {name: value}}, and requirements."""
        info = self.folder / f"{name.replace('-', '_')}-1.5.dist-info"
        info.mkdir(exist_ok=True)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.5"]
        lines += [f"Requires-Dist: {item}" for item in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n", "utf-8")
        lines = []
        for group, points in groups.items():
            lines += [f"[{group}]", *(f"{key} = {value}" for key, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")

    def package(self, distribution: str, record: str | None, code: str = BROKEN, requires: Iterable[str] = ()) -> str:
        """A package named after its distribution, with this `_build.json`; gives the import name."""
        module = distribution.replace("-", "_")
        self.distribution(distribution, {"openreg.plugins": {"plugin": module}}, requires)
        (self.folder / module).mkdir()
        (self.folder / module / "__init__.py").write_text(code, "utf-8")
        if record is not None:
            (self.folder / module / "_build.json").write_text(record, "utf-8")
        return module
