# SPDX-License-Identifier: BSD-3-Clause
"""`python -m openreg_runtime doctor` reports a healthy device, and explains how operators are served."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from openreg_doctor import backend, checks, installed, table
from openreg_doctor.children import ChildResults
from openreg_doctor.examination import Examination, Order, _request
from openreg_runtime import installed_plugins
from openreg_testing.doctor_site import IMPORTED
from openreg_testing.workers.fresh_children import FreshFamily


@pytest.fixture(scope="module")
def run():
    """Runs the command; it and its children are forked from an interpreter that has imported torch."""
    python = FreshFamily(*IMPORTED)

    def run(*arguments, module="openreg_runtime", **variables):
        env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **variables}
        return python.run("-m", module, *arguments, env=env)

    yield run
    python.close()


@pytest.fixture(scope="module")
def openreg():
    (found,) = [item for item in backend.declared()[0] if item.device == "openreg"]
    return found


WRONG = [
    ((), "the following arguments are required: command"),
    (("diagnose",), "invalid choice: 'diagnose'"),
    (("doctor", "--color"), "unrecognized arguments: --color"),
    (("doctor", "--color"), "usage: python -m openreg_runtime doctor [-h] [--device NAME]"),
    (("doctor", "--device", "cuda"), "'cuda' is one of PyTorch's own devices"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_wrong_use_has_status_2_and_says_what_is_right(run, arguments, text):
    outcome = run(*arguments)
    assert outcome.returncode == 2
    assert text in outcome.stderr
    assert outcome.stdout == ""


def test_the_device_is_examined_where_no_other_is_named(run):
    shown = run("doctor", "--help").stdout
    assert "(default: openreg)" in " ".join(shown.split())


def test_the_doctor_finds_the_device_without_its_name(run):
    told = json.loads(run("--json", module="openreg_doctor").stdout)
    assert told["device"] == "openreg"
    findings = {item["check"]: item["status"] for item in told["findings"]}
    assert findings["startup.openreg_runtime"] == "ok"
    assert findings["abi.openreg-runtime"] == "ok"


def test_a_missing_doctor_is_named_with_its_command():
    code = """
import runpy, sys
sys.argv = ["-m", "doctor"]
sys.orig_argv = ["python", "-m", "openreg_runtime", "doctor"]
sys.modules["openreg_doctor"] = None
runpy.run_module("openreg_runtime", run_name="__main__", alter_sys=False)
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("openreg-doctor, which has the command, is missing")
    assert outcome.stderr.endswith("pip install openreg-doctor\n")


def test_an_operator_without_a_kernel_goes_to_the_fallback(run):
    outcome = run("doctor", "--json", "--op", "aten::geqrf", OPENREG_OPS="minimal")
    described = json.loads(outcome.stdout)["operator"]
    facts = {fact["aspect"]: fact["text"] for fact in described["facts"]}
    assert described["name"] == "aten::geqrf"
    assert facts["openreg"].startswith("fallback: the backend's function for operators without a kernel, registered at")
    assert re.search(r"registered at \S*openreg_runtime/\S+\.cpp", facts["openreg"]), facts
    assert "PyTorch's derivative" in facts["autograd"]
    assert facts["overload aten::geqrf.a"].startswith("fallback")


def test_the_overloads_of_an_operator_are_reported_with_how_each_is_served(run):
    outcome = run("doctor", "--json", "--op", "aten::hypot")
    told = json.loads(outcome.stdout)
    facts = {fact["aspect"]: fact["text"] for fact in told["operator"]["facts"]}
    assert facts["openreg"].startswith("composite")  # which says nothing of the overload that it calls
    assert facts["overload aten::hypot.out"].startswith("fallback")
    (finding,) = [item for item in told["findings"] if item["check"] == "operators.overload.aten::hypot.out"]
    assert finding["status"] == "warning"
    assert finding["what"] == "aten::hypot.out falls back to the CPU"
    assert "copies operands to the host" in finding["costs"]
    assert finding["fix"] == "pip install openreg-ops"
    shown = run("doctor", "--op", "aten::hypot").stdout
    assert "aten::hypot.out falls back to the CPU" in shown
    assert "no problem found; 1 warning\n" in shown


def test_the_command_imports_neither_torch_nor_the_device():
    code = """
import runpy, sys
sys.argv = ["-m", "doctor", "--device", "cuda"]
sys.orig_argv = ["python", "-m", "openreg_runtime", "doctor", "--device", "cuda"]
try:
    runpy.run_module("openreg_runtime", run_name="__main__", alter_sys=False)
finally:
    assert not {"torch", "openreg_runtime._C", "openreg_runtime.openreg"} & set(sys.modules)
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert outcome.returncode == 2, outcome.stderr
    assert "'cuda' is one of PyTorch's own devices" in outcome.stderr


def test_the_packages_that_are_not_installed_are_known_with_what_they_bring(openreg):
    absent = {item.distribution: item for item in openreg.packages if item.distribution not in openreg.distributions}
    present = {item.distribution for item in openreg.packages if item.installed}
    assert present == set(openreg.distributions) >= {"openreg-runtime"}
    assert present | set(absent) >= {"openreg-runtime", "openreg-ops", "openreg-amp", "openreg-autoload"}
    assert all(item.without and not item.installed for item in absent.values())
    (owner, *_) = openreg.owners("registration.the minimal set of operators")
    assert owner.distribution == "openreg-ops"


def test_a_setting_of_a_package_that_is_not_installed_says_so(openreg, monkeypatch):
    if "openreg-ops" in openreg.distributions:
        pytest.skip("openreg-ops is installed here, so that the setting has an effect")
    monkeypatch.setenv("OPENREG_KERNELS", "raw")
    seen = Examination(Order("openreg"), [], ChildResults(), ChildResults(), backend=openreg)
    findings = {item.check: item for section in checks.run(seen) for item in section.findings}
    assert findings["settings.OPENREG_KERNELS"].status == "note"
    assert "a setting of openreg-ops, which is not installed" in findings["settings.OPENREG_KERNELS"].what


def test_each_name_of_the_module_is_looked_up(openreg):
    groups = table.read(installed.version("torch"), openreg.packages)
    request = _request(Order("openreg"), groups, openreg)
    assert request.imports[0] == "openreg_runtime"
    assert set(request.imports) == {plugin.module for plugin in installed_plugins()}
    assert {"manual_seed_all", "memory._snapshot", "inject_faults", "amp"} <= set(request.attributes)
    assert not {"make_graphed_callables", "Scheduling", "the module itself"} & set(request.attributes)


def test_the_declaration_is_that_of_the_sources(openreg):
    source = Path(__file__).resolve().parents[2] / "src" / "openreg_runtime" / backend.FILE
    installed_file = next(Path(item, backend.FILE) for item in backend.locations("openreg_runtime"))
    assert installed_file.read_bytes() == source.read_bytes()


def test_nothing_of_the_device_is_said_of_another(openreg):
    seen = Examination(Order("toaster"), table.read(), ChildResults(), ChildResults())
    told = [item.check for section in checks.run(seen) for item in section.findings]
    assert not [name for name in told if name.startswith(("settings.", "packages.", "abi."))]
