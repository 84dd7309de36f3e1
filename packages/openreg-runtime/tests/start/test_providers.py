# SPDX-License-Identifier: BSD-3-Clause
"""An error about a missing name or feature names the package that has it, installed or not."""

import json
import sys
from importlib.resources import files

import pytest
from plugin_site import Site

import openreg_runtime
from openreg_runtime import _providers

pytestmark = pytest.mark.every_subset

TABLE = json.loads(files("openreg_runtime").joinpath("_providers.json").read_text("utf-8"))
PLAIN = "module 'torch.openreg' has no attribute {!r}"


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return Site(tmp_path)


def missing(name):
    with pytest.raises(AttributeError) as error:
        getattr(openreg_runtime.openreg, name)
    return str(error.value)


@pytest.mark.parametrize("name", TABLE["names"])
def test_the_package_of_every_name_in_the_table_is_named_with_the_command(name, succeed):
    succeed(f"""
        import torch, openreg_runtime
        try:
            torch.openreg.{name}
            assert {name!r} == "get_amp_supported_dtype"  # PyTorch looks for it with hasattr()
        except AttributeError as error:
            text = "torch.openreg.{name} comes with the package {TABLE["names"][name]}, which is not installed or not "
            assert str(error) == text + "imported. Install it with: pip install {TABLE["names"][name]}", error
    """)


def test_the_table_has_the_features_that_are_stood_in_for():
    assert {"autocast", "compile", "profiler", "tensors"} <= set(TABLE["features"])
    with pytest.raises(KeyError):
        _providers.of_feature("flight")


def test_a_name_of_no_package_is_missing_as_in_any_module():
    assert missing("no_such_name") == PLAIN.format("no_such_name")


def test_an_installed_package_that_was_not_imported_is_named_with_the_statement(site):
    site.distribution("Vendor.Kernels", {"openreg.names": {"vendor_name": "vendor_kernels.deep:part.name"}})
    assert missing("vendor_name") == (
        "torch.openreg.vendor_name comes with the package Vendor.Kernels, which is installed and not imported. "
        "Import it with: import vendor_kernels.deep"
    )
    sys.path.remove(str(site.folder))
    assert missing("vendor_name") == PLAIN.format("vendor_name")


def test_metadata_without_a_name_does_no_harm(site):
    site.distribution("vendor-kernels", {"openreg.names": {"vendor_name": "vendor_kernels:name"}})
    (site.folder / "vendor_kernels-1.5.dist-info" / "METADATA").write_text("", "utf-8")
    assert "the package vendor_name, which is installed and not imported" in missing("vendor_name")


def test_an_installed_package_cannot_take_a_name_of_the_table(site):
    name, provider = next(iter(TABLE["names"].items()))
    site.distribution("vendor-kernels", {"openreg.names": {name: "vendor_kernels:name"}})
    assert _providers.of_name(name) == provider


def test_a_feature_is_provided_by_an_installed_package_that_can_be_found(site):
    assert not _providers.is_provided("flight")
    site.distribution("vendor-wings", {"openreg.features": {"flight": "vendor_wings.inner"}})
    assert not _providers.is_provided("flight")
    (site.folder / "vendor_wings.py").write_text("raise AssertionError('imported')\n", "utf-8")
    assert _providers.is_provided("flight")
    assert not _providers.is_provided("fligh")
