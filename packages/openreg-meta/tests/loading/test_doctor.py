# SPDX-License-Identifier: BSD-3-Clause
"""The doctor finds nothing wrong in a healthy installation, and names each part that is broken."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from openreg_testing.workers.fresh_children import FreshFamily

# Packages that are extras of openreg-meta: where one is absent, the doctor notes what is lost without it.
EXTRAS = {
    f"packages.{Requirement(line).name}" for line in metadata.requires("openreg-meta") or () if "extra ==" in line
}

FURTHER = pytest.mark.endurance  # further forms of what the default session runs, each in processes of its own


ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH_", "OPENREG_"))}


@pytest.fixture(scope="module")
def family():
    """Forks the doctor and its children from an interpreter that has imported torch, and what probes import of it."""
    python = FreshFamily("packaging.requirements", "rich.console", "torch._dynamo", options=("-B",))
    yield python
    python.close()


@pytest.fixture
def doctor(tmp_path, family):
    """Runs the doctor with these arguments; environment variables are keyword arguments."""

    def run(*arguments, module="torch_openreg", fresh=False, **variables):
        outcome = family.run(
            *("-m", module, "doctor", "--json", *arguments),
            env={**ENVIRONMENT, **variables},
            folder=tmp_path,
            fresh=fresh,
        )
        assert "Traceback" not in outcome.stderr
        told = json.loads(outcome.stdout)
        findings = [item for item in told["findings"] if item["status"] != "ok"]
        assert [item for item in findings if not (item["costs"] and item["fix"])] == []
        return outcome.returncode, told

    return run


@pytest.fixture
def overlay(tmp_path):
    """A folder that stands before everything installed."""
    folder = tmp_path / "overlay"
    folder.mkdir()
    return folder


def problems(told):
    return {item["check"]: item["what"] + item["fix"] for item in told["findings"] if item["status"] == "problem"}


def announce(folder, distribution, group, entry):
    info = folder / f"{distribution}-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n", "utf-8")


def copy(module, folder):
    for place in importlib.util.find_spec(module).submodule_search_locations:
        if Path(place).is_dir():
            shutil.copytree(place, folder / module, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / module


@pytest.mark.parametrize("module", ["torch_openreg", pytest.param("openreg_runtime", marks=FURTHER)])
def test_a_healthy_installation_has_no_problem(doctor, module):
    code, told = doctor(module=module)
    assert problems(told) == {}
    assert {item["check"] for item in told["findings"] if item["status"] in ("warning", "note")} <= EXTRAS
    assert code == 0
    assert told["healthy"]
    ok = {item["check"]: item["what"] for item in told["findings"] if item["status"] == "ok"}
    assert "import torch loads openreg" in ok["autoload.device"]
    assert "from openreg_ops" in ok["operators.PrivateUse1"]
    assert {"guard.getStream", "module.fallback_stats", "registration.DLPack", "device.1"} <= set(ok)


def test_wrong_use_keeps_its_status(tmp_path):
    command = [sys.executable, "-m", "torch_openreg", "doctor", "--device", "cuda"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, cwd=tmp_path)
    assert outcome.returncode == 2
    assert "'cuda' is one of PyTorch's own devices" in outcome.stderr


@pytest.mark.parametrize("module", ["torch_openreg", "openreg_runtime"])
def test_the_usage_shows_the_command_that_was_typed(module):
    command = [sys.executable, "-m", module, "doctor", "--help"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert outcome.stdout.startswith(f"usage: python -m {module} doctor [-h]")
    assert f"python -m {module} doctor --op aten::add.Tensor" in outcome.stdout


def test_a_missing_runtime_is_named_with_its_command(overlay):
    copy("torch_openreg", overlay)
    command = [sys.executable, "-S", "-m", "torch_openreg", "doctor"]
    env = {**os.environ, "PYTHONPATH": str(overlay)}
    outcome = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=env, cwd=overlay.parent
    )
    assert outcome.returncode == 1
    assert outcome.stderr == "openreg-runtime, which has the command, is missing: pip install openreg-runtime\n"


def test_what_the_compiler_knows_is_examined_on_request(doctor):
    code, told = doctor("--compiler", fresh=True)  # the whole in new processes, as users have it
    assert (code, problems(told)) == (0, {})
    ok = {item["check"] for item in told["findings"] if item["status"] == "ok"}
    assert "device_interface.register_interface_for_device" in ok
    assert "registration.backends eager and aot_eager, torch.export, FakeTensor" in ok


def test_operators_of_another_abi(doctor, overlay):
    record = copy("openreg_amp", overlay) / "_build.json"
    told = json.loads(record.read_text("utf-8"))
    record.write_text(json.dumps({**told, "abi_version": told["abi_version"] + 1}), "utf-8")
    code, told = doctor(PYTHONPATH=str(overlay))
    assert code == 1
    found = problems(told)
    assert "wrong ABI number" in found["startup.openreg_amp"]
    assert "pip install --upgrade openreg-runtime openreg-amp" in found["abi.openreg-amp"]
    assert "openreg-amp" in found["operators.AutocastPrivateUse1"]  # what it costs
    assert "PYTHONPATH" in found["packages.openreg_amp.copies"]


def test_a_broken_plugin_that_breaks_import_torch(doctor, overlay):
    (overlay / "broken_plugin.py").write_text("raise RuntimeError('out of luck')\n", "utf-8")
    announce(overlay, "broken-plugin", "openreg.plugins", "broken = broken_plugin")
    code, told = doctor(PYTHONPATH=str(overlay))
    assert code == 1
    found = problems(told)
    assert set(found) == {"startup.broken_plugin", "autoload.import-torch"}
    for text in found.values():
        assert "RuntimeError: out of luck" in text
    assert "of openreg-autoload: RuntimeError" in found["autoload.import-torch"]
    assert "pip uninstall openreg-autoload" in found["autoload.import-torch"]
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in found["autoload.import-torch"]


def test_another_backend_before_openreg(doctor, overlay):
    code = "import torch\ndef load():\n    torch.utils.rename_privateuse1_backend('rival')\n"
    (overlay / "rival.py").write_text(code, "utf-8")
    announce(overlay, "a-backend", "torch.backends", "a_backend = rival:load")
    code, told = doctor(PYTHONPATH=str(overlay))
    assert code == 1
    (text,) = problems(told).values()
    assert "the backend 'rival' names PrivateUse1 before openreg does (a_backend = rival:load" in text
    assert "the name is taken" in text
    assert (
        "torch.accelerator is rival"
        in {item["check"]: item["what"] for item in told["findings"]}["autoload.accelerator"]
    )
    assert "pip uninstall a-backend" in text


def test_autoload_that_is_switched_off_is_noted(doctor):
    code, told = doctor(TORCH_DEVICE_BACKEND_AUTOLOAD="no")
    assert (code, problems(told)) == (0, {})
    notes = {item["check"]: item["what"] + item["fix"] for item in told["findings"] if item["status"] == "note"}
    assert set(notes) - EXTRAS == {"autoload.device"}
    assert "unset TORCH_DEVICE_BACKEND_AUTOLOAD" in notes["autoload.device"]


def test_autoload_that_a_setting_switches_off_is_a_warning(doctor):
    code, told = doctor(OPENREG_AUTOLOAD="0")
    assert (code, problems(told)) == (0, {})
    (warning,) = (item for item in told["findings"] if item["check"] == "autoload.device")
    assert warning["status"] == "warning"
    assert warning["what"].startswith("OPENREG_AUTOLOAD=0: openreg-autoload is installed, but import torch does not")
    assert warning["fix"].startswith("unset OPENREG_AUTOLOAD, if that is not intended; ")


def test_a_backend_that_is_imported_by_itself_may_stand_beside_openreg(doctor, overlay):
    code = "import torch\ntorch.utils.rename_privateuse1_backend('toaster')\n"
    (overlay / "toaster.py").write_text(code, "utf-8")
    code, told = doctor("--device", "toaster", "--import", "toaster", "--ignore", "*", PYTHONPATH=str(overlay))
    assert code == 0
    warnings = {item["check"]: item["fix"] for item in told["findings"] if item["status"] == "warning"}
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in warnings["autoload.shadowed"]


def test_settings_that_restrict_the_device_are_noted(doctor):
    code, told = doctor(OPENREG_OPS="minimal")
    assert (code, problems(told)) == (0, {})
    notes = {item["check"]: item["fix"] for item in told["findings"] if item["status"] == "note"}
    assert {"settings.OPENREG_OPS", "registration.aten::record_stream"} <= set(notes)
    assert notes["registration.aten::record_stream"] == "unset OPENREG_OPS"


def test_an_operator_left_out_of_the_minimal_set(doctor):
    code, told = doctor(OPENREG_OPS="minimal", OPENREG_OPS_LEAVE_OUT="aten::resize_")
    assert code == 1
    text = problems(told)["registration.the minimal set of operators"]
    assert "aten::resize_" in text
    assert "unset OPENREG_OPS_LEAVE_OUT" in text


REFUSED = {
    "OPENREG_DEVICE_COUNT": "many",
    "OPENREG_DEVICE_MEMORY": "much",
    "OPENREG_LAUNCH_BLOCKING": "yes",
    "OPENREG_SCHEDULE_SEED": "luck",
    "OPENREG_SCHEDULE_TIMEOUT": "never",
    "OPENREG_POISON": "hemlock",
    "OPENREG_FAULTS": "all of them",
    "PYTORCH_ALLOC_CONF": "per_process_memory_fraction:2",
    "OPENREG_NUM_THREADS": "0",
    "OPENREG_OPS": "some",
    "OPENREG_OPS_LEAVE_OUT": "aten::view",
    "OPENREG_FALLBACK": "perhaps",
    "OPENREG_KERNELS": "stones",
}


def test_each_setting_that_is_refused_is_named_and_no_plugin_is_blamed(doctor):
    code, told = doctor(**REFUSED)
    assert code == 1
    known = {item["check"] for item in told["findings"] if item["check"].startswith("settings.")}
    refused = {f"settings.{name}" for name in REFUSED}
    assert known == {*refused, "settings.OPENREG_AUTOLOAD"}  # which openreg-autoload reads, before all of them
    assert set(problems(told)) == {*refused, "autoload.import-torch"}


def test_a_name_that_is_not_in_the_minimal_set_is_a_refused_setting(doctor):
    code, told = doctor(OPENREG_OPS="minimal", OPENREG_OPS_LEAVE_OUT="aten::unfold")
    assert code == 1
    found = problems(told)
    assert set(found) == {"settings.OPENREG_OPS_LEAVE_OUT", "autoload.import-torch"}
    assert "'aten::unfold' is not in the minimal set" in found["settings.OPENREG_OPS_LEAVE_OUT"]


OPERATORS = {
    "aten::linear": ("native", "openreg_ops/csrc/operators/blas/linear.cpp", "lower precision"),
    "aten::mse_loss": ("native", "openreg_ops/csrc/operators/loss/loss.cpp", "float32"),
    "aten::addcmul": ("native", "openreg_ops/csrc/operators/binary/binary.cpp", "promote"),
    "torch.binary_cross_entropy": ("native", "openreg_ops/csrc/operators/loss/loss.cpp", "refused"),
    "aten::cummax": ("composite", "CompositeExplicitAutograd", "no rule"),
    "torch.ops.openreg.custom_abs": ("composite", "CompositeImplicitAutograd", "no rule"),
}
CALLED = {"aten::cummax": "aten::_cummax_helper"}  # what a composite operator calls is seen


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=FURTHER if name in ("aten::mse_loss", "aten::addcmul") else ()) for name in OPERATORS],
)
def test_how_an_operator_is_served(doctor, name):
    kind, place, rule = OPERATORS[name]
    code, told = doctor("--op", name)
    assert code == 0
    facts = {fact["aspect"]: fact["text"] for fact in told["operator"]["facts"]}
    assert facts["openreg"].startswith(kind)
    assert place in facts["openreg"]
    assert facts["autocast"].startswith(rule)
    assert facts["meta"]
    assert CALLED.get(name, "") in facts["a call"]


@pytest.mark.parametrize(
    "name",
    ["aten::equal", *(pytest.param(name, marks=FURTHER) for name in ("aten::allclose", "aten::_local_scalar_dense"))],
)
def test_an_operator_whose_result_is_a_number_is_tried(doctor, name):
    _, told = doctor("--op", name)
    facts = {fact["aspect"]: fact["text"] for fact in told["operator"]["facts"]}
    assert "operands, it called" in facts["a call"]


def test_a_composite_operator_may_call_another_overload_of_its_own(doctor):
    _, told = doctor("--op", "aten::sum")
    facts = {fact["aspect"]: fact["text"] for fact in told["operator"]["facts"]}
    assert facts["openreg"].startswith("composite")
    assert facts["a call"].endswith("it called no operator of another name")


# Of each of PyTorch's lists of rules for autocast (ATen/autocast_mode.h), some operators.
RULES = {
    "lower precision: ": "mm bmm baddbmm mv matmul linear conv1d conv3d convolution prelu lstm_cell linalg_multi_dot",
    "float32: ": "exp native_layer_norm group_norm nll_loss cdist upsample_nearest2d upsample_trilinear3d renorm",
    "float32 result: ": "sum prod cumsum softmax.int norm.Scalar norm.ScalarOpt_dim linalg_vector_norm",
    "promote: ": "addcdiv atan2 bilinear cross dot index_put scatter_add tensordot vdot grid_sampler",
    "refused: RuntimeError: binary_cross_entropy ": "binary_cross_entropy",
}

ALL_RULES = """
import warnings
warnings.simplefilter("error")
import json, torch, torch_openreg
from openreg_doctor import explanation
from openreg_doctor.probes import autocast
from openreg_doctor.probes.device import ProbedDevice
registered = torch._C._dispatch_get_registrations_for_dispatch_key
before = set(registered("AutogradPrivateUse1"))
device = ProbedDevice.find("openreg")
rules = {name: explanation._rule_of_call(autocast.observe(device, name)) for name in registered("AutocastPrivateUse1")}
assert set(registered("AutogradPrivateUse1")) == before
x = torch.ones(2, 2, device="openreg", requires_grad=True)
torch.norm(x @ x).backward()
assert not torch.is_autocast_enabled("openreg")
print(json.dumps(rules))
"""


def test_every_rule_of_autocast_is_explained_and_watching_leaves_no_trace(family):
    outcome = family.run("-c", ALL_RULES, env=ENVIRONMENT)
    assert outcome.returncode == 0, outcome.stderr
    rules = json.loads(outcome.stdout)
    assert len(rules) > 100
    assert {name: rule for name, rule in rules.items() if not rule.startswith(tuple(RULES))} == {}
    for rule, operators in RULES.items():
        told = {name: rules[f"aten::{name}"] for name in operators.split()}
        assert {name: text for name, text in told.items() if not text.startswith(rule)} == {}
    assert "aten::norm.ScalarOpt_dtype is called" in rules["aten::norm.Scalar"]


@pytest.mark.parametrize("name", [pytest.param("aten::bmm", marks=FURTHER), "aten::norm.Scalar"])
def test_a_rule_that_small_operands_do_not_show_is_explained(doctor, name):
    code, told = doctor("--op", name)
    (text,) = [fact["text"] for fact in told["operator"]["facts"] if fact["aspect"] == "autocast"]
    assert code == 0
    assert text.startswith(next(rule for rule, names in RULES.items() if name.removeprefix("aten::") in names.split()))
    assert re.search(r"openreg_amp/\S+\.cpp", text), text
