# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: a folder for a made-up runtime, and fresh processes that import from it."""

import os
import subprocess
import sys

import pytest

import openreg_autoload

# A stand-in for the package that is not installed here: it imports torch as the first step of its start-up, like the
# real one, and shows when it is asked to load the plug-ins.
RUNTIME = """
complete = False
def load_plugins():
    print("load_plugins", complete)
import torch
complete = True
print("loaded openreg_runtime")
"""


class Site:
    """A folder of modules that a process finds before the installed ones."""

    def __init__(self, folder):
        self.folder = folder

    def runtime(self, code=RUNTIME):
        (self.folder / "openreg_runtime.py").write_text(code, "utf-8")

    def rival(self, name="rival", code="torch.utils.rename_privateuse1_backend('rival')"):
        """Installs another backend, whose entry point runs this code when torch is imported."""
        (self.folder / f"{name}.py").write_text(
            f"import torch\ndef load():\n    {code}\n    print('loaded {name}')\n", "utf-8"
        )
        info = self.folder / f"{name}_torch-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-torch\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[torch.backends]\n{name} = {name}:load\n", "utf-8")

    def python(self, code, *options, autoload=True, **variables):
        """Runs code in a fresh process, which may import from the folder."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENREG_", "TORCH_"))}
        env.update(variables)
        env["PYTHONPATH"] = str(self.folder)
        if not autoload:
            env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        command = [sys.executable, *options, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=env)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture
def autoload(site, monkeypatch):
    """The function of the package, for this process; it finds the runtime of the site."""
    monkeypatch.syspath_prepend(site.folder)
    monkeypatch.delitem(sys.modules, "openreg_runtime", raising=False)
    monkeypatch.delenv("OPENREG_AUTOLOAD", raising=False)
    yield openreg_autoload.autoload
    sys.modules.pop("openreg_runtime", None)
