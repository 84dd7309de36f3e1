# SPDX-License-Identifier: BSD-3-Clause
"""The operators of docs/operators/adding.md work, in the copy of openreg-ops that `nox -s recipe` made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import openreg_ops
from tools.packages import ROOT
from tools.pages.recipe import FOLDER

COPY = Path(os.environ[FOLDER])
sys.path.append(str(ROOT / "packages" / "openreg-ops" / "tests"))

from parity import DEVICE, check, is_busy  # noqa: E402

pytestmark = [pytest.mark.no_fallback, pytest.mark.sound_device]


def unit():
    return torch.linspace(-0.9, 0.9, 12).view(3, 4)


def test_the_copy_is_what_is_tested():
    assert Path(openreg_ops.__file__).is_relative_to(COPY / "site")


def test_elementwise():
    check(torch.erfinv, unit().requires_grad_())
    check(torch.erfinv, unit().t())
    check(lambda x: torch.erfinv(x, out=torch.empty_like(x)), unit())
    check(lambda x: x.clone().erfinv_(), unit())
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        torch.erfinv(torch.ones(2, dtype=torch.complex64, device=DEVICE))


def test_two_outputs():
    check(torch.frexp, unit())
    check(lambda x: torch.frexp(x)[0], unit().requires_grad_())
    check(lambda x: torch.frexp(x, out=(torch.empty_like(x), torch.empty_like(x, dtype=torch.int32))), unit())
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        torch.frexp(torch.ones(2, dtype=torch.int64, device=DEVICE))


def test_random():
    def draw():
        return torch.empty(10_000, device=DEVICE).cauchy_(1, 2).cpu()

    torch.manual_seed(3)
    first, second = draw(), draw()
    torch.manual_seed(3)
    assert draw().equal(first)
    assert not first.equal(second)
    quartiles = torch.quantile(first, torch.tensor([0.25, 0.5, 0.75]))
    torch.testing.assert_close(quartiles, torch.tensor([-1.0, 1, 3]), atol=0.2, rtol=0)


def cpu_softcap(x):
    return 2 * torch.tanh(x / 2)


def softcap(x):
    return torch.ops.openreg.softcap(x, 2.0)


def test_custom():
    x = torch.linspace(-9, 9, 12).view(3, 4)
    ours, theirs = x.to(DEVICE).requires_grad_(), x.clone().requires_grad_()
    result, expected = softcap(ours), cpu_softcap(theirs)
    torch.testing.assert_close(result.cpu(), expected)
    result.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(ours.grad.cpu(), theirs.grad)
    double = x.double().div(4).to(DEVICE).requires_grad_()
    assert torch.autograd.gradcheck(softcap, double)
    assert torch.autograd.gradgradcheck(softcap, double)
    assert softcap(torch.empty(2, 3, device="meta")).shape == (2, 3)
    with pytest.raises(RuntimeError, match="openreg::softcap: expected a cap above 0"):
        torch.ops.openreg.softcap(ours, 0.0)


def test_python():
    operator = torch.ops.openreg.squared_relu
    x = unit().double().to(DEVICE).requires_grad_()
    torch.testing.assert_close(operator(x).cpu(), unit().double().relu().square())
    assert torch.autograd.gradcheck(operator, x)


@pytest.mark.parametrize("module", ["torch", "openreg_ops"])
def test_all_exist_after_an_import(module):
    """Of torch alone, by openreg-autoload."""
    code = (
        f"import {module}, torch\n"
        "x = torch.full((2,), 0.5, device='openreg')\n"
        "print(torch.ops.openreg.squared_relu(x).tolist(), torch.ops.openreg.softcap(x, 1.0).shape)\n"
        "x.erfinv_(), x.frexp(), x.cauchy_()\n"
        "print(torch.openreg.fallback_stats())"
    )
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": str(int(module == "torch"))}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[0.25, 0.25] torch.Size([2])\n{}\n", "")


CALLS = {
    "erfinv": torch.erfinv,
    "erfinv.out": lambda x: torch.erfinv(x, out=torch.empty_like(x)),
    "erfinv_": lambda x: x.erfinv_(),
    "frexp": torch.frexp,
    "cauchy_": lambda x: x.cauchy_(),
    "softcap": softcap,
    "squared_relu": lambda x: torch.ops.openreg.squared_relu(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_launch_returns_before_its_kernel_ran(name, gate):
    x = unit().to(DEVICE)
    CALLS[name](x)
    torch.openreg.synchronize()
    gate.close()
    CALLS[name](x)
    assert is_busy()
    gate.open()


def test_the_tests_of_the_package_find_them():
    tests = COPY / "openreg-ops" / "tests"
    files = ("arithmetic", "custom", "operand_dtypes", "overlap", "random", "structured")
    names = ("erfinv", "frexp", "cauchy", "softcap", "squared_relu")
    chosen = " or ".join([*names, "samples_agree"])
    chosen_files = [str(path) for name in files for path in tests.glob(f"*/test_{name}.py")]
    settings = ("-v", "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", "-k", chosen)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *settings, *chosen_files],
        cwd=tests,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    passed = [line for line in done.stdout.splitlines() if "PASSED" in line]
    assert [name for name in names if sum(name in line for line in passed) < 4] == []
