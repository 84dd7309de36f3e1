# SPDX-License-Identifier: BSD-3-Clause
"""The backend can be loaded in every documented way and in any order of imports."""

import itertools

import pytest

OFF = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
ORDERS = list(itertools.permutations(["openreg_amp", "openreg_ops", "torch"]))
FURTHER = pytest.mark.endurance  # further forms of what the default session runs, each in a process of its own

# The others, too, bring the runtime in first. openreg-amp's tests have it before torch by itself.
IN_THE_LANE = [order for order in ORDERS if order[0] == "torch"] + [("openreg_ops", "openreg_amp", "torch")]

# Word for word what the project promises to users.
USAGE = """
import torch

if not torch.openreg.is_available():
    raise SystemExit("no openreg device in this installation")

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device="openreg")
y = x + 2
print(y, y.device)
print(y.cpu())
"""

WHOLE_BACKEND = """
x = torch.ones(3, 3, device="openreg")
with torch.autocast("openreg"):
    print((x @ x).dtype, torch.openreg.fallback_stats is not None)
"""


def test_the_promised_script_works_as_it_stands(python):
    result = python(USAGE, fresh=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "tensor([[3., 4.],",
        "        [5., 6.]], device='openreg:0') openreg:0",
        "tensor([[3., 4.],",
        "        [5., 6.]])",
    ]
    assert result.stderr == ""


@pytest.mark.covers("registration.entry point torch.backends")
def test_import_torch_is_enough(python):
    result = python("import torch" + WHOLE_BACKEND)
    assert result.stdout == "torch.float16 True\n", result.stderr


def test_import_torch_does_not_initialize_the_device(python):
    result = python("import torch; print(torch.openreg.is_initialized())")
    assert result.stdout == "False\n", result.stderr


@pytest.mark.parametrize("variables", [{}, OFF], ids=["autoload", "no autoload"])
def test_torch_openreg_brings_everything(python, variables):
    result = python("import torch_openreg, torch" + WHOLE_BACKEND, fresh=True, **variables)
    assert result.stdout == "torch.float16 True\n", result.stderr


PLUGIN = """
import openreg_runtime
openreg_runtime.require_matching_build(__name__)
openreg_runtime.extend("vendor_name", "extended")
"""
# The packages bring the runtime in first, and openreg-runtime's tests have a plug-in before torch, one of their own.
ALIKE = [pytest.param(module, marks=FURTHER) for module in ("openreg_runtime", "vendor_plugin")]
FIRST = ["torch", "openreg_ops", "openreg_amp", *ALIKE]


@pytest.mark.parametrize("first", FIRST)
def test_any_package_may_be_imported_first_and_a_plugin_of_a_third_party_is_loaded_too(python, tmp_path, first):
    (tmp_path / "vendor_plugin.py").write_text(PLUGIN, "utf-8")
    info = tmp_path / "vendor_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-plugin\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[openreg.plugins]\nvendor = vendor_plugin\n", "utf-8")
    result = python(
        f"import {first}\nimport torch{WHOLE_BACKEND}print(torch.openreg.vendor_name)",
        PYTHONPATH=str(tmp_path),
        fresh=first != "torch",
    )
    assert (result.stdout, result.stderr) == ("torch.float16 True\nextended\n", "")


@pytest.mark.parametrize(
    "order",
    [pytest.param(order, marks=() if order in IN_THE_LANE else FURTHER) for order in ORDERS],
    ids=" ".join,
)
def test_without_autoload_any_order_of_imports_works(python, order):
    result = python(f"import {', '.join(order)}" + WHOLE_BACKEND, fresh=order[0] != "torch", **OFF)
    assert result.stdout == "torch.float16 True\n", result.stderr


@pytest.mark.parametrize("package", ["openreg_runtime", "openreg_ops", "openreg_amp"])
def test_a_missing_package_is_named_with_its_command(python, package):
    result = python(
        f"import sys; sys.modules[{package!r}] = None\n"
        "import torch\n"
        "try:\n"
        "    import torch_openreg\n"
        "except ImportError as error:\n"
        "    print(error)\n"
        "print(torch.ones(2).sum().item())",
        **OFF,
    )
    message, usable = result.stdout.splitlines()
    assert f"pip install {package.replace('_', '-')}" in message
    assert usable == "2.0"
