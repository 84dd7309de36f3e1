# SPDX-License-Identifier: BSD-3-Clause
"""An environment variable that asks for something and changes nothing causes a warning when the device is imported."""

import os
import sys
import warnings

import pytest
from plugin_site import Site

import openreg_runtime  # noqa: F401
from openreg_runtime import _settings


def warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _settings.warn_of_settings_without_effect()
    return [str(warning.message) for warning in caught]


@pytest.fixture(autouse=True)
def without_settings(monkeypatch):
    for name in list(os.environ):
        if name.startswith(_settings.PREFIX):
            monkeypatch.delenv(name)


def test_a_setting_of_an_absent_package_is_named_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "openreg_sanitizer", None)
    monkeypatch.setenv("OPENREG_SANITIZER", "1")
    (text,) = warned()
    assert text == (
        "OPENREG_SANITIZER has no effect: it is a setting of openreg-sanitizer, which is not installed. "
        "Install it with: pip install openreg-sanitizer, or unset OPENREG_SANITIZER"
    )


def test_a_typo_is_named_with_the_setting_that_was_meant(monkeypatch):
    monkeypatch.setenv("OPENREG_POISN", "1")
    (text,) = warned()
    assert text == (
        "OPENREG_POISN has no effect: openreg has no such environment variable. "
        "Write OPENREG_POISON, or unset OPENREG_POISN"
    )


def test_a_typo_is_named_without_the_doctor_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "openreg_doctor", None)
    monkeypatch.setenv("OPENREG_POISN", "1")
    (text,) = warned()
    assert text.startswith("OPENREG_POISN has no effect")


def test_a_setting_of_an_installed_package_is_no_typo(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    Site(tmp_path).distribution("vendor-kernels", {"openreg_doctor.packages": {"vendor_kernels": "vendor_kernels"}})
    (tmp_path / "vendor_kernels").mkdir()
    declared = 'device = "openreg"\n[settings.OPENREG_POISONS]\ndefault = "0"\n'
    (tmp_path / "vendor_kernels" / "doctor.toml").write_text(declared, "utf-8")
    monkeypatch.setenv("OPENREG_POISONS", "1")
    assert warned() == []


def test_what_has_an_effect_and_what_resembles_no_setting_is_not_named(monkeypatch):
    monkeypatch.setenv("OPENREG_POISON", "1")
    monkeypatch.setenv("OPENREG_OF_ANOTHER_PACKAGE", "1")
    assert warned() == []


def test_the_import_warns(run_python):
    done = run_python("import torch\nimport openreg_runtime", env={"OPENREG_DEVICE_COUT": "3"})
    assert done.code == 0
    assert "RuntimeWarning: OPENREG_DEVICE_COUT has no effect" in done.errors
