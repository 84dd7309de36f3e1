# SPDX-License-Identifier: BSD-3-Clause
"""Every finding of the doctor states its effect and its fix, for all results of the probes."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from openreg_doctor import checks, table
from openreg_doctor.backend import DeclaredBackend, Package, Setting
from openreg_doctor.checks import attributes
from openreg_doctor.children import ChildResults, StepResult
from openreg_doctor.examination import Examination, Order
from openreg_doctor.probes import child, interfaces, registrations, trial
from openreg_doctor.probes.request import CannotCheck, Request

GROUPS = table.read()
KEYS = {row.key for group in GROUPS for row in group.rows if not row.status}
KEYED = {group.key for group in GROUPS}
REPOSITORY = Path(__file__).resolve().parents[3]

# What a probe may come to.
STEPS = {
    "not run": None,
    "done": StepResult("", True),
    "not seen": StepResult("", unseen="needs operators that make tensors"),
    "absent": StepResult("", error="NotImplementedError: please implement it"),
    "refused": StepResult("", error="RuntimeError: the device index -1 is out of range", cause="ValueError: -1"),
    "crashed": StepResult("", ended="the process ended with signal SIGSEGV"),
}


# A device whose packages declare what they bring; whether pip knows them does not matter here.
KETTLE = DeclaredBackend(
    "kettle",
    (
        Package(
            "kettle-runtime",
            "kettle",
            "kettle",
            without="everything",
            settings=(Setting("KETTLE_HEAT", "high", "less"),),
        ),
        Package("kettle-ops", "kettle_ops", "kettle", implements=("module.Stream",)),
        Package("kettle-amp", "kettle_amp", "kettle", installed=False, implements=("module.amp",)),
    ),
)


def outcome(**probes):
    return ChildResults({f"{Request.PROBE_PREFIX}{name}": step for name, step in probes.items() if step is not None})


def findings_of(device, step, anchor=STEPS["done"]):
    """What all checks say where every exercise came to the same, and every name of the module lacks something."""
    rows = [row for group in GROUPS for row in group.rows]
    faults = {name: "missing" for row in rows if row.group == "module" for name in row.names}
    probes = {
        **{row.key: step for row in rows if row.group != "module"},
        **{f"{group.key}.": anchor for group in GROUPS if f"{group.key}" in interfaces.REGISTRATION_CALLS},
        "attributes": StepResult("", {**faults, "__name__": "is 'x', should end in '.kettle'"}),
        "initialize": step,
        "properties": step if step is not STEPS["done"] else None,
    }
    backend = KETTLE if device == KETTLE.device else None
    results = outcome(**probes)
    results.steps["device"] = StepResult("device", {"backend": device, "module": True, "present": True})
    examined = Examination(Order(device), GROUPS, results, ChildResults(), backend=backend)
    return [item for section in checks.run(examined) for item in section.findings]


def incomplete(findings):
    """Returns the findings of a problem that lack its effect or its fix."""
    return [item for item in findings if item.status != "ok" and not (item.costs and item.fix)]


@pytest.mark.parametrize("device", ["kettle", "toaster"])
@pytest.mark.parametrize("anchor", ["done", "absent", "crashed"])
@pytest.mark.parametrize("step", STEPS)
def test_every_finding_says_what_it_costs_and_what_to_do(step, anchor, device):
    findings = findings_of(device, STEPS[step], STEPS[anchor])
    assert len(findings) > len(KEYS) // 2
    assert incomplete(findings) == []


def test_a_function_that_refuses_an_index_is_to_be_corrected_and_an_absent_one_to_be_written():
    key = "accelerator_hooks.maybeExchangeDevice"
    refused, absent = (
        next(item for item in findings_of("toaster", STEPS[step]) if item.check == key)
        for step in ("refused", "absent")
    )
    assert "-1 is out of range" in refused.what
    assert refused.fix.startswith("correct maybeExchangeDevice, which raises this error; model: ")
    assert absent.fix.startswith("implement maybeExchangeDevice; model: ")
    assert refused.costs == absent.costs
    assert "fails" in refused.costs


@pytest.mark.parametrize("step", ["absent", "refused", "crashed", "not seen"])
def test_the_models_that_findings_name_are_files_of_the_repository(step):
    fixes = [item.fix for item in findings_of("toaster", STEPS[step]) if "model: " in item.fix]
    assert len(fixes) > 20
    for fix in fixes:
        paths, _, where = fix.partition("model: ")[2].partition(" in ")
        assert where == "the repository of openreg"
        for path in paths.split(", "):
            assert (REPOSITORY / path).is_file(), fix


def test_an_operator_that_nothing_serves_is_reported_with_what_it_costs():
    table_of = {"table": {}, "others": {"aten::x.out": {}}, "name": "aten::x"}
    examined = Examination(
        Order("toaster", operator="aten::x"), GROUPS, outcome(operator=StepResult("", table_of)), ChildResults()
    )
    findings = [item for section in checks.run(examined) for item in section.findings]
    found = {item.check: item for item in findings if item.check.startswith("operators.overload.")}
    assert found["operators.overload.aten::x"].costs == "a call raises NotImplementedError"
    assert found["operators.overload.aten::x.out"].fix == "register a kernel of aten::x.out for PrivateUse1"


@pytest.mark.parametrize("exists", [False, True])
def test_the_device_module_is_missing_where_a_child_says_so_and_not_where_a_name_of_it_does_not_exist(exists):
    results = outcome(attributes=StepResult("", {"is_available": "missing (the toaster does not exist)"}))
    results.steps["device"] = StepResult("device", {"backend": "toaster", "module": exists, "present": True})
    examined = Examination(Order("toaster"), GROUPS, results, ChildResults())
    assert [item.check for item in attributes.check(examined)] == ["module.is_available" if exists else "module"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (NotImplementedError(), "NotImplementedError"),
        (NotImplementedError("add\nis missing"), "NotImplementedError: add"),
    ],
)
def test_an_error_is_named_also_if_it_has_no_text(error, line):
    class Leaf:
        def requires_grad_(self):
            return self

        def __mul__(self, factor):
            raise error

    def operator():
        raise error

    operator._schema = SimpleNamespace(arguments=[])
    with pytest.raises(CannotCheck, match=f"needs more operators: {line}$"):
        registrations.EXERCISES["registration.a backward pass"](SimpleNamespace(first="cpu", tensor=Leaf))
    assert set(trial._autocast(operator, SimpleNamespace(name="cpu"), (2, 2)).values()) == {line}


def test_what_a_failing_backward_pass_hides_names_the_check_that_tells_why():
    device = SimpleNamespace(first="cpu", tensor=lambda: torch.zeros(3))  # its gradient has another shape
    with pytest.raises(CannotCheck, match=r"see registration\.a backward pass"):
        interfaces.EXERCISES["accelerator_hooks.hasPrimaryContext"](device)
    assert "registration.a backward pass" in registrations.EXERCISES


def test_a_declared_device_names_the_package_to_install_and_no_file_to_copy():
    findings = {item.check: item for item in findings_of("kettle", STEPS["absent"])}
    assert findings["module.Stream"].fix.startswith("pip install --force-reinstall --no-deps kettle-ops; ")
    assert findings["module.Event"].fix.startswith("pip install --force-reinstall --no-deps kettle-runtime; ")
    assert findings["guard.getDevice"].fix == "pip install --force-reinstall kettle-runtime"
    assert "module.amp" not in findings  # said among the packages
    assert findings["packages.kettle-amp"].status == "note"
    assert findings["packages.kettle-amp"].fix == "pip install kettle-amp"
    assert not [item for item in findings.values() if "model: " in item.fix or item.chapter]


@pytest.mark.parametrize("anchor", ["done", "absent"])
def test_every_missing_part_has_its_chapter(anchor):
    findings = findings_of("toaster", STEPS["absent"], STEPS[anchor])
    missing = [
        item for item in findings if item.status in ("problem", "warning") and item.check.partition(".")[0] in KEYED
    ]
    assert len(missing) > 40
    assert [item.check for item in missing if not item.chapter] == []


def test_a_torch_before_the_accelerators_names_none(monkeypatch):
    monkeypatch.delattr(torch, "accelerator")
    assert child._accelerator() == ""
