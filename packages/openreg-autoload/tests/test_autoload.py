# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` does in a fresh process."""

from importlib.metadata import entry_points

import pytest
from conftest import PLUGIN

ALL = ["openreg_runtime", "openreg_amp", "openreg_ops"]


def loaded(result):
    """The packages that a process loaded, in order."""
    assert result.returncode == 0, result.stderr
    return [line.split()[1] for line in result.stdout.splitlines() if line.startswith("loaded ")]


def test_torch_finds_the_function():
    (point,) = (item for item in entry_points(group="torch.backends") if item.name == "openreg")
    assert callable(point.load())


def test_importing_the_package_does_not_import_torch(site):
    result = site.python("import sys, openreg_autoload; print('torch' in sys.modules)")
    assert result.stdout == "False\n", result.stderr


def test_every_plugin_is_loaded_once(site):
    site.runtime()
    site.plugin("openreg-ops")
    site.plugin("openreg-amp")
    result = site.python("import torch, openreg_ops, openreg_amp; torch._import_device_backends()")
    assert loaded(result) == ALL
    assert result.stderr == ""


def test_a_plugin_comes_after_what_it_requires(site):
    site.runtime()
    site.plugin("openreg-ops")
    site.plugin("openreg-amp", requires=["openreg-runtime", "Openreg.Z_Late>=1"])
    site.plugin("openreg-z-late", requires=["numpy", "openreg_ops ; python_version > '3'"])
    order = ["openreg_runtime", "openreg_ops", "openreg_z_late", "openreg_amp"]
    assert loaded(site.python("import torch")) == order


def test_plugins_that_require_each_other_are_loaded(site):
    site.runtime()
    site.plugin("openreg-ops", requires=["openreg-amp"])
    site.plugin("openreg-amp", requires=["openreg-ops"])
    assert sorted(loaded(site.python("import torch"))) == sorted(ALL)


def test_one_distribution_may_announce_several_plugins(site):
    site.runtime()
    site.module("openreg_more", 'print("loaded openreg_more")')
    site.plugin("openreg-ops")
    site.distribution("openreg-ops", {"one": "openreg_ops", "two": "openreg_more"})
    assert loaded(site.python("import torch")) == ["openreg_runtime", "openreg_ops", "openreg_more"]


@pytest.mark.parametrize("first", [*ALL, "openreg_autoload"])
def test_a_package_may_be_imported_before_torch(site, first):
    site.runtime()
    site.plugin("openreg-ops")
    site.plugin("openreg-amp")
    result = site.python(f"import {first}; import torch")
    assert sorted(loaded(result)) == sorted(ALL)
    assert result.stderr == ""


def test_a_plugin_that_needs_an_unfinished_one_is_left_out_with_a_warning(site):
    site.runtime()
    site.plugin("openreg-ops", PLUGIN + "complete = True")
    site.plugin("openreg-amp", "from openreg_ops import complete\n" + PLUGIN, requires=["openreg-ops"])
    site.plugin("openreg-modest", "import openreg_ops\n" + PLUGIN, requires=["openreg-ops"])
    site.plugin("openreg-other", requires=["openreg-runtime"])
    result = site.python("import openreg_ops, torch, openreg_amp")
    order = ["openreg_runtime", "openreg_modest", "openreg_other", "openreg_ops", "openreg_amp"]
    assert loaded(result) == order
    assert result.stderr.count("RuntimeWarning") == 1
    for part in ("plug-in 'openreg_amp'", "It needs openreg-ops", "import torch first, or openreg_amp afterwards"):
        assert part in result.stderr


def test_switched_off_it_loads_nothing(site):
    site.runtime()
    site.plugin("openreg-ops")
    result = site.python("import torch, sys; print('openreg_autoload' in sys.modules)", autoload=False)
    assert result.stdout == "False\n", result.stderr
    result = site.python("import openreg_runtime; import torch", autoload=False)
    assert loaded(result) == ["openreg_runtime"]


THREADS = """
import sys, threading
start = threading.Barrier(2)
errors = []
def run(statement):
    start.wait()
    try:
        exec(statement)
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=run, args=(line,)) for line in sys.argv[1:]]
for thread in threads: thread.start()
for thread in threads: thread.join()
import torch, openreg_runtime, openreg_ops, openreg_amp
if errors: raise errors[0]
"""


@pytest.mark.parametrize("other", ["torch", "openreg_runtime", "openreg_ops"])
def test_two_threads_may_import_at_once(site, other):
    site.runtime()
    site.plugin("openreg-ops", PLUGIN.replace("import openreg_runtime", "import openreg_runtime, torch"))
    site.plugin("openreg-amp")
    site.module("begin", THREADS)
    result = site.python(f"import sys; sys.argv[1:] = ['import torch', 'import {other}']\nimport begin")
    assert sorted(loaded(result)) == sorted(ALL)
    assert result.stderr == ""


def test_a_thread_may_import_torch(site):
    site.runtime()
    site.plugin("openreg-ops")
    code = "import threading; t = threading.Thread(target=__import__, args=['torch']); t.start(); t.join()"
    assert loaded(site.python(code)) == ["openreg_runtime", "openreg_ops"]


def test_reloading_the_package_loads_nothing_again(site):
    site.runtime()
    site.plugin("openreg-ops")
    code = "import importlib, torch, openreg_autoload as a; importlib.reload(a).autoload()"
    assert loaded(site.python(code)) == ["openreg_runtime", "openreg_ops"]


def test_without_the_runtime_torch_works_and_a_warning_names_the_command(site):
    hide = "import sys; sys.modules['openreg_runtime'] = None\n"
    result = site.python(hide + "import torch; print(torch.ones(2).sum().item())")
    assert result.stdout == "2.0\n", result.stderr
    for part in ("RuntimeWarning", "openreg-runtime", "pip install", "pip uninstall"):
        assert part in result.stderr
