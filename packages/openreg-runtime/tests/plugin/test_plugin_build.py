# SPDX-License-Identifier: BSD-3-Clause
"""A third party's plug-in with a native part can be built, installed and loaded, and is refused if it does not fit."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from cmake_runs import cmake, site_packages
from plugin_site import Site

from openreg_runtime import _C

PROJECT = Path(__file__).resolve().parent
NEXT_ABI = _C._abi_version + 1


def configure(build, prefix):
    definitions = (f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPython_EXECUTABLE={sys.executable}")
    return cmake("-S", PROJECT, "-B", build, "-G", "Ninja", *definitions)


def install(build, prefix, site):
    """Builds the plug-in with the runtime in `prefix` and installs it, as pip would, into a folder of its own."""
    site.package("vendor-plugin", None, (PROJECT / "vendor_plugin.py").read_text("utf-8"))
    for command in ([], ["--build", build], ["--install", build, "--prefix", site.folder / "vendor_plugin"]):
        status, output = cmake(*command) if command else configure(build, prefix)
        assert status == 0, output


def renumber(prefix, old, new):
    header = prefix / "openreg_runtime" / "include" / "openreg" / "runtime" / "version.h"
    text = header.read_text("utf-8")
    assert f"kAbiVersion = {old};" in text
    header.write_text(text.replace(f"kAbiVersion = {old};", new), "utf-8")


@pytest.fixture
def next_runtime(tmp_path):
    """The files of a runtime whose headers have the next ABI number."""
    prefix = tmp_path / "next"
    shutil.copytree(site_packages() / "openreg_runtime", prefix / "openreg_runtime")
    renumber(prefix, _C._abi_version, f"kAbiVersion = {NEXT_ABI};")
    return prefix


def imported(site):
    return f"""
        import sys
        sys.path.insert(0, {str(site.folder)!r})
        import torch
        try:
            import vendor_plugin
        except ImportError as error:
            print(error)
        else:
            print(torch.openreg.vendor_device_count(), "devices")
        import openreg_runtime
        assert torch.openreg.Stream().query()
    """


def test_a_plugin_says_what_it_was_compiled_for_and_works_in_whatever_folder(tmp_path, succeed):
    folder = tmp_path / "o'ne sp ace"  # the plug-in of the next test is built in a folder of a plain name
    shutil.copytree(site_packages() / "openreg_runtime", folder / "prefix" / "openreg_runtime")
    site = Site(folder / "site")
    install(folder / "build", folder / "prefix", site)
    record = json.loads((site.folder / "vendor_plugin" / "_build.json").read_text("utf-8"))
    assert record == {
        "abi_version": _C._abi_version,
        "torch_version": str(torch.__version__),
        "extension_suffix": Path(_C.__file__).name.removeprefix("_C"),
    }
    assert succeed(imported(site)).output == "2 devices\n"


def test_a_plugin_for_another_runtime_is_refused_by_its_record_and_by_its_code(tmp_path, succeed, next_runtime):
    site = Site(tmp_path / "site")
    install(tmp_path / "build", next_runtime, site)
    text = succeed(imported(site)).output
    assert f"ABI {NEXT_ABI} of openreg-runtime" in text
    assert f"openreg-runtime has ABI {_C._abi_version}." in text
    (site.folder / "vendor_plugin" / "_build.json").unlink()
    text = succeed(imported(site)).output
    assert f"compiled for version {NEXT_ABI} of the openreg-runtime headers" in text
    assert f"has version {_C._abi_version}." in text


def test_a_plugin_that_the_loader_would_refuse_is_refused_with_numbers(tmp_path, succeed):
    site = Site(tmp_path / "site")
    record = json.dumps({"abi_version": NEXT_ABI, "torch_version": str(torch.__version__)})
    module = site.package("vendor-plugin", record, (PROJECT / "vendor_plugin.py").read_text("utf-8"))
    suffix = Path(_C.__file__).name.removeprefix("_C")
    (site.folder / module / f"_native{suffix}").write_bytes(b"undefined symbol")
    assert f"compiled for ABI {NEXT_ABI}" in succeed(imported(site)).output
    (site.folder / module / "_build.json").unlink()
    assert "_native" in succeed(imported(site)).output  # what the loader says


def test_the_record_follows_the_header(tmp_path, next_runtime):
    build = tmp_path / "build"
    status, output = configure(build, next_runtime)
    assert status == 0, output
    assert json.loads((build / "_build.json").read_text("utf-8"))["abi_version"] == NEXT_ABI
    renumber(next_runtime, NEXT_ABI, "kAbiVersion = 77;")
    status, output = cmake("--build", build, "--target", "build.ninja")
    assert status == 0, output
    assert json.loads((build / "_build.json").read_text("utf-8"))["abi_version"] == 77


def test_a_header_without_the_number_ends_the_configuration(tmp_path, next_runtime):
    renumber(next_runtime, NEXT_ABI, "kOther = 1;")
    status, output = configure(tmp_path / "build", next_runtime)
    assert status != 0
    assert "version.h does not define kAbiVersion" in output
