# SPDX-License-Identifier: BSD-3-Clause
"""A folder of made-up installed packages that announce themselves as plug-ins."""

from pathlib import Path

BROKEN = "raise AssertionError('imported')\n"


class Site:
    """The folder; a process finds the packages with `sys.path.insert(0, str(site.folder))`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def announce(self, distribution: str, module: str) -> None:
        """Metadata, as pip would leave it."""
        info = self.folder / f"{distribution.replace('-', '_')}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[openreg.plugins]\nplugin = {module}\n", "utf-8")

    def package(self, distribution: str, record: str | None, code: str = BROKEN) -> str:
        """A package named after its distribution, with this `_build.json`; gives the import name."""
        module = distribution.replace("-", "_")
        self.announce(distribution, module)
        (self.folder / module).mkdir()
        (self.folder / module / "__init__.py").write_text(code, "utf-8")
        if record is not None:
            (self.folder / module / "_build.json").write_text(record, "utf-8")
        return module
