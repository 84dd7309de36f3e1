# SPDX-License-Identifier: BSD-3-Clause
"""The settings of the README are those that the packages declare to the doctor, and those that their sources read."""

import re

from tools import hooks
from tools.packages import ROOT


def declared():
    return {item.package.name: set(item.data.get("settings", {})) for item in hooks.declarations()}


def test_the_readme_lists_the_settings_that_packages_declare():
    shown = re.findall(r"(?m)^\| `([A-Z_]+)` \|", (ROOT / "README.md").read_text("utf-8"))
    assert sorted(shown) == sorted(name for names in declared().values() for name in names)


def test_every_setting_that_a_package_reads_is_declared_by_it():
    for name, known in declared().items():
        sources = (ROOT / "packages" / name / "csrc").rglob("*.cpp")
        read = {found for path in sources for found in re.findall(r'"(OPENREG_[A-Z_]+)"', path.read_text("utf-8"))}
        assert read <= known, name
    assert "OPENREG_OPS" in declared()["openreg-ops"]
