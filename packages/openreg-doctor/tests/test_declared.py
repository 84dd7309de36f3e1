# SPDX-License-Identifier: BSD-3-Clause
"""The doctor uses the rows, settings, faults, conflicts and checks that packages declare, and reports wrong ones."""

import json
import shutil

import pytest

from openreg_doctor import backend, table
from openreg_testing.doctor_site import Installation

RUNTIME = """
device = "kettle"
without = "hot water"
implements = ["module.*"]

[backend]
plugins = "kettle.plugins"
settings = "KETTLE_"
absent = "others.json"

[settings.KETTLE_HEAT]
default = "high"
restricts = "the water stays cold"

[[faults]]
pattern = "no water"
name = "empty"
fix = "fill {module} of {distribution}"

[hooks.module.boil]
reader = "users: the water"

[hooks.module.Stream]
status = "not applicable: water streams by itself"
"""

OTHERS = {
    "packages": {
        "kettle-tea": {
            "module": "kettle_tea",
            "without": "tea",
            "settings": ["KETTLE_LEAVES"],
            "hooks": ["module.Event", "registration.the minimal set of operators"],
        }
    }
}

CODE = """
import sys, types
import torch

torch.utils.rename_privateuse1_backend("kettle")
module = types.ModuleType("torch.kettle")
module.is_available = lambda: True
torch._register_device_module("kettle", module)
"""

CHECK = """
from openreg_doctor.finding import Finding, Section
from ._level import LEVEL

def water(examination):
    level = Finding("water.level", "note", f"{LEVEL} of {examination.order.device}", "less", "more")
    return Section("Water", (level,), 5)

def broken(examination):
    raise OSError("no thermometer")

def wrong(examination):
    return ["hot"]
"""


@pytest.fixture
def kettle(tmp_path):
    """An installation whose device is kettle."""
    installation = Installation(tmp_path / "site")
    folder = installation.declare("kettle", RUNTIME, CODE)
    (folder / "others.json").write_text(json.dumps(OTHERS), "utf-8")
    return installation


def test_the_device_that_packages_declare_is_examined_without_its_name(kettle):
    diagnosis = kettle.doctor(KETTLE_HEAT="low", KETTLE_LEAVES="green", KETTLE_LIT="1")
    assert diagnosis.document["device"] == "kettle"
    assert {"startup.kettle", "module.is_available", "packages.kettle"} <= set(diagnosis.texts("ok"))
    diagnosis.finds("module.boil", "missing", "users: the water", "pip install --force-reinstall --no-deps kettle")
    diagnosis.finds("module.current_device", "missing")
    notes, warnings = diagnosis.texts("note"), diagnosis.texts("warning")
    assert "module.Event" not in {**notes, **warnings, **diagnosis.problems}  # of a package that is not installed
    assert "without it: tea" in notes["packages.kettle-tea"]
    assert "the water stays cold" in notes["settings.KETTLE_HEAT"]
    assert "a setting of kettle-tea, which is not installed" in notes["settings.KETTLE_LEAVES"]
    assert "KETTLE_LIT is not a setting of kettle" in warnings["settings.KETTLE_LIT"]
    diagnosis.finds("registration.the minimal set of operators", "pip install kettle-tea")


def test_a_fault_is_known_by_what_the_package_says_of_it(kettle):
    (kettle.folder / "kettle" / "__init__.py").write_text("raise OSError('no water')\n", "utf-8")
    kettle.doctor().finds("startup.kettle", "does not load (empty): OSError: no water", "fill kettle of kettle")


def test_what_a_package_cannot_stand_beside_is_a_problem(kettle):
    conflict = '\n[conflicts.toaster]\nwhat = "one plug"\ncosts = "power"\nfix = "pip uninstall toaster"\n'
    (kettle.folder / "kettle" / "doctor.toml").write_text(RUNTIME + conflict, "utf-8")
    check = "packages.kettle.conflicts.toaster"
    assert check not in kettle.doctor().output
    kettle.announce("toaster")
    kettle.doctor().finds(check, "one plug", "power", "pip uninstall toaster")


def test_another_backend_that_loads_with_torch_and_takes_the_name_is_a_problem(kettle):
    code = "import torch\ndef load():\n    torch.utils.rename_privateuse1_backend('rival')\n"
    (kettle.folder / "rival.py").write_text(code, "utf-8")
    kettle.announce("rival-backend", "torch.backends", "some = rival:load")
    said = "the backend 'rival' names PrivateUse1 before kettle does (some = rival:load, of rival-backend); "
    diagnosis = kettle.doctor()
    diagnosis.finds("autoload.shadowed", said + "the name is taken", "pip uninstall rival-backend")
    assert "torch.accelerator is rival" in diagnosis.texts("ok")["autoload.accelerator"]


def test_a_plugin_that_declares_nothing_is_imported_and_its_requirements_are_checked(kettle):
    kettle.announce("kettle-whistle", "kettle.plugins", "whistle = whistle", requires="steam>=2")
    (kettle.folder / "whistle.py").write_text("raise RuntimeError('luck')\n", "utf-8")
    diagnosis = kettle.doctor()
    diagnosis.finds("packages.kettle-whistle.requires.steam", "needs steam>=2, which is not installed")
    diagnosis.finds("startup.whistle", "broken plug-in", "pip uninstall kettle-whistle")


def test_a_check_of_a_package_runs_without_the_package(kettle):
    folder = kettle.folder / "kettle"
    (folder / "_check.py").write_text(CHECK, "utf-8")
    (folder / "_level.py").write_text("LEVEL = 'half'\n", "utf-8")
    (folder / "__init__.py").write_text(
        f"import sys\nassert 'openreg_doctor.command' not in sys.modules\n{CODE}", "utf-8"
    )
    (info,) = kettle.folder.glob("kettle-*.dist-info")
    points = info / "entry_points.txt"
    lines = (
        "water = kettle._check:water",
        "broken = kettle._check:broken",
        "wrong = kettle._check:wrong",
        "x = kettle:x",
    )
    points.write_text("\n".join((points.read_text("utf-8"), "[openreg_doctor.checks]", *lines, "")), "utf-8")
    diagnosis = kettle.doctor()
    assert diagnosis.document["findings"][0]["section"] == "Water"  # position 5 is the first
    assert "half of kettle" in diagnosis.texts("note")["water.level"]
    assert "startup.kettle" in diagnosis.texts("ok")
    diagnosis.finds("checks.broken", "broken = kettle._check:broken of kettle fails: OSError: no thermometer")
    diagnosis.finds("checks.wrong", "expected a Section of Findings, but it returned")
    diagnosis.finds("checks.x", "'kettle:x' is not of the form package.module:function")


BAD = {
    "cannot be read": "device = ",
    "KeyError('device')": "without = 'x'",
    "expected a text, but got 4": "device = 4",
    "whose doctor.toml is invalid: TypeError": "device = 'x'\n[settings.A]\ndefalt = 'x'",
    "'module.*' is not a list of strings": "device = 'x'\nimplements = 'module.*'",
    "hooks.module has a value of the wrong type": "device = 'x'\n[hooks]\nmodule = 3",
    "hooks.module.code has a value of the wrong type": "device = 'x'\n[hooks.module]\ncode = 'x.py'",
    "hooks.module.boil.reader has a value of the wrong type": "device = 'x'\n[hooks.module.boil]\nreader = 3",
}


@pytest.mark.parametrize("said", BAD)
def test_a_declaration_that_cannot_be_used_is_refused_with_the_reason(tmp_path, monkeypatch, said):
    (tmp_path / "kettle").mkdir()
    (tmp_path / "kettle" / "doctor.toml").write_text(BAD[said], "utf-8")
    (tmp_path / "kettle" / "__init__.py").write_text("raise AssertionError('imported')\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(backend.DeclarationError) as error:
        backend.read("a-kettle", "kettle")
    assert said in str(error.value)


@pytest.mark.parametrize("module", ["kettle_that_is_not_there", "kettle.inside", "kettle:x", ""])
def test_a_declaration_of_no_import_package_is_refused(module):
    with pytest.raises(backend.DeclarationError, match="there is no such import package"):
        backend.read("a-kettle", module)


def test_a_declaration_that_cannot_be_used_is_a_finding_and_the_rest_is_examined(kettle):
    (kettle.declare("kettle-cup", "device = ") / "unused.py").write_text("", "utf-8")
    diagnosis = kettle.doctor()
    assert "kettle-cup announces 'kettle_cup'" in diagnosis.texts("warning")["packages.kettle-cup.declaration"]
    assert diagnosis.document["device"] == "kettle"


def test_a_damaged_file_about_absent_packages_costs_what_it_knows_and_no_more(kettle):
    (kettle.folder / "kettle" / "others.json").write_text("[", "utf-8")
    diagnosis = kettle.doctor()
    assert "packages.kettle" in diagnosis.texts("ok")
    assert "packages.kettle-tea" not in diagnosis.output


def declared(distribution, **data):
    return backend.parse(distribution, distribution.replace("-", "_"), {"device": "kettle", **data})


def statuses(*packages):
    return {row.key: row.status for group in table.read(packages=packages) for row in group.rows}


def test_a_package_that_names_a_row_overrules_a_status():
    runtime = declared("kettle", implements=["module.*"], hooks={"module": {"Stream": {"status": "no"}}})
    streams = declared("kettle-streams", implements=["module.Stream", "module.nvtx"])
    assert statuses()["module.nvtx"].startswith("not applicable: ")
    assert statuses(runtime)["module.nvtx"].startswith("not applicable: ")
    assert statuses(runtime)["module.Stream"] == "no"
    assert statuses(runtime, streams)["module.Stream"] == statuses(runtime, streams)["module.nvtx"] == ""


def test_a_pattern_stands_for_what_no_package_names():
    runtime = declared("kettle", implements=["module.*", "module.amp"], hooks={"module": {"boil": {"reader": "users"}}})
    tea = declared("kettle-tea", implements=["module.amp", "module.Event"])
    kettle = backend.DeclaredBackend("kettle", (runtime, tea))
    names = ("module.init", "module.amp", "module.Event", "module.boil", "guard.block")
    owners = {name: [package.distribution for package in kettle.owners(name)] for name in names}
    assert owners == {
        "module.init": ["kettle"],
        "module.amp": ["kettle", "kettle-tea"],
        "module.Event": ["kettle-tea"],
        "module.boil": ["kettle"],
        "guard.block": [],
    }


def test_rows_that_are_named_by_their_code_are_implemented():
    module = {"code": ["a.py"], "init": {}, "amp": {"code": []}, "Event": {"status": "no"}}
    tests = {"getStream": {"tests": ["test_a.py::test_a"]}, "block": {"code": ["b.cpp"]}}
    assert declared("kettle", hooks={"module": module, "guard": tests}).implements == ("module.init", "guard.block")


def test_two_devices_that_packages_declare_are_distinguished(kettle):
    kettle.declare("toaster", 'device = "toaster"\n', CODE.replace("kettle", "toaster"))
    assert kettle.doctor("--device", "toaster").document["device"] == "toaster"
    assert kettle.doctor("--import", "kettle").document["device"] == "kettle"
    assert kettle.doctor().document["device"] == "privateuseone"  # neither loads with torch, and there is no telling


def test_a_doctor_without_its_table(tmp_path):
    installation = Installation(tmp_path / "site")
    (installation.folder / "openreg_doctor" / "hooks.toml").unlink()
    diagnosis = installation.doctor(fresh=True)
    assert diagnosis.code == 1
    assert "the installed openreg-doctor is incomplete:" in diagnosis.errors
    assert "hooks.toml" in diagnosis.errors
    assert "pip install --force-reinstall openreg-doctor" in diagnosis.errors


def test_a_doctor_without_what_it_requires(tmp_path):
    installation = Installation(tmp_path / "site")
    path = installation.folder / "packaging"
    path.unlink() if path.is_symlink() else shutil.rmtree(path)
    diagnosis = installation.doctor(fresh=True)
    assert diagnosis.code == 1
    assert "No module named 'packaging'" in diagnosis.errors
    assert "Traceback" not in diagnosis.errors
