# SPDX-License-Identifier: BSD-3-Clause
"""`import torch` loads the runtime, or warns why not. Which plug-ins are loaded is tested in openreg-runtime.

Each fresh process imports torch, which takes seconds, so what the function says is tested without one.
"""

import sys
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


def test_the_runtime_is_loaded_and_then_asked_for_the_plugins(site):
    site.runtime()
    result = site.python("import openreg_autoload, torch")
    assert (result.stdout, result.stderr) == ("loaded openreg_runtime\nload_plugins True\n", "")


def test_a_runtime_that_imports_torch_is_asked_while_it_is_incomplete(site):
    site.runtime()
    result = site.python("import openreg_runtime, torch")
    assert (result.stdout, result.stderr) == ("load_plugins False\nloaded openreg_runtime\n", "")


def test_a_thread_may_import_torch_and_reloading_the_package_loads_the_runtime_once(site):
    site.runtime()
    result = site.python(
        "import threading; t = threading.Thread(target=__import__, args=['torch']); t.start(); t.join()\n"
        "print('imported')\n"
        "import importlib, openreg_autoload as a; importlib.reload(a).autoload()"
    )
    assert result.stdout == "loaded openreg_runtime\nload_plugins True\nimported\nload_plugins True\n", result.stderr


PLUGIN_IS_BROKEN = """
def load_plugins():
    raise ImportError("the plug-in vendor_plugin is broken")
import torch
print("loaded openreg_runtime")
"""


def test_switched_off_it_loads_nothing_and_torch_works(site):
    site.runtime(PLUGIN_IS_BROKEN)
    result = site.python(
        "import torch, sys\n"
        "print('openreg_autoload' in sys.modules, 'openreg_runtime' in sys.modules, torch.ones(2).sum().item())\n"
        "import openreg_runtime",
        autoload=False,
    )
    assert result.stdout == "False False 2.0\nloaded openreg_runtime\n", result.stderr


def test_without_the_runtime_torch_works_and_a_warning_names_the_command(site):
    hide = "import sys; sys.modules['openreg_runtime'] = None\n"
    result = site.python(hide + "import torch; print(torch.ones(2).sum().item())")
    assert result.stdout == "2.0\n", result.stderr
    for part in ("RuntimeWarning", "openreg-runtime", "pip install", "pip uninstall"):
        assert part in result.stderr


# Code of a runtime -> what is said of it.
BROKEN = {
    "raise ImportError('works with torch 9.9.* only')": "ImportError: works with torch 9.9.* only",
    "import vendor_gone": f"ModuleNotFoundError: No module named 'vendor_gone'. {REINSTALL}",
    "raise OSError('libopenreg is gone')": f"OSError: libopenreg is gone. {REINSTALL}",
    "import sys; sys.exit(0)": f"SystemExit: 0. {REINSTALL}",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_runtime_that_does_not_load_is_named_with_its_cause_and_the_way_out(site, autoload, code):
    site.runtime(code)
    with pytest.raises(ImportError) as error:
        autoload()
    message, *way_out = str(error.value).split("; or go on without the device: ")
    assert message == f"openreg-runtime failed to load: {BROKEN[code]}"
    assert way_out == (["pip uninstall openreg-autoload"] if REINSTALL in message else [])
    assert type(error.value.__cause__).__name__ == BROKEN[code].partition(":")[0]


def test_the_error_about_a_plugin_is_shown_as_it_is(site, autoload):
    site.runtime("def load_plugins(): raise ImportError('the plug-in vendor_plugin is broken')")
    with pytest.raises(ImportError) as error:
        autoload()
    assert str(error.value) == "the plug-in vendor_plugin is broken"


def test_an_error_ends_the_import_of_torch_which_names_the_cause_and_the_switch(site):
    site.runtime("import sys; sys.exit(0)")
    result = site.python("import torch")
    assert result.returncode == 1
    assert "\nImportError: openreg-runtime failed to load: SystemExit: 0. " in result.stderr
    assert SWITCH in result.stderr


SHOW = "import torch; print(torch._C._get_privateuse1_backend_name(), torch.ones(2).sum().item())"


def test_beside_another_backend_torch_works_and_a_warning_says_who_was_loaded_and_what_chooses(site):
    site.runtime()
    site.rival()
    result = site.python(SHOW)
    assert result.stdout == "loaded rival\nrival 2.0\n", result.stderr
    for part in ("RuntimeWarning", "rival (of rival-torch)", "TORCH_DEVICE_BACKEND_AUTOLOAD=0", "OPENREG_AUTOLOAD=0"):
        assert part in result.stderr


def test_the_variable_chooses_the_other_backend_without_a_warning(site, autoload, monkeypatch, recwarn):
    site.runtime()
    site.rival()
    monkeypatch.setenv("OPENREG_AUTOLOAD", "0")
    autoload()
    assert "openreg_runtime" not in sys.modules
    assert not recwarn.list


def test_the_variable_chooses_openreg_beside_a_backend_of_another_key(site):
    site.runtime()
    site.rival("vendor", code="pass")
    result = site.python(SHOW, OPENREG_AUTOLOAD="1")
    assert sorted(result.stdout.splitlines()) == [
        "load_plugins True",
        "loaded openreg_runtime",
        "loaded vendor",
        "privateuseone 2.0",
    ], result.stderr
    assert result.stderr == ""


def test_a_value_of_the_variable_that_means_nothing_is_refused(autoload, monkeypatch):
    monkeypatch.setenv("OPENREG_AUTOLOAD", "yes")
    with pytest.raises(ImportError, match=r"OPENREG_AUTOLOAD='yes' is not accepted: it has to be 1 .* or 0 .*unset it"):
        autoload()


def test_packages_of_the_device_are_no_other_backend(site, autoload):
    site.runtime()
    site.rival("openreg_example", code="pass")
    autoload()
    assert sys.modules["openreg_runtime"].complete
