# SPDX-License-Identifier: BSD-3-Clause
"""A place for made-up packages, and fresh processes that find them."""

import os
import subprocess
import sys

import pytest

# A stand-in for the package that is not installed here: it imports torch as the first step of its
# start-up, like the real one, and shows what autoload may rely on. It fits any plug-in not named so.
RUNTIME = """
_after_startup = []
import torch
ready = True
print("loaded openreg_runtime")
def require_matching_build(module):
    if "other_abi" in module:
        raise ImportError(f"{module} was compiled for ABI 8, but openreg-runtime has ABI 7. pip install --upgrade it")
for step in _after_startup:
    step()
"""

# A plug-in that works with a complete runtime only.
PLUGIN = """
import openreg_runtime
assert openreg_runtime.ready
print("loaded", __name__)
"""


class Site:
    """A folder of installed distributions, put in front of the real ones."""

    def __init__(self, folder):
        self.folder = folder
        # In a developer's environment these hide the installed packages of these names.
        for name in ("openreg-runtime", "openreg-ops", "openreg-amp"):
            self.distribution(name, {})

    def distribution(self, name, points, requires=()):
        """Metadata of a distribution whose entry points are {name: value}."""
        info = self.folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
        lines += [f"Requires-Dist: {item}" for item in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n", "utf-8")
        lines = ["[openreg.plugins]", *(f"{key} = {value}" for key, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")

    def module(self, name, code):
        (self.folder / f"{name}.py").write_text(code, "utf-8")

    def runtime(self, code=RUNTIME):
        self.module("openreg_runtime", code)
        self.distribution("openreg-runtime", {"openreg_runtime": "openreg_runtime"})

    def plugin(self, name, code=PLUGIN, requires=("openreg-runtime",)):
        module = name.replace("-", "_")
        self.module(module, code)
        self.distribution(name, {module: module}, requires)

    def python(self, code, *options, autoload=True):
        """Runs code in a fresh process, which may import from the folder."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_")}
        env["PYTHONPATH"] = str(self.folder)
        if not autoload:
            env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        command = [sys.executable, *options, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=env)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)
