# SPDX-License-Identifier: BSD-3-Clause
"""Every way of bringing the backend up."""

import itertools

import pytest

OFF = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
ORDERS = list(itertools.permutations(["openreg_amp", "openreg_ops", "torch"]))
FURTHER = pytest.mark.endurance  # further forms of what the lane has, each in a process of its own

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
    result = python(USAGE)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "tensor([[3., 4.],",
        "        [5., 6.]], device='openreg:0') openreg:0",
        "tensor([[3., 4.],",
        "        [5., 6.]])",
    ]
    assert result.stderr == ""


def test_import_torch_is_enough(python):
    result = python("import torch" + WHOLE_BACKEND)
    assert result.stdout == "torch.float16 True\n", result.stderr


def test_import_torch_does_not_initialise_the_device(python):
    result = python("import torch; print(torch.openreg.is_initialized())")
    assert result.stdout == "False\n", result.stderr


def test_without_autoload_torch_has_no_device(python):
    result = python("import torch; print(hasattr(torch, 'openreg'))", **OFF)
    assert result.stdout == "False\n", result.stderr


@pytest.mark.parametrize("variables", [{}, OFF], ids=["autoload", "no autoload"])
def test_torch_openreg_brings_everything(python, variables):
    result = python("import torch_openreg, torch" + WHOLE_BACKEND, **variables)
    assert result.stdout == "torch.float16 True\n", result.stderr


@pytest.mark.parametrize("first", ["openreg_runtime", "openreg_ops", "openreg_amp"])
def test_any_package_may_be_imported_before_torch(python, first):
    result = python(f"import {first}\nimport torch" + WHOLE_BACKEND)
    assert result.stdout == "torch.float16 True\n", result.stderr
    assert result.stderr == ""


@pytest.mark.parametrize(
    "order",
    [pytest.param(order, marks=() if order[-1] == "torch" else FURTHER) for order in ORDERS],
    ids=" ".join,
)
def test_without_autoload_any_order_of_imports_works(python, order):
    result = python(f"import {', '.join(order)}" + WHOLE_BACKEND, **OFF)
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
