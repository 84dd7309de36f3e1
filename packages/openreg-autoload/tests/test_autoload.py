# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` does in a fresh process. Which plug-ins that loads, and how, is tested with openreg-runtime."""

from importlib.metadata import entry_points

import pytest

SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD=0"
REINSTALL = "Reinstall it: pip install --force-reinstall --no-deps openreg-runtime"


def test_torch_finds_the_function():
    (point,) = (item for item in entry_points(group="torch.backends") if item.name == "openreg")
    assert callable(point.load())


def test_importing_the_package_does_not_import_torch(site):
    result = site.python("import sys, openreg_autoload; print('torch' in sys.modules)")
    assert result.stdout == "False\n", result.stderr


@pytest.mark.parametrize("first", ["torch", "openreg_autoload"])
def test_the_runtime_is_loaded_and_then_asked_for_the_plugins(site, first):
    site.runtime()
    result = site.python(f"import {first}, torch")
    assert (result.stdout, result.stderr) == ("loaded openreg_runtime\nload_plugins True\n", "")


def test_a_runtime_that_imports_torch_is_asked_while_it_is_incomplete(site):
    site.runtime()
    result = site.python("import openreg_runtime, torch")
    assert (result.stdout, result.stderr) == ("load_plugins False\nloaded openreg_runtime\n", "")


def test_a_thread_may_import_torch(site):
    site.runtime()
    code = "import threading; t = threading.Thread(target=__import__, args=['torch']); t.start(); t.join()"
    assert site.python(code).stdout == "loaded openreg_runtime\nload_plugins True\n"


def test_switched_off_it_loads_nothing(site):
    site.runtime()
    result = site.python("import torch, sys; print('openreg_autoload' in sys.modules)", autoload=False)
    assert result.stdout == "False\n", result.stderr
    result = site.python("import openreg_runtime; import torch", autoload=False)
    assert result.stdout == "loaded openreg_runtime\n", result.stderr


def test_reloading_the_package_loads_the_runtime_once(site):
    site.runtime()
    result = site.python("import importlib, torch, openreg_autoload as a; importlib.reload(a).autoload()")
    assert result.stdout == "loaded openreg_runtime\nload_plugins True\nload_plugins True\n", result.stderr


def test_without_the_runtime_torch_works_and_a_warning_names_the_command(site):
    hide = "import sys; sys.modules['openreg_runtime'] = None\n"
    result = site.python(hide + "import torch; print(torch.ones(2).sum().item())")
    assert result.stdout == "2.0\n", result.stderr
    for part in ("RuntimeWarning", "openreg-runtime", "pip install", "pip uninstall"):
        assert part in result.stderr


# Code of a runtime -> what is said of it.
BROKEN = {
    "raise ImportError('works with torch 9.9.* only')": "failed to load: ImportError: works with torch 9.9.* only\n",
    "import vendor_gone": f"ModuleNotFoundError: No module named 'vendor_gone'. {REINSTALL}; or go on without",
    "raise OSError('libopenreg is gone')": f"failed to load: OSError: libopenreg is gone. {REINSTALL}",
    "import sys; sys.exit(0)": f"failed to load: SystemExit: 0. {REINSTALL}",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_runtime_that_does_not_load_is_named_with_its_cause_the_way_out_and_the_switch(site, code):
    site.runtime(code)
    result = site.python("import torch")
    assert result.returncode == 1
    assert "ImportError: openreg-runtime failed to load: " in result.stderr
    assert BROKEN[code] in result.stderr
    assert SWITCH in result.stderr


def test_the_error_about_a_plugin_is_shown_as_it_is_with_the_switch_which_helps(site):
    site.runtime("def load_plugins(): raise ImportError('the plug-in vendor_plugin is broken')")
    result = site.python("import torch")
    assert result.returncode == 1
    assert "\nImportError: the plug-in vendor_plugin is broken\n" in result.stderr
    assert SWITCH in result.stderr
    result = site.python("import torch; print(torch.ones(2).sum().item())", autoload=False)
    assert result.stdout == "2.0\n", result.stderr
