# SPDX-License-Identifier: BSD-3-Clause
"""The report names exactly those lines of a library that use CUDA, whatever the test does on the device."""

import re
import subprocess
import sys

import pytest
from library_runs import PATIENCE, run, says, says_not

from openreg_testing.plugin import cuda_asked

pytest_plugins = ["pytester"]

CALLS, USES, COMPARES = "calls torch.cuda.is_available()", "uses cuda", "compares with cuda"
# Each line that means CUDA ends with what is said of it. Without a GPU, PyTorch raises RuntimeError if it was built for
# CUDA, and AssertionError otherwise.
LIBRARY = f"""
import torch
from torch import nn
from torch.cuda import is_available

AT_IMPORT = "cuda" if torch.cuda.is_available() else "cpu"  # {CALLS}

def gate(x):
    return x.to("cuda" if is_available() else "cpu") * 2  # {CALLS}

def count(x):
    return x.cpu() if torch.cuda.device_count() == 0 else x  # calls torch.cuda.device_count()

def seed(x):
    torch.cuda.manual_seed_all(3)  # calls torch.cuda.manual_seed_all()
    return x

def mixed(x):
    with torch.autocast("cuda"):  # {CALLS}
        return x + 1

def scaled(x):
    return torch.amp.GradScaler("cuda").scale(x)  # {CALLS}

def attempt(x):
    try:
        return x.cuda()  # {USES}
    except (AssertionError, RuntimeError):
        return x

def moved(x):
    try:
        return nn.Linear(2, 2).to("cuda")(x)  # {USES}
    except (AssertionError, RuntimeError):
        return x

def made(x):
    try:
        return torch.zeros(2, device="cuda:1")  # {USES}
    except (AssertionError, RuntimeError):
        return x

def stream(x):
    try:
        return torch.cuda.current_device()  # {USES}
    except (AssertionError, RuntimeError):
        return x

def typed(x):
    return x * 2 if x.device.type == "cuda" else x.cpu()  # {COMPARES}

def listed(x):
    return x if str(x.device) in ("cuda", "cuda:0") else x.cpu()  # {COMPARES}

def flagged(x):
    return x if x.is_cuda else x.cpu()  # {COMPARES}

def begins(x):
    return x if str(x.device).startswith("cuda") else x.cpu()  # {COMPARES}

def same(x):
    return x if x.device == torch.device("cuda") else x.cpu()  # {COMPARES}

def agnostic(x):
    '''Does nothing with "cuda", or with torch.cuda.is_available().'''
    torch.manual_seed(3)
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    with torch.autocast(device.type):
        torch.utils.checkpoint.checkpoint(torch.sin, x.requires_grad_(), use_reentrant=False).sum().backward()
    return torch.random.get_rng_state()
"""
FUNCTIONS = re.findall(r"(?m)^def (\w+)", LIBRARY)
WANTED = {
    f"lib/__init__.py:{number} {text.partition('  # ')[2]}"
    for number, text in enumerate(LIBRARY.splitlines(), 1)
    if "  # " in text
}
TESTS = f"""
import pytest, torch
import torch.utils.checkpoint
import lib

@pytest.mark.skipif(torch.cuda.is_available(), reason="a line of a test")
@pytest.mark.parametrize("name", {FUNCTIONS})
@pytest.mark.filterwarnings("ignore:.*CUDA is not available")
def test_function(name, device):
    x = torch.ones(2, 2, device=device) + 1
    assert not x.is_cuda
    getattr(lib, name)(x)
"""


def write(pytester):
    pytester.mkpydir("lib").joinpath("__init__.py").write_text(LIBRARY)
    pytester.makepyfile(test_lib=TESTS)


def named(result):
    """The lines that the section names, without their tests."""
    section = result.stdout.str().partition("CUDA, which this run does not have")[2].partition("This code runs")[0]
    return {
        line.strip().partition(", in ")[0] for line in section.splitlines()[1:] if " cuda" in line or "torch." in line
    }


@pytest.fixture
def all_are_shown(monkeypatch, pytester):
    """The summary names a few; these tests look at all."""
    code = "import openreg_testing.plugin.summary\nopenreg_testing.plugin.summary._MOST_PLACES = 100\n"
    pytester.makepyfile(all_shown=code)
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    return ["-p", "all_shown"]


@pytest.mark.parametrize("workers", [[], ["-n", "1"], ["--isolate"]], ids=["one process", "xdist", "isolated"])
def test_each_line_of_a_library_is_named_and_no_other(pytester, monkeypatch, all_are_shown, workers):
    write(pytester)
    result = run(pytester, monkeypatch, "--device", "openreg", *all_are_shown, *workers)
    result.assert_outcomes(passed=len(FUNCTIONS))
    assert named(result) == WANTED
    assert len(WANTED) == 15


def test_a_library_that_a_conftest_imports_is_watched_from_the_import_of_torch(pytester, monkeypatch, all_are_shown):
    write(pytester)
    pytester.makeconftest("import sys\nassert 'torch' not in sys.modules\nimport lib\n")
    result = run(pytester, monkeypatch, "--device", "openreg", *all_are_shown, fresh=True)
    result.assert_outcomes(passed=len(FUNCTIONS))
    assert named(result) == WANTED


def test_a_library_outside_of_the_project_is_watched_too(pytester, monkeypatch, all_are_shown):
    outside = pytester.path / "site-packages"
    outside.mkdir()
    (outside / "elsewhere.py").write_text(f"import torch\nHERE = torch.cuda.is_available()  # {CALLS}\n")
    pytester.makepyfile(
        f"import sys\nsys.path.append({str(outside)!r})\nimport elsewhere\n\ndef test_one():\n    pass\n"
    )
    result = run(pytester, monkeypatch, "--device", "openreg", *all_are_shown)
    assert named(result) == {f"site-packages/elsewhere.py:2 {CALLS}"}


def test_the_summary_names_a_few_and_how_many_there_are(pytester, monkeypatch):
    write(pytester)
    result = run(pytester, monkeypatch, "--device", "openreg")
    says(result, "15 lines of code outside tests mean CUDA, which this run does not have:", "and 5 more lines")


def test_the_summary_of_one_line_is_in_the_singular(pytester, monkeypatch):
    pytester.makepyfile(
        lib="import torch\nHERE = torch.cuda.is_available()\n", test_lib="import lib\ndef test_one(): pass"
    )
    result = run(pytester, monkeypatch, "--device", "openreg")
    says(result, "1 line of code outside tests means CUDA, which this run does not have:")


ON_THE_CPU = """
import torch

def shifted(x):
    x = x + 1
    return x.to("cuda" if torch.cuda.is_available() else "cpu")

def counted(x):
    return x if torch.cuda.device_count() == 0 else x * 2
"""
TWO_DEVICES = """
import torch
import lib

def test_two_devices(device):
    x = torch.ones(2, device=device)
    assert (lib.shifted(x) + x).sum() == 6

def test_other_failure(device):
    assert lib.counted(torch.ones(2, device=device)).sum() == 3

def test_other_devices(device):
    torch.ones(2, device=device) + torch.ones(2)
"""


def test_a_failure_with_two_devices_is_connected_with_the_line_for_cuda_that_its_test_reached(pytester, monkeypatch):
    pytester.makepyfile(lib=ON_THE_CPU, test_lib=TWO_DEVICES)
    result = run(pytester, monkeypatch, "--device", "openreg")
    result.assert_outcomes(failed=3)
    says(
        result,
        "  test_lib.py::test_two_devices failed because operands were on two devices: "
        "lib.py:5 may have put one of them on the CPU",
    )
    assert result.stdout.str().count("operands were on two devices") == 1


@pytest.mark.parametrize("options", [("--cuda-as", "openreg"), ("--device", "cpu"), ()])
def test_where_cuda_is_the_device_or_none_is_asked_for_nothing_is_said(pytester, monkeypatch, options):
    pytester.makepyfile(
        lib="import torch\nHERE = torch.cuda.is_available()\n", test_lib="import lib\ndef test_one(): pass"
    )
    says_not(run(pytester, monkeypatch, *options), "CUDA, which this run does not have")


UNDONE = """
import sys
from pathlib import Path
from openreg_testing.plugin.cuda_asked import CudaUses
from openreg_testing.plugin.project_files import ProjectFiles

later = CudaUses(ProjectFiles(Path.cwd(), []))
later.begin()
import torch
assert later._finder not in sys.meta_path
assert torch.cuda.is_available.__wrapped__ is not None
now = CudaUses(ProjectFiles(Path.cwd(), []))
now.begin()
assert torch.cuda.is_available() is False
now.end()
later.end()
assert not [name for name in vars(torch.cuda) if hasattr(getattr(torch.cuda, name), "__wrapped__")
            and getattr(torch.cuda, name).__module__ == "openreg_testing.plugin.cuda_asked"]
assert not hasattr(torch.cuda.is_available, "__wrapped__") and not hasattr(torch.cuda._lazy_init, "__wrapped__")
print("undone")
"""


def test_all_of_it_is_undone():
    done = subprocess.run([sys.executable, "-c", UNDONE], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.stdout.strip().endswith("undone"), done.stderr


@pytest.mark.parametrize("source", [b"\xff\xfe cuda", b"if cuda ==", b"x = '\x00 cuda'", b"(" * 9000 + b'"cuda"'])
def test_a_source_that_cannot_be_read_has_no_lines(tmp_path, source):
    (tmp_path / "odd.py").write_bytes(source)
    assert cuda_asked.compared(tmp_path / "odd.py") == []
    assert cuda_asked.compared(tmp_path / "absent.py") == []
