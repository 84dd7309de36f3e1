# SPDX-License-Identifier: BSD-3-Clause
"""The error about a plug-in that does not load names it, its root cause in one line, and the fix."""

import importlib.machinery
import sys

import pytest

from openreg_runtime import _loader

REINSTALL = "Reinstall it: pip install --force-reinstall --no-deps vendor-plugin"
INSTALL = "Install what it needs: pip install vendor-plugin"
WITHOUT = "go on without it: pip uninstall vendor-plugin"
NO_PACKAGE = "'vendor_plugin' is not a package"

DEEP_CHAIN = """
def fail(n):
    try:
        fail(n - 1) if n else 1 / 0
    except Exception as error:
        raise RuntimeError(n) from error
fail(100)
"""


@pytest.fixture
def message(tmp_path, monkeypatch):
    """The error about a plug-in with this code."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def load(code):
        (tmp_path / "vendor_plugin.py").write_text(code, "utf-8")
        with pytest.raises(ImportError) as error:
            _loader._import("vendor_plugin", "vendor-plugin")
        assert error.value.name == "vendor_plugin"
        assert error.value.__cause__ is not None
        text = str(error.value)
        start = "the openreg plug-in 'vendor_plugin' of the package vendor-plugin failed to load: "
        assert text.startswith(start), text
        assert "\n" not in text
        return text.removeprefix(start)

    return load


# Code of a plug-in -> what is said of its root cause, and the advice.
WHOLE = {
    "an exception": ("raise ValueError('no good')", f"ValueError: no good. Mend that, or {WITHOUT}"),
    "no message": ("raise ValueError", f"ValueError: no message. Mend that, or {WITHOUT}"),
    "a blank message": ("raise ValueError(' \\n ')", f"ValueError: no message. Mend that, or {WITHOUT}"),
    "several lines": ("raise ValueError('first.\\nsecond')", f"ValueError: first. Mend that, or {WITHOUT}"),
    "no text": (
        "class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad",
        f"Bad: <exception str() failed>. Mend that, or {WITHOUT}",
    ),
    "the process ends": ("import sys; sys.exit('bye')", f"SystemExit: bye. Mend that, or {WITHOUT}"),
    "a part is missing": (
        "import vendor_plugin.inner",
        f"ModuleNotFoundError: No module named 'vendor_plugin.inner'; {NO_PACKAGE}. {REINSTALL}; or {WITHOUT}",
    ),
    "a requirement is missing": (
        "import vendor_tools",
        f"ModuleNotFoundError: No module named 'vendor_tools'. {INSTALL}; or {WITHOUT}",
    ),
    "a library is missing": (
        "raise FileNotFoundError('vendor.bin is gone')",
        f"FileNotFoundError: vendor.bin is gone. {REINSTALL}; or {WITHOUT}",
    ),
    "a refusal in its own words": (
        "raise ImportError('VENDOR_X=1 is not accepted; unset it')",
        "ImportError: VENDOR_X=1 is not accepted; unset it",
    ),
    "an error that hides another": (
        "try:\n    1 / 0\nexcept ArithmeticError:\n    raise RuntimeError('cannot start')",
        f"ZeroDivisionError: division by zero. Mend that, or {WITHOUT}",
    ),
    "an error that replaces another": (
        "try:\n    1 / 0\nexcept ArithmeticError:\n    raise RuntimeError('cannot start') from None",
        f"RuntimeError: cannot start. Mend that, or {WITHOUT}",
    ),
    "a deep chain": (
        DEEP_CHAIN,
        f"ZeroDivisionError: division by zero. Mend that, or {WITHOUT}",
    ),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_the_root_cause_and_the_way_out_are_said_in_one_line(message, kind):
    code, expected = WHOLE[kind]
    assert message(code) == expected


@pytest.mark.parametrize("code", ["def", "\0", "x = (", "return"], ids=["def", "null", "open", "return"])
def test_a_file_that_python_cannot_read_is_to_be_reinstalled(message, code):
    text = message(code)
    assert text.startswith("SyntaxError: ")
    assert text.endswith(f". {REINSTALL}; or {WITHOUT}")


def test_a_name_that_is_missing_is_to_be_reinstalled(message):
    text = message("from json import nothing")
    assert text.startswith("ImportError: cannot import name 'nothing' from 'json'")
    assert text.endswith(f". {REINSTALL}; or {WITHOUT}")


def test_causes_in_a_circle_end(message):
    text = message("a, b = ValueError('a'), ValueError('b')\na.__cause__, b.__cause__ = b, a\nraise a")
    assert text.startswith("ValueError: ")


def test_a_native_part_that_does_not_load_names_its_library(message, tmp_path):
    library = f"vendor_native{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    (tmp_path / library).write_bytes(b"not a library")
    text = message("import vendor_native")
    assert text.startswith("ImportError: ")
    assert library in text
    assert text.endswith(f". {REINSTALL}; or {WITHOUT}")


def test_a_module_that_does_not_exist_is_named():
    with pytest.raises(ImportError) as error:
        _loader._import("vendor_gone", "vendor-plugin")
    assert "'vendor_gone' of the package vendor-plugin" in str(error.value)
    assert f"ModuleNotFoundError: No module named 'vendor_gone'. {REINSTALL}" in str(error.value)


@pytest.mark.parametrize("value", ["", "vendor:start", "vendor plugin", "vendor.", "-", "vendor [extra]"])
def test_an_entry_point_that_is_no_module_is_named_with_what_is_accepted(value):
    with pytest.raises(ImportError) as error:
        _loader._check_and_import(value, "vendor-plugin")
    assert f"{value!r} of the package vendor-plugin" in str(error.value)
    assert str(error.value).endswith(WITHOUT)


def test_control_c_is_no_failure_of_a_plugin(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "vendor_plugin.py").write_text("raise KeyboardInterrupt", "utf-8")
    with pytest.raises(KeyboardInterrupt):
        _loader._import("vendor_plugin", "vendor-plugin")
    assert "vendor_plugin" not in sys.modules
