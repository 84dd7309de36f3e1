# SPDX-License-Identifier: BSD-3-Clause
"""The settings of the README are those that the doctor knows."""

import ast
import re

from tools.packages import ROOT

DOCTOR = ROOT / "packages/openreg-runtime/src/openreg_runtime/doctor/checks/settings.py"


def test_the_readme_and_the_doctor_list_the_same_settings():
    shown = re.findall(r"(?m)^\| `([A-Z_]+)` \|", (ROOT / "README.md").read_text("utf-8"))
    tables = [
        node.value
        for node in ast.parse(DOCTOR.read_text("utf-8")).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "DEFAULTS"
    ]
    assert sorted(shown) == sorted(ast.literal_eval(tables[0]))
