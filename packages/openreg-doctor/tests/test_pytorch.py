# SPDX-License-Identifier: BSD-3-Clause
"""The doctor reads the functions that the installed PyTorch calls on a backend, and names those that changed."""

import importlib.util
import shutil
from pathlib import Path

import pytest
import torch

from openreg_doctor import declarations, table
from openreg_testing.doctor_site import Installation

SOURCES = Path(__file__).resolve().parents[1] / "src" / "openreg_doctor"
RELEASE = ".".join(torch.__version__.split(".")[:2])
RECORD = declarations.read_record()
GROUPS = table.read()

HEADER = """
struct Other { virtual void other(); };
struct API Wanted : Base {
  virtual ~Wanted() = default;
  virtual int plain() const = 0;  // virtual calls (in a comment)
  virtual std::pair<int, int> body(int x [[maybe_unused]], bool) { return {x, x}; }
  virtual void
  next_line(
      const std::map<int, Other>& by_name,
      size_t /*size*/ = 3) noexcept;
  virtual void twice(c10::Device device);
  virtual void twice();
};
struct Later { virtual void later(); };
"""
MODULE = """
class Other:
    def other(self): ...

class Wanted(Other):
    def __init__(self): ...
    def plain(self, device=None, *, mode: str = "x") -> int: ...
    @classmethod
    def of_class(cls): ...
    class Worker:
        def inside(device): ...
"""


def test_a_virtual_function_is_read_in_any_form():
    assert declarations.virtual_functions(HEADER, "Wanted") == {
        "plain": "int () const",
        "body": "std::pair<int, int> (int, bool)",
        "next_line": "void (const std::map<int, Other>&, size_t) noexcept",
        "twice": "void (); void (c10::Device)",
    }


def test_names_and_defaults_of_parameters_are_no_part_of_a_signature():
    other = HEADER.replace("by_name", "").replace(" = 3", "").replace("device)", "where)").replace("int x", "int")
    assert declarations.virtual_functions(other, "Wanted") == declarations.virtual_functions(HEADER, "Wanted")


def test_methods_are_read_with_those_of_inner_classes():
    assert declarations.methods(MODULE, "Wanted") == {
        "plain": "(device, mode)",
        "of_class": "()",
        "Worker": "class",
        "Worker.inside": "(device)",
    }


@pytest.mark.parametrize("read", [declarations.virtual_functions, declarations.methods])
def test_a_class_that_is_not_there_has_nothing(read):
    assert read("", "Wanted") == {}


def test_the_record_tells_what_the_installed_torch_asks():
    found = declarations.interfaces(Path(torch.__file__).parent, GROUPS)
    assert RECORD[RELEASE] == found, "python packages/openreg-doctor/tools/interfaces.py"
    assert set(found) == {group.key for group in GROUPS if group.class_name}


# Interface -> a file below torch, text in it, and what a later release may have instead.
GUARD = ("include/c10/core/impl/DeviceGuardImplInterface.h", "virtual DeviceIndex deviceCount() const noexcept = 0;")
EXCHANGE = "virtual Device exchangeDevice(Device"
COMPILER = ("_dynamo/device_interface.py", "    def is_available() -> bool:")
CURRENT = "\n    def current_device() -> int:"
PLANTED = {
    "pytorch.guard.deviceCount": (*GUARD, "virtual DeviceIndex deviceCount(bool) const noexcept = 0;", "changed since"),
    "pytorch.guard.deviceAges": (GUARD[0], EXCHANGE, f"virtual int deviceAges() const;\n  {EXCHANGE}", "is new since"),
    "pytorch.guard.exchangeDevice": (GUARD[0], EXCHANGE, EXCHANGE.removeprefix("virtual "), "is gone"),
    "pytorch.device_interface.is_available": (*COMPILER, "    def is_available(device) -> bool:", "changed since"),
    "pytorch.device_interface.age": (COMPILER[0], CURRENT, f"\n    def age(): ...{CURRENT}", "is new since"),
}


def test_each_function_that_differs_from_the_record_is_named(tmp_path):
    installation = Installation(tmp_path / "site")
    for file in dict.fromkeys(file for file, *_ in PLANTED.values()):
        place = "torch"
        for part in Path(file).parts:
            if (installation.folder / place).is_symlink():
                installation.replace(place)
            place = f"{place}/{part}"
        path = installation.folder / place
        text = path.read_text("utf-8")
        for old, new in [(old, new) for planted, old, new, _ in PLANTED.values() if planted == file]:
            assert old in text
            text = text.replace(old, new, 1)
        path.unlink()
        path.write_text(text, "utf-8")
    warnings = installation.doctor().texts("warning")
    found = {name: said for name, said in warnings.items() if name.startswith("pytorch.")}
    assert sorted(found) == sorted(PLANTED)
    for check, (file, _, _, said) in PLANTED.items():
        assert said in found[check]
        assert f"torch {RELEASE}" in found[check]
        assert file in found[check]


def test_an_unchanged_torch_is_as_recorded(tmp_path):
    told = Installation(tmp_path / "site").doctor().texts("ok")["pytorch"]
    assert f"recorded functions of torch {RELEASE}" in told


@pytest.fixture
def tool():
    """tools/interfaces.py, which compares without an installed openreg."""
    path = Path(__file__).resolve().parents[1] / "tools" / "interfaces.py"
    spec = importlib.util.spec_from_file_location("interfaces", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copied_torch(tmp_path):
    """A folder with the files of the installed torch that the table names."""
    source = Path(torch.__file__).parent
    for file in ("version.py", *(f"include/{g.header}" if g.header else g.source for g in GROUPS if g.class_name)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, tmp_path / file)
    return tmp_path


def test_the_tool_says_nothing_of_a_recorded_release(tool, copied_torch):
    assert tool.compare(copied_torch) == []


def test_the_tool_compares_an_unknown_release_with_the_newest_one(tool, copied_torch):
    (copied_torch / "version.py").write_text("__version__ = '2.99.0.dev20261101+cpu'\n", "utf-8")
    header, old = copied_torch / GUARD[0], GUARD[1]
    header.write_text(header.read_text("utf-8").replace(old, f"{old} virtual int deviceAges() const;"), "utf-8")
    newest = list(RECORD)[-1]
    (line,) = [line for line in tool.compare(copied_torch) if "deviceAges" in line]
    assert f"of torch 2.99.0.dev20261101+cpu (torch/{GUARD[0]}) is new since torch {newest}: int () const" in line


def test_the_tool_writes_the_record_that_is_kept(tool):
    record = SOURCES / declarations.RECORD
    assert tool.render(tool.torch_folder()) == record.read_text("utf-8")
