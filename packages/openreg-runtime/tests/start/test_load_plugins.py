# SPDX-License-Identifier: BSD-3-Clause
"""load_plugins() imports every declared plug-in once, after those that it requires, and reports those that fail."""

import json
import os
import subprocess
import sys

import pytest
import torch
from plugin_site import Site

FURTHER = pytest.mark.endurance  # further forms of what the default session runs, each in a process of its own

# A plug-in that works with a complete runtime only.
PLUGIN = """
import openreg_runtime
openreg_runtime.extend
print("loaded", __name__)
"""

CAUSE = """
def deep():
    raise FileNotFoundError("libvendor.so is gone")

try:
    deep()
except FileNotFoundError as error:
    raise ImportError("cannot start") from error
"""

# What a package that brings the device up with `import torch` has.
STARTER = """
def start():
    import openreg_runtime
    openreg_runtime.load_plugins()
"""


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "site")


def plugin(site, name, code=PLUGIN, requires=("openreg-runtime",), record=None):
    return site.package(name, record, code, requires)


def loaded(output):
    """The made-up packages that a process loaded, in order."""
    return [line.split()[1] for line in output.splitlines() if line.startswith("loaded vendor_")]


@pytest.fixture
def load(site, succeed):
    """Loads the plug-ins in a process that has imported torch."""

    def run(then="", *, errors=False):
        script = f"import sys\nsys.path.insert(0, {str(site.folder)!r})\nimport openreg_runtime\n"
        if errors:
            attempt = "try:\n    openreg_runtime.load_plugins()\n"
            script += attempt + "except ImportError as error:\n    print(error, repr(error.__cause__), sep='\\n')\n"
        else:
            script += f"openreg_runtime.load_plugins()\n{then}"
        return succeed(script).output

    return run


@pytest.fixture
def python(site):
    """Runs code in a process in which `import torch` brings the device up."""
    site.distribution("vendor-starter", {"torch.backends": {"vendor": "vendor_starter:start"}})
    (site.folder / "vendor_starter.py").write_text(STARTER, "utf-8")

    def run(code):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH_", "OPENREG_"))}
        env["PYTHONPATH"] = str(site.folder)
        command = [sys.executable, "-c", code]
        result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=env)
        assert result.returncode == 0, result.stderr
        return result

    return run


def test_every_plugin_is_loaded_once(site, load):
    plugin(site, "vendor-a")
    plugin(site, "vendor-b")
    assert loaded(load("openreg_runtime.load_plugins(); import vendor_b, vendor_a")) == ["vendor_a", "vendor_b"]


def test_a_plugin_comes_after_what_it_requires(site, load):
    plugin(site, "vendor-b")
    plugin(site, "vendor-a", requires=["openreg-runtime", "Vendor.Z_Late>=1"])
    plugin(site, "vendor-z-late", requires=["numpy", "vendor_b ; python_version > '3'"])
    assert loaded(load()) == ["vendor_b", "vendor_z_late", "vendor_a"]


def test_plugins_that_require_each_other_are_loaded(site, load):
    plugin(site, "vendor-a", requires=["vendor-b"])
    plugin(site, "vendor-b", requires=["vendor-a"])
    assert sorted(loaded(load())) == ["vendor_a", "vendor_b"]


def test_one_distribution_may_announce_several_plugins(site, load):
    plugin(site, "vendor-a")
    (site.folder / "vendor_more.py").write_text(PLUGIN, "utf-8")
    site.distribution("vendor-a", {"openreg.plugins": {"one": "vendor_a", "two": "vendor_more"}})
    assert loaded(load()) == ["vendor_a", "vendor_more"]


def test_metadata_without_a_name_does_no_harm(site, load):
    plugin(site, "vendor-a")
    (site.folder / "vendor_a-1.5.dist-info" / "METADATA").write_text("Version: 1.0\n", "utf-8")
    assert loaded(load()) == ["vendor_a"]


def test_the_plugin_that_fails_its_root_cause_and_the_way_out_are_named(site, load):
    plugin(site, "vendor-a", CAUSE)
    text, cause = load(errors=True).splitlines()
    for part in (
        "'vendor_a' of the package vendor-a failed to load: FileNotFoundError: libvendor.so is gone",
        "pip install --force-reinstall --no-deps vendor-a",
        "pip uninstall vendor-a",
    ):
        assert part in text
    assert cause == "ImportError('cannot start')"


def test_a_plugin_of_another_abi_is_refused_before_it_is_imported(site, load):
    record = json.dumps({"abi_version": 999, "torch_version": str(torch.__version__)})
    plugin(site, "vendor-a", record=record)
    output = load(errors=True)
    assert "ABI 999 of openreg-runtime" in output
    assert loaded(output) == []


def test_a_plugin_that_ends_the_process_is_an_error(site, load):
    plugin(site, "vendor-a", "import sys; sys.exit(0)")
    output = load(errors=True)
    assert "SystemExit: 0" in output
    assert "pip uninstall vendor-a" in output


@pytest.mark.parametrize("first", ["torch", "openreg_runtime", "vendor_a", pytest.param("vendor_b", marks=FURTHER)])
def test_a_package_may_be_imported_before_torch(site, python, first):
    plugin(site, "vendor-a")
    plugin(site, "vendor-b")
    result = python(f"import {first}; import torch")
    assert sorted(loaded(result.stdout)) == ["vendor_a", "vendor_b"]
    assert result.stderr == ""


def test_a_plugin_that_needs_an_unfinished_one_is_left_out_with_a_warning(site, python):
    plugin(site, "vendor-b", PLUGIN + "complete = True")
    plugin(site, "vendor-a", "from vendor_b import complete\n" + PLUGIN, requires=["vendor-b"])
    plugin(site, "vendor-modest", "import vendor_b\n" + PLUGIN, requires=["vendor-b"])
    plugin(site, "vendor-other", requires=["openreg-runtime"])
    result = python("import vendor_b, torch, vendor_a")
    assert loaded(result.stdout) == ["vendor_modest", "vendor_other", "vendor_b", "vendor_a"]
    assert result.stderr.count("RuntimeWarning") == 1
    for part in ("plug-in 'vendor_a'", "It needs vendor-b", "import torch first, or vendor_a afterwards"):
        assert part in result.stderr


def test_who_imports_the_runtime_first_gets_it_and_a_warning(site, python):
    plugin(site, "vendor-a", CAUSE)
    result = python("import openreg_runtime, torch; print(torch.openreg.device_count() > 0)")
    assert result.stdout.splitlines()[-1] == "True"
    for part in ("RuntimeWarning", "'vendor_a'", "libvendor.so is gone", "pip"):
        assert part in result.stderr


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
import torch, openreg_runtime, vendor_a, vendor_b
if errors: raise errors[0]
"""


@pytest.mark.parametrize("other", [pytest.param("torch", marks=FURTHER), "openreg_runtime", "vendor_b"])
def test_two_threads_may_import_at_once(site, python, other):
    plugin(site, "vendor-b", PLUGIN.replace("import openreg_runtime", "import openreg_runtime, torch"))
    plugin(site, "vendor-a")
    (site.folder / "begin.py").write_text(THREADS, "utf-8")
    result = python(f"import sys; sys.argv[1:] = ['import torch', 'import {other}']\nimport begin")
    assert sorted(loaded(result.stdout)) == ["vendor_a", "vendor_b"]
    assert result.stderr == ""
