# SPDX-License-Identifier: BSD-3-Clause
"""With --cuda-as, a suite that names cuda runs on openreg, and no change remains afterwards."""

import re
from importlib.util import find_spec
from pathlib import Path

import _pythons
import pytest
from library_runs import PATIENCE, refused, run, says, says_not

pytest_plugins = ["pytester"]

SUITE = Path(__file__).with_name("cuda_suite.py")


def test_a_suite_that_says_cuda_runs(pytester, monkeypatch):
    result = run(pytester, monkeypatch, "--cuda-as", "openreg", str(SUITE), "--rootdir", str(pytester.path))
    outcomes = result.parseoutcomes()
    assert set(outcomes) <= {"passed", "warning", "warnings"}, result.stdout.str()
    says(result, "device: openreg, which tests see as cuda (--cuda-as)", "= device openreg =")


def test_without_the_option_it_has_no_device(pytester, monkeypatch):
    result = run(pytester, monkeypatch, str(SUITE), "--rootdir", str(pytester.path), CUDA_VISIBLE_DEVICES="")
    assert "passed" not in result.parseoutcomes()
    says(result, "needs cuda")


# Calls that fail behind a translation, each on a line of its own.
FAILING = """
import torch

def factory(x): return torch.ones(-1, device="cuda")
def operator(x): return x @ torch.ones(7, 7, device="cuda")
def function(x): return torch.cat([x, torch.ones(2, 7, device="cuda")])
def method(x): return x.to("cuda:99")
def inplace(x): return x.add_(torch.ones(7, device="cuda"))
def property(x): return x.requires_grad_().data_ptr(3)
def moved(x): return x.cuda("somewhere")
def typed(x): return x.type("torch.cuda.NoTensor")
def generator(x): return torch.Generator("cuda:99")
def stream(x): return torch.Stream("cuda:99")
def backward(x): return x.requires_grad_().backward()
def load(x): return torch.load("no such file")
def device(x): return torch.device("cuda:x")
def accelerator(x): return torch.accelerator.set_device_index("no such device")
def autocast(x): return torch.set_autocast_dtype("cuda", 3)
"""


def test_a_failure_is_shown_on_the_line_of_the_library(pytester, monkeypatch):
    names = re.findall(r"def (\w+)", FAILING)
    pytester.mkpydir("lib").joinpath("failing.py").write_text(FAILING)
    pytester.makepyfile(
        f"""
        import pytest, torch
        from lib import failing

        @pytest.mark.parametrize("name", {names})
        def test_call(name):
            getattr(failing, name)(torch.ones(2, 2, device="cuda"))
        """
    )
    result = run(pytester, monkeypatch, "--cuda-as", "openreg", "--tb=line")
    result.assert_outcomes(failed=len(names))
    shown = re.findall(r"(?m)^(/.+?\.py|[A-Z]:.+?\.py):(\d+): ", result.stdout.str())
    assert len(shown) == len(names)
    assert [place for place in shown if "openreg_testing" in place[0]] == []
    of_library = {int(line) for file, line in shown if Path(file).name == "failing.py"}
    of_python = {"load", "backward", "accelerator"}  # PyTorch's own Python raises these
    lines = {number: text for number, text in enumerate(FAILING.splitlines(), 1) if text.startswith("def ")}
    assert {text.split()[1].partition("(")[0] for n, text in lines.items() if n not in of_library} <= of_python


def test_libraries_get_the_name_cuda_where_that_is_the_name(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import importlib, os
        import torch

        def test_told(device):
            assert os.environ["TORCH_DEVICE"] == "cuda:1"
            importlib.import_module(os.environ["TORCH_BACKEND"])
            assert "TRANSFORMERS_TEST_DEVICE_SPEC" not in os.environ
            assert torch.ones(2, device=os.environ["TORCH_DEVICE"]).device == device == torch.device("cuda", 1)
        """
    )
    result = run(pytester, monkeypatch, "--device", "openreg:1", "--cuda-as", "openreg")
    result.assert_outcomes(passed=1)


def test_checks_see_the_device_behind_the_name(pytester, monkeypatch):
    pytester.makepyfile(
        test_x="""
        import torch
        KEPT = []

        def test_leak():
            KEPT.append(torch.ones(1000, device="cuda"))

        def test_too_much():
            torch.ones(2**20, device="cuda")

        def test_fallback():
            with torch.openreg.fallback_operators("aten::flip"):
                torch.ones(2, device="cuda").flip(0)

        def test_never():
            torch.ones(2)
        """
    )
    options = ["--check-leaks", "--memory-limit", "1MiB", "--no-fallback"]
    result = run(pytester, monkeypatch, "--cuda-as", "openreg", *options)
    result.assert_outcomes(passed=2, failed=2, errors=1)
    says(result, "in test_x.KEPT", "FAILED test_x.py::test_too_much", "FAILED test_x.py::test_fallback")
    says(result, "  test_x.py::test_never")


def test_xdist_workers_say_cuda_too(pytester, monkeypatch):
    pytester.makepyfile("import torch\ndef test_cuda():\n    assert torch.ones(2).cuda().is_cuda")
    result = run(pytester, monkeypatch, "--cuda-as", "openreg", "-n", "1")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("options", [("--cuda-as", "openreg"), ("--device", "openreg", "--cuda-as", "openreg")])
def test_a_process_that_runs_pytest_says_cuda_too(pytester, monkeypatch, options):
    pytester.makepyfile(
        test_inner="import torch\ndef test_cuda():\n    assert torch.ones(2).cuda().is_cuda",
        test_outer="""
        import subprocess, sys

        def test_started():
            subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_inner.py"], check=True)
        """,
    )
    # A fork of the outer process would have what that has made of cuda.
    run(pytester, monkeypatch, *options, "test_outer.py", fresh=True).assert_outcomes(passed=1)


def test_a_name_that_is_inherited_is_refused_as_such(pytester, monkeypatch):
    pytester.makepyfile("def test_nothing():\n    pass")
    refused(run(pytester, monkeypatch, OPENREG_TEST_CUDA_AS="nppu"), "$OPENREG_TEST_CUDA_AS nppu: 'nppu' is no device")


@pytest.mark.skipif(find_spec("openreg_compile") is not None, reason="openreg-compile generates it")
def test_compiling_raises_an_error_with_the_package_that_generates_code(pytester, monkeypatch):
    pytester.makepyfile(
        """
        import pytest, torch

        def test_inductor():
            with pytest.raises(Exception, match="code for openreg devices.* the package openreg-compile"):
                torch.compile(torch.sin)(torch.ones(3, device="cuda"))

        def test_without_generated_code():
            compiled, x = torch.compile(torch.sin, backend="aot_eager"), torch.ones(3, device="cuda")
            torch.testing.assert_close(compiled(x), x.sin())
        """
    )
    run(pytester, monkeypatch, "--cuda-as", "openreg").assert_outcomes(passed=2)


def test_a_machine_with_cuda_is_refused(pytester, monkeypatch):
    pytester.makepyfile(looks_like_cuda="import torch\ntorch.cuda.is_available = lambda: True", test_x="")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    result = run(pytester, monkeypatch, "-p", "looks_like_cuda", "--cuda-as", "openreg")
    refused(result, "this machine has a CUDA device", "CUDA_VISIBLE_DEVICES=")


UNDONE = """
import threading
import torch
from openreg_testing.plugin import cuda_names
from torch.amp import autocast_mode
from torch.utils import _device

OWNERS = [
    torch, torch.cuda, torch.cuda.memory, torch.cuda.random, torch.cuda.streams, torch.cuda.nvtx, torch.accelerator,
    torch.amp, torch.autograd, torch.autograd.graph, torch.autograd.graph.saved_tensors_hooks, torch.serialization,
    torch.storage._StorageBase, torch.storage.TypedStorage, torch.backends.cudnn, threading.Thread,
    autocast_mode, autocast_mode.autocast, _device.DeviceContext,
]
torch.cuda.FloatTensor, torch.openreg.FloatTensor  # made when they are asked for
before = [dict(vars(owner)) for owner in OWNERS]
end = cuda_names.activate("openreg", "--cuda-as")
assert torch.ones(1, device="cuda").is_cuda
assert any(dict(vars(owner)) != known for owner, known in zip(OWNERS, before))
end()
for owner, known in zip(OWNERS, before):
    now = dict(vars(owner))
    changed = [name for name in known if now.get(name) is not known[name] and name != "_initialized"]
    assert not changed, (owner, changed)
assert torch._C._len_torch_function_stack() == 0
assert not torch.cuda.is_available()
assert torch.ones(1, device="openreg").device.type == "openreg"
try:
    torch.ones(1, device="cuda")
except (AssertionError, RuntimeError):
    print("undone")
"""


def test_all_of_it_is_undone():
    done = _pythons.run("-c", UNDONE, env=_pythons.environment(), folder=Path.cwd(), timeout=PATIENCE)
    assert done.stdout.strip().endswith("undone"), done.stderr


def test_the_device_is_not_known_as_cuda_without_the_option(pytester, monkeypatch):
    pytester.makepyfile("def test_name(device):\n    assert device.type == 'openreg'")
    result = run(pytester, monkeypatch, "--device", "openreg")
    result.assert_outcomes(passed=1)
    says_not(result, "--cuda-as")
