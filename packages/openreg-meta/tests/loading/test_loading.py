# SPDX-License-Identifier: BSD-3-Clause
"""The backend can be loaded repeatedly, in threads and in other processes. Packages that do not fit are refused."""

import json
import os
import shutil
from importlib import metadata
from pathlib import Path

import pytest
import torch

import openreg_runtime

OFF = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
FURTHER = pytest.mark.endurance  # further forms of what the default session runs, each in a process of its own
SWITCH = pytest.mark.parametrize("variables", [{}, OFF], ids=["autoload", "no autoload"])

USE = "\nprint((torch.ones(2, device='openreg') * 2).sum().item(), torch.openreg.fallback_stats() is not None)\n"
USED = "4.0 True\n"


@pytest.mark.parametrize(
    ("code", "variables"),
    [
        ("import torch_openreg, torch, torch_openreg", {}),
        ("import torch_openreg, torch, torch_openreg", OFF),
        ("import importlib, torch, torch_openreg; importlib.reload(torch_openreg)", {}),
        ("import sys, torch, torch_openreg; del sys.modules['torch_openreg']; import torch_openreg", OFF),
        ("import importlib, torch, openreg_autoload as a; importlib.reload(a).autoload()", {}),
    ],
    ids=["twice", "twice without autoload", "reloaded", "forgotten", "autoload reloaded"],
)
def test_loading_again_does_no_harm(python, code, variables):
    result = python(code + USE, **variables)
    assert (result.stdout, result.stderr) == (USED, "")


THREADS = """
import sys, threading, time
errors, barrier = [], threading.Barrier(2)
def load(statement, begun):
    barrier.wait()
    while begun and begun not in sys.modules:
        time.sleep(0.001)
    try:
        exec(statement)
    except BaseException as error:
        errors.append(error)
first, second, begun = sys.argv[1:]
threads = [threading.Thread(target=load, args=(first, "")), threading.Thread(target=load, args=(second, begun))]
for thread in threads: thread.start()
for thread in threads: thread.join()
for error in errors: raise error
import torch
"""


@pytest.mark.parametrize(
    ("second", "begun"),
    [
        pytest.param("import torch", "", marks=FURTHER),  # openreg-runtime's tests have it with plug-ins of their own
        ("import torch_openreg", ""),
        ("import openreg_ops", "torch"),
    ],
)
def test_two_threads_may_load_at_once(python, second, begun):
    """The second begins with the first, or when that has begun with a module."""
    arguments = f"import sys; sys.argv[1:] = ['import torch', {second!r}, {begun!r}]\n"
    result = python(arguments + THREADS + USE, fresh=True)
    assert (result.stdout, result.stderr) == (USED, "")


SPAWNED = """
import multiprocessing

def work(queue):
    import torch
    queue.put((torch.ones(2, device="openreg") * 2).tolist())

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    print(queue.get(timeout=240))
    child.join()
"""


@FURTHER  # in the default session test_sharing.py has a spawned process that computes
def test_a_spawned_process_loads_its_own(python, tmp_path):
    (tmp_path / "spawned.py").write_text(SPAWNED, "utf-8")
    result = python("import runpy; runpy.run_path('spawned.py', run_name='__main__')")
    assert (result.stdout, result.stderr) == ("[2.0, 2.0]\n", "")


def test_without_autoload_torch_has_no_device_and_loading_adds_no_module_of_others(python):
    result = python(
        "import sys, torch; before = set(sys.modules)\n"
        "print(hasattr(torch, 'openreg'))\n"
        "import openreg_autoload; openreg_autoload.autoload()\n"
        "print(sorted(name for name in set(sys.modules) - before if 'openreg' not in name))",
        fresh=True,
        **OFF,
    )
    assert result.stdout == "False\n[]\n", result.stderr


NATIVE = [plugin.module for plugin in openreg_runtime.installed_plugins() if plugin.abi_version is not None]


def other_build(folder, module, **changes):
    """A copy of an installed package in the folder, with another record of what it was compiled for."""
    (spec,) = (item for item in openreg_runtime.installed_plugins() if item.module == module)
    package = folder / module
    for place in __import__(module).__path__:
        shutil.copytree(place, package, dirs_exist_ok=True)
    record = {"abi_version": spec.abi_version, "torch_version": spec.torch_version, **changes}
    (package / "_build.json").write_text(json.dumps(record), "utf-8")
    return spec


def test_every_native_package_says_what_it_was_compiled_for():
    assert {"openreg_runtime", "openreg_ops", "openreg_amp"} <= set(NATIVE)
    assert [plugin for plugin in openreg_runtime.installed_plugins() if plugin.problem is not None] == []


@SWITCH
@pytest.mark.parametrize("module", ["openreg_ops", pytest.param("openreg_amp", marks=FURTHER)])
def test_a_package_of_another_abi_is_refused_before_its_native_parts(python, tmp_path, module, variables):
    spec = other_build(tmp_path, module, abi_version=99)
    result = python(
        f"import torch, sys\ntry:\n    import {module}\nexcept ImportError as error:\n    print(error)\n"
        f"print([name for name in sys.modules if name.startswith('{module}.')])",
        PYTHONPATH=str(tmp_path),
        **variables,
    )
    text = result.stdout if variables else result.stderr
    for part in (
        f"{spec.distribution} was compiled for ABI 99 of openreg-runtime",
        f"the installed openreg-runtime has ABI {openreg_runtime._C._abi_version}.",
        f"pip install --upgrade openreg-runtime {spec.distribution}",
    ):
        assert part in text, result
    if variables:
        assert result.stdout.splitlines()[-1] == "[]"
    else:
        assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in text


@pytest.fixture(scope="module")
def forced(tmp_path_factory):
    """All native packages, installed by force beside a torch that they were not compiled for."""
    folder = tmp_path_factory.mktemp("forced")
    for module in NATIVE:
        other_build(folder, module, torch_version="2.12.1+cpu")
    return folder


WAYS_IN = (
    "torch_openreg",
    "torch_openreg.openreg",
    "torch_openreg._C",
    "openreg_runtime.openreg",
    "openreg_runtime._C",
)
WAYS_IN += ("openreg_runtime", "openreg_ops", "openreg_ops._C", "openreg_ops._minimal", "openreg_amp", "openreg_amp._C")


@pytest.mark.parametrize("module", WAYS_IN)
def test_every_way_in_ends_with_both_versions_and_the_command(python, forced, module):
    again = f"try:\n    import {module}\nexcept ImportError as error:\n    print(error)\n"
    result = python(
        f"{again}{again}import sys, torch\n"
        "print([name for name in sys.modules if name.startswith('openreg_') and name.endswith(('._C', '._minimal'))])\n"
        "print((torch.ones(2) + 1).tolist(), torch._C._get_privateuse1_backend_name())",
        PYTHONPATH=str(forced),
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    first, second, loaded, works = result.stdout.splitlines()
    assert first == second
    for part in (
        "openreg-runtime works with torch 2.12.*, for which it was compiled",
        f"but torch {torch.__version__} is installed",
        "pip install 'torch==2.12.*'",
    ):
        assert part in first
    assert (loaded, works) == ("[]", "[2.0, 2.0] privateuseone")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "first",
    ["torch", "torch_openreg", pytest.param("openreg_autoload, torch", marks=FURTHER)],  # openreg-autoload's tests
)
def test_a_forced_install_ends_the_import_of_torch_with_the_switch(python, forced, first):
    result = python(f"import {first}", PYTHONPATH=str(forced), fresh=first != "torch")
    assert result.returncode == 1
    for part in ("openreg-runtime works with torch 2.12.*", f"torch {torch.__version__} is installed", "pip install"):
        assert part in result.stderr
    if first != "torch_openreg":
        assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in result.stderr


@pytest.mark.parametrize("module", NATIVE)
def test_a_package_for_another_torch_is_refused(python, tmp_path, module):
    spec = other_build(tmp_path, module, torch_version="2.12.1+cpu")
    result = python("import torch", PYTHONPATH=str(tmp_path))
    assert result.returncode == 1
    assert f"{spec.distribution} works with torch 2.12.*" in result.stderr
    assert f"but torch {metadata.version('torch').split('+')[0]}" in result.stderr
    # Another torch would not fit the runtime, unless it is the runtime that wants one.
    way_out = "'torch==2.12.*'" if module == "openreg_runtime" else f"--upgrade {spec.distribution}"
    assert f"pip install {way_out}" in result.stderr


# The first three are read at the import, the others on first use, where the tests of openreg-runtime have all of them.
@pytest.mark.parametrize(
    "name", ["OPENREG_FALLBACK", "OPENREG_KERNELS", "OPENREG_OPS", "OPENREG_DEVICE_COUNT", "OPENREG_POISON"]
)
def test_a_refused_setting_is_named_with_what_is_accepted(python, name):
    result = python("import torch; torch.ones(2, device='openreg')", **{name: "nonsense"})
    assert result.returncode == 1
    assert f"{name}='nonsense' is not accepted; give " in result.stderr
    assert "install" not in result.stderr.replace(str(Path(os.__file__).parent), "")


def test_a_refused_setting_can_be_put_aside_to_import_torch(python):
    result = python("import torch; print(torch.ones(2).sum().item())", OPENREG_FALLBACK="nonsense", **OFF)
    assert result.stdout == "2.0\n", result.stderr
