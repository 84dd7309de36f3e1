# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` brings up by itself, with nothing installed but openreg-autoload.

Without openreg-runtime the import warns, and shows the command that installs it.
"""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec

import torch

print(hasattr(torch, "openreg"))  # True as soon as openreg-runtime is installed


def check(condition, claim):
    """Prints what was shown; ends the program if it was not."""
    if not condition:
        raise SystemExit(f"WRONG: {claim}")
    print(f"  {claim}")


print("\nWhat torch called")
(point,) = (item for item in entry_points(group="torch.backends") if item.name == "openreg")
check(point.value == "openreg_autoload:autoload", f"torch.backends: {point.name} = {point.value}")

print("\nWhat that imported")
plugins = sorted(item.value for item in entry_points(group="openreg.plugins"))
for name in plugins:
    check(name in sys.modules, name)
if not plugins:
    print("  nothing: no openreg package with a device is installed")

print("\nThe result")
present = find_spec("openreg_runtime") is not None
check(hasattr(torch, "openreg") == present, f"torch.openreg exists: {present}")
check(torch.ones(2).sum().item() == 2, "torch works")

print("\nSwitched off with TORCH_DEVICE_BACKEND_AUTOLOAD=0")
result = subprocess.run(
    [sys.executable, "-c", "import sys, torch; print('openreg_autoload' in sys.modules)"],
    env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    capture_output=True,
    text=True,
    check=True,
)
check(result.stdout.strip() == "False", "import torch loads none of it")
