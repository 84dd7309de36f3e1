# SPDX-License-Identifier: BSD-3-Clause
"""Packages record what they were compiled for, and those that do not fit are refused."""

import json
import sys
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES

import pytest
import torch
from plugin_site import Site

import openreg_runtime
from openreg_runtime import _C, _plugins


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return Site(tmp_path)


# The release of torch that the wheels are compiled for, as "2.13".
RELEASE = ".".join(torch.__version__.split(".")[:2])
MAJOR, MINOR = (int(part) for part in RELEASE.split("."))


def record(abi=_C._abi_version, torch_version=str(torch.__version__), **more):
    return json.dumps({"abi_version": abi, "torch_version": torch_version, **more})


def described(distribution):
    (plugin,) = (item for item in openreg_runtime.installed_plugins() if item.distribution == distribution)
    return plugin


def refusal(module):
    with pytest.raises(ImportError) as error:
        openreg_runtime.require_matching_build(module)
    return str(error.value)


def test_the_runtime_says_what_it_was_compiled_for():
    plugin = described("openreg-runtime")
    assert plugin.module == "openreg_runtime"
    assert plugin.version == metadata.version("openreg-runtime")
    assert plugin.abi_version == _C._abi_version
    assert plugin.torch_version == str(torch.__version__)
    assert plugin.problem is None


def test_a_package_is_described_without_being_imported(site):
    site.package("vendor-plugin", record())
    expected = ("vendor_plugin", "vendor-plugin", "1.5", _C._abi_version, str(torch.__version__), None)
    assert described("vendor-plugin") == expected


def test_plugins_come_in_the_order_of_their_names(site):
    site.package("vendor-b", record())
    site.package("vendor-a", record())
    names = [plugin.distribution for plugin in openreg_runtime.installed_plugins()]
    assert names == sorted(names)
    assert {"openreg-runtime", "vendor-a", "vendor-b"} <= set(names)


def test_a_package_without_native_parts_fits(site):
    module = site.package("vendor-plugin", None)
    assert described("vendor-plugin")[3:] == (None, None, None)
    openreg_runtime.require_matching_build(module)


def test_a_package_without_native_parts_for_another_release_is_refused_with_both_and_the_command(site):
    module = site.package("vendor-plugin", None, requires=[f"openreg-runtime=={MAJOR}.{MINOR + 1}.*", "vendor-base>=1"])
    text = refusal(module)
    assert f"vendor-plugin works with openreg-runtime {MAJOR}.{MINOR + 1}.*, but openreg-runtime " in text
    assert f"openreg-runtime {metadata.version('openreg-runtime')} is installed" in text
    assert "pip install --upgrade openreg-runtime vendor-plugin" in text
    assert described("vendor-plugin").problem == text


@pytest.mark.parametrize(
    "requirement", [f"openreg-runtime=={RELEASE}.*", "openreg-runtime>=1", "openreg-runtimes==1.0.*"]
)
def test_other_requirements_of_a_package_without_native_parts_are_left_to_pip(site, requirement):
    openreg_runtime.require_matching_build(site.package("vendor-plugin", None, requires=[requirement]))


def test_a_submodule_means_its_package(site):
    module = site.package("vendor-plugin", record(abi=999))
    assert "ABI 999" in refusal(f"{module}.inner.part")


@pytest.mark.parametrize("abi", [_C._abi_version - 1, _C._abi_version + 1])
def test_another_abi_is_refused_with_both_numbers_and_the_command(site, abi):
    module = site.package("vendor-plugin", record(abi=abi))
    text = refusal(module)
    assert f"ABI {abi} of openreg-runtime" in text
    assert f"openreg-runtime has ABI {_C._abi_version}." in text
    assert "pip install --upgrade openreg-runtime vendor-plugin" in text
    assert described("vendor-plugin").problem == text
    assert described("vendor-plugin").abi_version == abi


@pytest.mark.parametrize(
    "version",
    [
        *(f"{MAJOR}.{MINOR - 1}.1", f"{MAJOR}.{MINOR + 1}.0+cpu", f"{MAJOR}.{MINOR + 1}.0a0+git1234"),
        *("2.1.3", f"{RELEASE}0.0", f"{MAJOR + 1}.{MINOR}.0"),
    ],
)
def test_another_torch_is_refused_with_both_versions_and_the_command(site, version):
    module = site.package("vendor-plugin", record(torch_version=version))
    wanted = ".".join(version.split(".")[:2])
    text = refusal(module)
    assert f"vendor-plugin works with torch {wanted}.*" in text
    assert f"torch {torch.__version__} is installed" in text
    command = f"pip install --upgrade vendor-plugin 'torch=={RELEASE}.*'"
    assert text.endswith(f"is installed. Install another vendor-plugin: {command}")
    assert described("vendor-plugin").problem == text


@pytest.mark.parametrize("version", [RELEASE + patch for patch in (".0", ".9+cu130", ".0a0+git1")])
def test_every_build_of_the_installed_minor_version_fits(site, version):
    openreg_runtime.require_matching_build(site.package("vendor-plugin", record(torch_version=version)))


@pytest.mark.parametrize("module", ["openreg_runtime", "vendor_plugin"])
def test_a_debug_build_of_torch_is_refused_with_the_command(site, monkeypatch, module):
    site.package("vendor-plugin", record())
    monkeypatch.setattr(torch.version, "debug", True)
    text = refusal(module)
    assert f"works with torch {RELEASE}.*" in text
    assert f"torch {torch.__version__} is installed, a debug build (torch.version.debug)" in text
    assert text.endswith(f"pip install --force-reinstall 'torch=={RELEASE}.*'")


@pytest.mark.parametrize(("line", "refused"), [("debug = True", True), ("debug = False", False)])
def test_a_debug_build_is_known_without_importing_torch(site, monkeypatch, line, refused):
    site.package("vendor-plugin", record())
    monkeypatch.delitem(sys.modules, "torch")
    (site.folder / "torch").mkdir()
    (site.folder / "torch" / "__init__.py").write_text("raise AssertionError('imported')\n", "utf-8")
    (site.folder / "torch" / "version.py").write_text(f"__version__ = {torch.__version__!r}\n{line}\n", "utf-8")
    assert ("a debug build" in (described("vendor-plugin").problem or "")) is refused


def test_a_nightly_build_is_answered_with_the_release_that_fits(monkeypatch):
    nightly = f"{MAJOR}.{MINOR + 1}.0.dev20261101"
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion(nightly))
    text = refusal("openreg_runtime")
    assert f"torch {nightly} is installed" in text
    assert text.endswith(f"Install a matching torch: pip install 'torch=={RELEASE}.*'")


def test_the_command_for_another_release_names_all_packages_that_have_to_change(site, monkeypatch):
    site.announce("openreg-of-a-test", "openreg_of_a_test")
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion("2.99.0"))
    names = {item.name for item in metadata.distributions() if item.name.startswith("openreg-")}
    assert {"openreg-of-a-test", "openreg-runtime"} <= names
    assert f"(pip install --upgrade {' '.join(sorted(names))} 'torch==2.99.*')" in refusal("openreg_runtime")


def test_native_parts_for_another_python_are_refused_with_both_and_the_command(site):
    module = site.package("vendor-plugin", record(extension_suffix=".cpython-39-elsewhere"))
    text = refusal(module)
    assert "vendor-plugin was compiled for another Python" in text
    assert ".cpython-39-elsewhere" in text
    assert f"{sys.executable} loads " in text
    assert EXTENSION_SUFFIXES[0] in text
    assert text.endswith("pip install --force-reinstall --no-deps vendor-plugin")
    assert described("vendor-plugin").problem == text


@pytest.mark.parametrize("suffix", [*EXTENSION_SUFFIXES, ""])
def test_native_parts_that_this_python_loads_fit(site, suffix):
    openreg_runtime.require_matching_build(site.package("vendor-plugin", record(extension_suffix=suffix)))


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"abi_version": 1}', '{"torch_version": "2.13.0"}', record(abi="one"), record(abi=None)],
)
def test_a_damaged_record_is_named_with_the_command(site, content):
    module = site.package("vendor-plugin", content)
    text = refusal(module)
    assert "vendor-plugin" in text
    assert "_build.json" in text
    assert "pip install --force-reinstall --no-deps vendor-plugin" in text
    assert described("vendor-plugin")[3:] == (None, None, text)


@pytest.mark.parametrize("value", ["vendor_gone", "vendor_gone.inner"])
def test_a_module_that_is_not_there_is_a_problem(site, value):
    site.announce("vendor-plugin", value)
    plugin = described("vendor-plugin")
    assert f"announces the module {value!r} and does not have it" in plugin.problem
    assert "pip install --force-reinstall --no-deps vendor-plugin" in plugin.problem


@pytest.mark.parametrize("value", ["vendor_plugin:start", "vendor_plugin [extra]", "vendor_plugin."])
def test_a_value_that_is_not_the_name_of_a_module_is_a_problem(site, value):
    site.announce("vendor-plugin", value)
    (site.folder / "vendor_plugin.py").touch()
    problem = described("vendor-plugin").problem
    assert f"the openreg plug-in {value!r} of the package vendor-plugin is not the name of a module. " in problem
    assert problem.endswith("go on without it: pip uninstall vendor-plugin")


def test_a_package_named_unlike_its_distribution_is_named_as_pip_knows_it(site):
    site.package("vendor-plugin", record(abi=999))
    (site.folder / "vendor_plugin-1.5.dist-info" / "METADATA").write_text("Name: Other.Name\nVersion: 3\n", "utf-8")
    assert refusal("vendor_plugin").startswith("Other.Name was compiled")


def test_metadata_without_a_name_does_no_harm(site):
    site.package("vendor-plugin", record())
    (site.folder / "vendor_plugin-1.5.dist-info" / "METADATA").write_text("", "utf-8")
    assert described("plugin").version == "unknown"


def test_a_runtime_without_a_record_is_named(site, monkeypatch):
    module = site.package("vendor-plugin", record())
    monkeypatch.setattr(_plugins, "RUNTIME", site.package("vendor-runtime", None))
    assert "the installed openreg-runtime has no _build.json" in refusal(module)
    assert "pip install --force-reinstall --no-deps openreg-runtime" in refusal(module)


def test_without_torch_the_problem_is_that(site, monkeypatch):
    site.package("vendor-plugin", record())

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(_plugins, "version", missing)
    assert "torch (none) is installed" in described("vendor-plugin").problem


def test_a_package_compiled_for_another_runtime_cannot_extend(site, monkeypatch):
    module = site.package("vendor-plugin", record(abi=999), code="")
    extend_there = "import openreg_runtime; openreg_runtime.extend('vendor_name', 1)"
    with pytest.raises(ImportError, match=r"vendor-plugin .*ABI 999"):
        exec(extend_there, {"__name__": f"{module}.inner"})
    assert not hasattr(torch.openreg, "vendor_name")
