# SPDX-License-Identifier: BSD-3-Clause
"""Fresh processes, for what happens only once in a process."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def python(tmp_path):
    """Runs code in a fresh process; environment variables are keyword arguments."""

    def run(code, **variables):
        env = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_")}
        env.update(variables)
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env=env,
            cwd=tmp_path,
        )

    return run


@pytest.fixture
def bring(tmp_path):
    """Installs a package that declares a feature, where `python` runs; it is not to be imported."""

    def run(feature):
        info = tmp_path / "vendor_axis-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-axis\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[openreg.features]\n{feature} = vendor_axis\n", "utf-8")
        (tmp_path / "vendor_axis.py").write_text("raise RuntimeError('imported')\n", "utf-8")

    return run
